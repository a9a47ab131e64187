// Transposes N vectors of N lanes in registers, in log2(N) rounds of exchanges between neighbours.
#pragma once

#include "simd/storage.h"

namespace softscope {
namespace {

template <class C>
struct IndexOf {
  using type = int32_t;
};
template <>
struct IndexOf<double> {
  using type = int64_t;
};

// Exchanges the off-diagonal blocks of size `Block` in every 2·Block square.
template <class C, int N, int Block>
SOFTSCOPE_INLINE void exchange(Vec<C, N> (&v)[N]) {
  if constexpr (Block < N) {
    using I = typename IndexOf<C>::type;
    Vec<I, N> low, high;
    for (int i = 0; i < N; ++i) {
      const bool upper = (i & Block) != 0;
      low[i] = upper ? static_cast<I>(i - Block + N) : static_cast<I>(i);
      high[i] = upper ? static_cast<I>(i + N) : static_cast<I>(i + Block);
    }
    Vec<C, N> next[N];
    for (int i = 0; i < N; ++i) {
      if (i & Block) continue;
      next[i] = __builtin_shuffle(v[i], v[i + Block], low);
      next[i + Block] = __builtin_shuffle(v[i], v[i + Block], high);
    }
    for (int i = 0; i < N; ++i) v[i] = next[i];
    exchange<C, N, Block * 2>(v);
  }
}

template <class C, int N>
SOFTSCOPE_INLINE void transpose(Vec<C, N> (&v)[N]) {
  exchange<C, N, 1>(v);
}

}  // namespace
}  // namespace softscope
