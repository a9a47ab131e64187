// The table of attention's kernels, for one instruction set.
#pragma once

#include "attention/backward.h"
#include "attention/forward.h"
#include "dispatch/kernels.h"

namespace softscope {
namespace {

// What is asked for: the output, the statistics, or both.
template <class S, int N, class Function>
void with_wanted(const Attention& a, Function&& function) {
  if (a.out == nullptr) {
    function.template operator()<Attend<S, N, false, true>>();
  } else if (!a.statistics) {
    function.template operator()<Attend<S, N, true, false>>();
  } else {
    function.template operator()<Attend<S, N, true, true>>();
  }
}

template <class S, int N>
void attend(const Attention& a, const AttentionRows& rows) {
  with_wanted<S, N>(a, [&]<class Kind>() { Kind(a, rows).run(); });
}

template <class S, int N>
void merge_parts(const Attention& a, const AttentionRows& rows, size_t parts, size_t stride) {
  (a.out == nullptr ? merge<S, N, false> : merge<S, N, true>)(a, rows, parts, stride);
}

template <class S, int N>
void attend_back(const AttentionBack& b, const AttentionRows& rows) {
  AttendBack<S, N>(b, rows).run();
}

// With F lanes of float32 and D of float64.
template <int F, int D>
constexpr AttentionKernels all_attention() {
  return {
      {attend<Half, F>, attend<Brain, F>, attend<float, F>, attend<double, D>},
      {merge_parts<Half, F>, merge_parts<Brain, F>, merge_parts<float, F>, merge_parts<double, D>},
      {attend_back<Half, F>, attend_back<Brain, F>, attend_back<float, F>, attend_back<double, D>},
      {add_up<Half, F>, add_up<Brain, F>, add_up<float, F>, add_up<double, D>}};
}

}  // namespace
}  // namespace softscope
