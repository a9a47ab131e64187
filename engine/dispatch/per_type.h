// Fills one entry of the kernel tables: the same kernel for each type of arrays.
#pragma once

#include "dispatch/kernels.h"
#include "simd/storage.h"

namespace softscope {
namespace {

// `get`, a lambda with template parameters <class S, int N>, returns the kernel for rows of S with
// N lanes: F of them in float32, which also computes the narrower types, and D in float64.
template <int F, int D, class Get>
constexpr auto per_type(Get get) {
  using Function = decltype(get.template operator()<float, F>());
  return PerType<Function>{.float16 = get.template operator()<Half, F>(),
                           .bfloat16 = get.template operator()<Brain, F>(),
                           .float32 = get.template operator()<float, F>(),
                           .float64 = get.template operator()<double, D>()};
}

}  // namespace
}  // namespace softscope
