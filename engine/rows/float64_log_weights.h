// From precise states to logarithms: log z as a double-double, and log Σ exp(x/T) and
// (x − m)/T − log z with a single rounding at the end.
#pragma once

#include "rows/float64_state.h"

namespace softscope {
namespace {

// log z of N states, as double-doubles. c is 1 except in ties, and then the subtraction is exact
// and there is nothing small to lose; or 0, see PreciseState.
template <int N>
SOFTSCOPE_INLINE DoubleDouble<Vec<double, N>> precise_logs(const PreciseState* states,
                                                           size_t count) {
  using V = Vec<double, N>;
  V c{}, r{}, low{};
  // To N and not to `count`: with a variable bound the lanes would go through memory.
  for (size_t l = 0; l < N; ++l) {
    const PreciseState& s = states[l < count ? l : 0];
    c[l] = s.c;
    r[l] = s.r;
    low[l] = s.r_low;
  }
  const DoubleDouble<V> others = sum<V>({c - 1.0, V{}}, {r, low});
  return log1p_double_double<N>({max(V{}, others.high), others.low});
}

template <int N>
SOFTSCOPE_INLINE DoubleDouble<double> precise_log(const PreciseState& s) {
  const DoubleDouble<Vec<double, N>> log = precise_logs<N>(&s, 1);
  return {log.high[0], log.low[0]};
}

// Whether log z could miss the bound: 2 ulp of `larger`, the larger of result and maximum, of which
// half an ulp is left for the last rounding. Entries at the maximum have no error.
SOFTSCOPE_INLINE bool could_miss(const PreciseState& s, DoubleDouble<double> log, double larger) {
  if (s.coarse == 0) return false;
  const double z = s.c + s.r, others = (s.c - 1 + s.r) + s.r_low;
  // So near one-hot, all the others are in `lost`, which is a plain sum.
  const double chain = others < 0x1p-12 ? kStretchBytes / 16.0 : 0;
  // Terms that underflow are missing: 2^-1021 each, here in units of u.
  const double left_out = 0x1p-968 * s.count;
  const double error = (s.coarse + 2.75 + chain) * others + 0.1 * log.high * z + left_out;
  return !(error <= 3 * power_of_two(larger) * z);
}

// max/T + log z, not added up yet: the logsumexp is high + low + center_low.
template <class V>
struct LogSum {
  V high, low, center_low;
};

// Where what x/T loses may be below the smallest number, so that a double-double of it is wrong by
// many ulp of x/T: only where the maximum itself is that small, since the bound counts in its ulps.
template <class V>
struct TinyMaxima {
  V m;
  bool any = false;

  SOFTSCOPE_INLINE explicit TinyMaxima(V maxima) : m(maxima) {
    for (size_t l = 0; l < sizeof(V) / sizeof(double); ++l) {
      any = any || (m[l] != 0 && ::fabs(m[l]) < kTiny);
    }
  }
  SOFTSCOPE_INLINE V select(V tiny, V other) const {
    const V size = max(m, -m);
    return size < kTiny ? (size > 0.0 ? tiny : other) : other;
  }

  static constexpr double kTiny = 0x1p-900;
};

template <class V>
SOFTSCOPE_INLINE LogSum<V> log_sum(V m, V temperature, V inverse, DoubleDouble<V> log) {
  const DoubleDouble<V> center = divided<V>({m, V{}}, temperature, inverse);
  const DoubleDouble<V> s = two_sum(center.high, log.high);
  return {s.high, s.low + log.low, center.low};
}

// From this |max/T| on, double-doubles overflow. Out there one rounding more or less is nothing
// beside the ulp of the maximum.
constexpr double kHuge = 0x1p960;

// log Σ exp(x/T) of N states.
template <int N>
SOFTSCOPE_INLINE Vec<double, N> precise_lses(const PreciseState* states, size_t count,
                                             Vec<double, N> temperature,
                                             DoubleDouble<Vec<double, N>> log) {
  using V = Vec<double, N>;
  V m{};
  for (size_t l = 0; l < N; ++l) m[l] = states[l < count ? l : 0].m;
  const LogSum<V> lse = log_sum<V>(m, temperature, 1.0 / temperature, log);
  V result = lse.high + (lse.low + lse.center_low);
  const TinyMaxima<V> tiny(m);
  if (tiny.any) result = tiny.select(m / temperature + log.high, result);
  for (size_t l = 0; l < N && l < count; ++l) {
    const double near = lse.high[l];
    if (::fabs(near) < kHuge) continue;
    // Infinite and NaN land here too: a row without entries, or with +inf.
    const bool infinite = states[l].count == 0 || m[l] == kInfinity<double>;
    result[l] = infinite ? m[l] : m[l] / temperature[l] + log.high[l];
  }
  return result;
}

// (x − m)/T − log z with one rounding: x/T − lse, plus what both lost.
template <int N, bool Unit>
struct LogWeights {
  using V = Vec<double, N>;
  Tempered<N> by;
  V log;
  TinyMaxima<V> tiny;
  LogSum<V> lse;

  SOFTSCOPE_INLINE LogWeights(const Tempered<N>& row, DoubleDouble<V> log_z)
      : by(row),
        log(log_z.high),
        tiny(row.m),
        lse(log_sum(row.m, row.temperature, row.inverse, log_z)) {}

  SOFTSCOPE_INLINE V of(V x) const {
    DoubleDouble<V> tempered_x = {x, V{}};
    if constexpr (!Unit) tempered_x = divided(tempered_x, by.temperature, by.inverse);
    const DoubleDouble<V> s = two_sum(tempered_x.high, -lse.high);
    const V low = (s.low - lse.low) + (tempered_x.low - lse.center_low);
    // The low part of an infinite x is NaN. A NaN in x or in the row is in the high part as well.
    const V result = s.high + (low == low ? low : V{});
    if (!tiny.any) return result;
    return tiny.select((x / by.temperature - by.m / by.temperature) - log, result);
  }
  // In halves, because x − m may overflow where (x − m)/T does not.
  SOFTSCOPE_INLINE V of_huge(V x) const {
    return (x * 0.5 - by.m * 0.5) / (by.temperature * 0.5) - log;
  }
};

template <int N, bool Unit, bool Huge>
void precise_log_segment(const double* x, double* out, size_t n, double m, double temperature,
                         DoubleDouble<double> log) {
  const LogWeights<N, Unit> weights(tempered<N>(m, temperature),
                                    {fill<double, N>(log.high), fill<double, N>(log.low)});
  const auto one = [&](Vec<double, N> v) __attribute__((always_inline)) {
    return Huge ? weights.of_huge(v) : weights.of(v);
  };
  const Vec<double, N> tail = load_last<double, N>(x, n, 0);  // before out, which may be x
  for (size_t i = 0; i + N <= n; i += N)
    store_raw<double, N>(out + i, one(load_raw<double, N>(x + i)));
  if (n % N != 0) store_last<double, N>(out, n, one(tail));
}

template <int N>
void precise_log_row(const double* x, double* out, size_t n, double m, double temperature,
                     DoubleDouble<double> log) {
  if (::fabs(m / temperature) >= kHuge) {
    precise_log_segment<N, false, true>(x, out, n, m, temperature, log);
  } else if (temperature == 1) {
    precise_log_segment<N, true, false>(x, out, n, m, temperature, log);
  } else {
    precise_log_segment<N, false, false>(x, out, n, m, temperature, log);
  }
}

}  // namespace
}  // namespace softscope
