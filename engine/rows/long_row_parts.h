// Kernels for a row too long for one thread. It is cut into parts; the states of the parts merge,
// and then each part is mapped. long_row_tasks.cc shares them out.
#pragma once

#include "rows/float32_logs.h"
#include "rows/float64_logs.h"
#include "rows/long_row.h"

namespace softscope {
namespace {

template <class S, int N, bool Full>
void part_state(const LongRowPart& p, PreciseState& state) {
  if constexpr (__is_same(S, double)) {
    const double* x = static_cast<const double*>(p.x);
    if constexpr (Full) {
      state = precise_row<N, kAll>(x, p.n, p.temperature);
    } else {
      state = p.careful ? precise_row<N, kCareful>(x, p.n, p.temperature, p.maximum)
                        : precise_row<N, kPlain>(x, p.n, p.temperature);
    }
  } else {
    state = {row_state<S, N, Full>(static_cast<const S*>(p.x), p.n, p.temperature), 0, 0};
  }
}

template <class S, int N>
void part_softmax(const LongRowPart& p) {
  using C = Compute<S>;
  segment_exp_divide<S, N>(static_cast<const S*>(p.x), static_cast<S*>(p.out), p.n,
                           {static_cast<C>(p.maximum), static_cast<C>(1.0 / p.temperature)},
                           static_cast<C>(p.z));
}

template <class S, int N>
void part_log_softmax(const LongRowPart& p) {
  const S* x = static_cast<const S*>(p.x);
  S* out = static_cast<S*>(p.out);
  if constexpr (__is_same(S, double)) {
    precise_log_row<N>(x, out, p.n, p.maximum, p.temperature, {p.log_z, p.log_z_low});
  } else {
    segment_log<S, N>(x, out, p.n, p.maximum, p.temperature, p.log_z);
  }
}

void merge_states(PreciseState& into, const PreciseState& from, double temperature) {
  into = {merged(into, from, 1.0 / temperature), 0, 0};
}

void merge_states_precisely(PreciseState& into, const PreciseState& from, double temperature) {
  into = merged_precisely(into, from, temperature);
}

// Whether the merged parts of a long row, of float32 or narrower, are too coarse: for all readings
// if `full`, else for log z alone.
bool merged_too_coarse(const State& s, size_t n, double temperature, bool full) {
  if (full) return readings_too_coarse(s, n, temperature);
  const double log = log_z(s), top = ::fabs(s.m / temperature);
  return too_coarse<float>(s, log, n, top > log ? top : log, temperature);
}

// Writes log z of the merged parts of a float64 row into `part`. False if it could miss its bound.
template <int N>
bool precise_log_z(const PreciseState& s, LongRowPart& part) {
  const DoubleDouble<double> log = precise_log<N>(s);
  part.log_z = log.high;
  part.log_z_low = log.low;
  const double top = ::fabs(s.m / part.temperature);
  return !could_miss(s, log, top > log.high ? top : log.high);
}

}  // namespace
}  // namespace softscope
