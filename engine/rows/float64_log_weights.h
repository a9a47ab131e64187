// From exact states to logarithms: log z as a pair, log Σ exp(x/T) and (x − m)/T − log z with one
// rounding at the end.
#pragma once

#include "rows/float64_state.h"

namespace softscope {
namespace {

// log z of N states, as pairs. c is 1 but for ties, where the subtraction is exact and nothing
// small is left to lose; or 0, see ExactState.
template <int N>
SOFTSCOPE_INLINE Pair<Vec<double, N>> exact_logs(const ExactState* states, size_t count) {
  using V = Vec<double, N>;
  V c{}, r{}, low{};
  // Up to N, not to `count`: lanes that a loop counts go through memory.
  for (size_t l = 0; l < N; ++l) {
    const ExactState& s = states[l < count ? l : 0];
    c[l] = s.c;
    r[l] = s.r;
    low[l] = s.r_low;
  }
  const Pair<V> others = sum<V>({c - 1.0, V{}}, {r, low});
  return log1p_pair<N>({max(V{}, others.high), others.low});
}

template <int N>
SOFTSCOPE_INLINE Pair<double> exact_log(const ExactState& s) {
  const Pair<Vec<double, N>> log = exact_logs<N>(&s, 1);
  return {log.high[0], log.low[0]};
}

// Whether log z could miss the 2 ulp of `larger`, the larger of result and maximum, with half an
// ulp left for the last rounding. What is at the maximum has no error.
SOFTSCOPE_INLINE bool could_miss(const ExactState& s, Pair<double> log, double larger) {
  if (s.coarse == 0) return false;
  const double z = s.c + s.r, others = (s.c - 1 + s.r) + s.r_low;
  // So near one-hot all the others are in `lost`, which is added up plainly.
  const double chain = others < 0x1p-12 ? kStretchBytes / 16.0 : 0;
  // Terms that underflow are left out: 2^-1021 each, in units of u.
  const double left_out = 0x1p-968 * s.count;
  const double error = (s.coarse + 2.75 + chain) * others + 0.1 * log.high * z + left_out;
  return !(error <= 3 * power_of_two(larger) * z);
}

// max/T + log z: high + low is the logsumexp, but for center_low.
template <class V>
struct LogSum {
  V high, low, center_low;
};

template <class V>
SOFTSCOPE_INLINE LogSum<V> log_sum(V m, V temperature, V inverse, Pair<V> log) {
  const Pair<V> center = divided<V>({m, V{}}, temperature, inverse);
  const Pair<V> s = two_sum(center.high, log.high);
  return {s.high, s.low + log.low, center.low};
}

// From here on |max/T| is so near the end of the range that pairs overflow; and there one rounding
// more or less is nothing, beside the ulp of the maximum.
constexpr double kHuge = 0x1p960;

// log Σ exp(x/T) of N states.
template <int N>
SOFTSCOPE_INLINE Vec<double, N> exact_lses(const ExactState* states, size_t count,
                                           Vec<double, N> temperature, Pair<Vec<double, N>> log) {
  using V = Vec<double, N>;
  V m{};
  for (size_t l = 0; l < N; ++l) m[l] = states[l < count ? l : 0].m;
  const LogSum<V> lse = log_sum<V>(m, temperature, 1.0 / temperature, log);
  V result = lse.high + (lse.low + lse.center_low);
  for (size_t l = 0; l < N && l < count; ++l) {
    const double near = lse.high[l];
    if (::fabs(near) < kHuge) continue;
    // Also for what is infinite or NaN: a row with nothing in it, or with +inf.
    const bool infinite = states[l].count == 0 || m[l] == kInfinity<double>;
    result[l] = infinite ? m[l] : m[l] / temperature[l] + log.high[l];
  }
  return result;
}

// (x − m)/T − log z of entries, with one rounding: x/T − lse, and what both lost.
template <int N, bool Unit>
struct LogWeights {
  using V = Vec<double, N>;
  Tempered<N> by;
  V log;
  LogSum<V> lse;

  SOFTSCOPE_INLINE LogWeights(const Tempered<N>& row, Pair<V> log_z)
      : by(row), log(log_z.high), lse(log_sum(row.m, row.temperature, row.inverse, log_z)) {}

  SOFTSCOPE_INLINE V of(V x) const {
    Pair<V> tempered_x = {x, V{}};
    if constexpr (!Unit) tempered_x = divided(tempered_x, by.temperature, by.inverse);
    const Pair<V> s = two_sum(tempered_x.high, -lse.high);
    const V low = (s.low - lse.low) + (tempered_x.low - lse.center_low);
    // The low part of an infinite x is NaN; a NaN of x or of the row is in the high part as well.
    return s.high + (low == low ? low : V{});
  }
  // By halves, for x − m may pass the range of float64 where (x − m)/T does not.
  SOFTSCOPE_INLINE V of_huge(V x) const {
    return (x * 0.5 - by.m * 0.5) / (by.temperature * 0.5) - log;
  }
};

template <int N, bool Unit, bool Huge>
void exact_log_segment(const double* x, double* out, size_t n, double m, double temperature,
                       Pair<double> log) {
  const LogWeights<N, Unit> weights(tempered<N>(m, temperature),
                                    {fill<double, N>(log.high), fill<double, N>(log.low)});
  const auto one = [&](Vec<double, N> v) __attribute__((always_inline)) {
    return Huge ? weights.of_huge(v) : weights.of(v);
  };
  const Vec<double, N> tail = load_last<double, N>(x, n, 0);  // x may be where out is
  for (size_t i = 0; i + N <= n; i += N)
    store_raw<double, N>(out + i, one(load_raw<double, N>(x + i)));
  if (n % N != 0) store_last<double, N>(out, n, one(tail));
}

template <int N>
void exact_log_row(const double* x, double* out, size_t n, double m, double temperature,
                   Pair<double> log) {
  if (::fabs(m / temperature) >= kHuge) {
    exact_log_segment<N, false, true>(x, out, n, m, temperature, log);
  } else if (temperature == 1) {
    exact_log_segment<N, true, false>(x, out, n, m, temperature, log);
  } else {
    exact_log_segment<N, false, false>(x, out, n, m, temperature, log);
  }
}

}  // namespace
}  // namespace softscope
