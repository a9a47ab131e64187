// Writes a row's output and state once all its keys are done, and merges the results of rows whose
// keys were cut into parts.
#pragma once

#include "attention/problem.h"
#include "attention/running_state.h"
#include "simd/storage.h"

namespace softscope {
namespace {

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

// A row's sums over the keys so far gain those over the next part of them.
template <bool Output, class C>
SOFTSCOPE_INLINE void merge_part(RunningState& total, C* sums, RunningState part, const C* more,
                                 size_t dv) {
  if (part.z() != part.z() && part.m != kInfinity<double>) part.nan = true;
  if (!(part.m > -kInfinity<double>)) {  // nothing visible, or only NaN
    total.add_unweighed(part);
    return;
  }
  if (!(total.m > -kInfinity<double>)) {
    part.add_unweighed(total);
    total = part;
    for (size_t c = 0; Output && c < dv; ++c) sums[c] = more[c];
    return;
  }
  if (part.m > total.m) {
    const C shrink = static_cast<C>(total.raise(part.m));
    for (size_t c = 0; Output && c < dv; ++c) sums[c] = sums[c] * shrink + more[c];
  } else {
    const C shrink = static_cast<C>(part.m < total.m ? part.raise(total.m) : 1);
    for (size_t c = 0; Output && c < dv; ++c) sums[c] += more[c] * shrink;
  }
  total.add(part);
}

// The rows of a task, from what the parts of its keys gave.
template <class S, int N, bool Output>
void merge_key_parts(const Attention& a, const AttentionTask& task, const KeyParts& parts) {
  using C = Compute<S>;
  C* sums = static_cast<C*>(task.scratch);
  for (size_t s = 0; s < task.count; ++s) {
    const char* from = static_cast<const char*>(task.part) + s * part_bytes(a, sizeof(C));
    RunningState total = kNoKeys, part;
    for (size_t c = 0; c < a.dv; ++c) sums[c] = 0;
    for (size_t i = 0; i < parts.count; ++i, from += parts.stride) {
      __builtin_memcpy(&part, from, sizeof part);
      merge_part<Output>(total, sums, part, reinterpret_cast<const C*>(from + kPartOutput), a.dv);
    }
    const size_t index = task.first + s;
    write_results<S, N, Output>(a, index / a.n, index % a.n, total, sums);
  }
}

}  // namespace
}  // namespace softscope
