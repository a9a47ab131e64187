// The end of a row of attention: from its state, and from the parts that its keys were cut into.
#pragma once

#include "attention/few_queries.h"
#include "attention/running_state.h"

namespace softscope {
namespace {

constexpr size_t kPartOutput = 128;
static_assert(sizeof(RowState) <= kPartOutput);

// The row's output and state from what its keys gave.
template <class S, int N, bool Output, class C = Compute<S>>
void finish(const Attention& a, size_t head, size_t i, RowState state, const C* from) {
  const double z = state.z();
  if (z != z && state.m != kInfinity<double>) state.nan = true;
  if (Output) {
    double by = 0;
    if (state.nan) {
      by = __builtin_nan("");
    } else if (state.m > -kInfinity<double>) {
      by = 1 / z;
      if (a.sink != nullptr) {
        const double sink = a.sink[head], top = sink > state.m ? sink : state.m;
        const Vec<double, 2> e = exp_nonpositive<2>(Vec<double, 2>{state.m - top, sink - top});
        by = e[0] / (z * e[0] + e[1]);
      }
    }
    S* out = static_cast<S*>(a.out) + offset(head, a.out_head) + offset(i, a.out_row);
    const C factor = static_cast<C>(by);
    size_t c = 0;
    for (; c + N <= a.dv; c += N) store<S, N>(out + c, load_raw<C, N>(from + c) * factor);
    if (c < a.dv) {
      store_first<S, N>(out + c, a.dv - c, load_first<C, N>(from + c, a.dv - c, 0) * factor);
    }
  }
  if (a.state != nullptr) {
    double* to = a.state + offset(head, a.state_head) + offset(i, a.state_row);
    const double nan = __builtin_nan("");
    if (state.nan) {
      state.m = state.highest = nan;
    }
    if (state.nan || state.m == kInfinity<double>) {
      state.c = state.r = state.u = state.t = state.w = nan;
    }
    const double all[] = {state.n, state.c, state.m, state.r,
                          state.u, state.t, state.w, state.highest};
    __builtin_memcpy(to, all, sizeof all);
  }
}

// The rows of a task from the parts that its keys were cut into, `stride` bytes apart.
template <class S, int N, bool Output>
void merge(const Attention& a, const AttentionRows& rows, size_t parts, size_t stride) {
  using C = Compute<S>;
  C* sum = static_cast<C*>(rows.scratch);
  for (size_t s = 0; s < rows.count; ++s) {
    const char* first = static_cast<const char*>(rows.part) + s * part_bytes(a);
    RowState total, part;
    for (size_t i = 0; i < parts; ++i) {
      __builtin_memcpy(&part, first + i * stride, sizeof part);
      if (part.m > total.m) total.m = part.m;
    }
    const double maximum = total.m;
    for (size_t c = 0; c < a.dv; ++c) sum[c] = 0;
    for (size_t i = 0; i < parts; ++i) {
      __builtin_memcpy(&part, first + i * stride, sizeof part);
      const double shrink = part.m < maximum ? part.move(maximum) : 1;
      total.join(part);
      if (!Output) continue;
      const char* out = first + i * stride + kPartOutput;
      for (size_t c = 0; c < a.dv; ++c) {
        C value;
        __builtin_memcpy(&value, out + c * sizeof(C), sizeof(C));
        sum[c] += value * static_cast<C>(shrink);
      }
    }
    const size_t index = rows.first + s;
    finish<S, N, Output>(a, index / a.n, index % a.n, total, sum);
  }
}

}  // namespace
}  // namespace softscope
