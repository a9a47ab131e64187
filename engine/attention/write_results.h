// Writes a row's output and state once all its keys are done, and merges the results of rows whose
// keys were cut into parts.
#pragma once

#include "attention/problem.h"
#include "attention/running_state.h"
#include "simd/storage.h"

namespace softscope {
namespace {

// In a part of the keys, a row's output lies behind its state.
constexpr size_t kPartOutput = 128;
static_assert(sizeof(RunningState) <= kPartOutput);

struct Factors {
  double keys;  // what the sums Σ exp(x − m)·v are multiplied by to give the output
  double sink;  // the sink's weight; not 1 minus that of the keys, which would cancel
};

SOFTSCOPE_INLINE Factors output_factors(const Attention& a, size_t head,
                                        const RunningState& state) {
  if (state.nan) return {.keys = __builtin_nan(""), .sink = __builtin_nan("")};
  if (!(state.m > -kInfinity<double>)) return {.keys = 0, .sink = 1};  // no key is visible
  if (a.sink == nullptr) return {.keys = 1 / state.z(), .sink = 0};
  const double sink = a.sink[head], top = sink > state.m ? sink : state.m;
  const Vec<double, 2> e = exp_nonpositive<2>(Vec<double, 2>{state.m - top, sink - top});
  const double z = state.z() * e[0] + e[1];
  return {.keys = e[0] / z, .sink = e[1] / z};
}

// The numbers of a row's state, and its largest score.
SOFTSCOPE_INLINE void write_state(RunningState state, double* to) {
  const double nan = __builtin_nan("");
  if (state.nan) state.m = state.highest = nan;
  if (state.nan || state.m == kInfinity<double>) {
    state.c = state.r = state.u = state.t = state.w = nan;
  }
  const State& numbers = state;
  static_assert(sizeof(State) == (kAttentionNumbers - 1) * sizeof(double));
  __builtin_memcpy(to, &numbers, sizeof numbers);
  to[kAttentionNumbers - 1] = state.highest;
}

// Query i of a head, from its state and the sums Σ exp(x − m)·v.
template <class S, int N, bool Output, class C = Compute<S>>
void write_results(const Attention& a, size_t head, size_t i, RunningState state, const C* sums) {
  const double z = state.z();
  if (z != z && state.m != kInfinity<double>) state.nan = true;
  if (Output) {
    S* out = row_of<S>(a.out, head, i);
    const C factor = static_cast<C>(output_factors(a, head, state).keys);
    size_t c = 0;
    for (; c + N <= a.dv; c += N) store<S, N>(out + c, load_raw<C, N>(sums + c) * factor);
    if (c < a.dv) {
      store_first<S, N>(out + c, a.dv - c, load_first<C, N>(sums + c, a.dv - c, 0) * factor);
    }
  }
  if (a.state.data != nullptr) write_state(state, row_of<double>(a.state, head, i));
}

// The rows of a task, from what the parts of its keys gave.
template <class S, int N, bool Output>
void merge_key_parts(const Attention& a, const AttentionTask& task, const KeyParts& parts) {
  using C = Compute<S>;
  C* sums = static_cast<C*>(task.scratch);
  for (size_t s = 0; s < task.count; ++s) {
    const char* first = static_cast<const char*>(task.part) + s * part_bytes(a);
    RunningState total = kNoKeys, part;
    for (size_t i = 0; i < parts.count; ++i) {
      __builtin_memcpy(&part, first + i * parts.stride, sizeof part);
      if (part.m > total.m) total.m = part.m;
    }
    for (size_t c = 0; c < a.dv; ++c) sums[c] = 0;
    for (size_t i = 0; i < parts.count; ++i) {
      __builtin_memcpy(&part, first + i * parts.stride, sizeof part);
      const double shrink = part.m < total.m ? part.raise(total.m) : 1;
      total.add(part);
      if (!Output) continue;
      const char* out = first + i * parts.stride + kPartOutput;
      for (size_t c = 0; c < a.dv; ++c) {
        C value;
        __builtin_memcpy(&value, out + c * sizeof(C), sizeof(C));
        sums[c] += value * static_cast<C>(shrink);
      }
    }
    const size_t index = task.first + s;
    write_results<S, N, Output>(a, index / a.n, index % a.n, total, sums);
  }
}

}  // namespace
}  // namespace softscope
