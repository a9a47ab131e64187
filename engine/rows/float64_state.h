// The state of float64 rows, precise enough for logarithms within 2 ulp although there is nothing
// wider to compute in.
//
// There are two ways. The plain one is as quick as any, and knows how coarse it may be. Where that
// could miss the bound, the careful one takes the row again in double-doubles. The error of each
// term, in units of roundoff u:
//
//   plain    2.75 + P, where P is the power of two at |max/T| + 0.36; nothing grows with x − m
//   careful  0.5, and every term below the maximum counts, down to the smallest denormal
#pragma once

#include "rows/contiguous_state.h"

namespace softscope {
namespace {

// What exp((x − m)/T) needs to know of the row; each lane may have a row of its own.
template <int N>
struct Tempered {
  Vec<double, N> m, temperature, inverse;
};

template <int N>
SOFTSCOPE_INLINE Tempered<N> tempered(double m, double temperature) {
  return {.m = fill<double, N>(m),
          .temperature = fill<double, N>(temperature),
          .inverse = fill<double, N>(1.0 / temperature)};
}

// The careful sums of N lanes, all times 2^64, so that no term is denormal.
template <int N, bool Full, bool Unit>  // Unit: T is 1, which saves steps and changes no bit
struct CarefulSums {
  using V = Vec<double, N>;
  static constexpr double kLift = 0x1p64;
  static constexpr double kLowest = -753.5;  // k = −1087 here, where the lifted scale is exactly 0

  V r{}, lost{}, u{}, t{}, w{};
  Vec<int64_t, N> tops{}, hidden{};  // how many, negative: a true comparison is −1

  SOFTSCOPE_INLINE void add(V x, const Tempered<N>& by) {
    using E = DoubleExp;
    // d = (x − m)/T as a double-double.
    DoubleDouble<V> d = two_sum(x, -by.m);
    if constexpr (!Unit) {
      const V high =
          max(fill<double, N>(kLowest), d.high * by.inverse);  // in this order NaN stays NaN
      d = {high, (remainder(d.high, high, by.temperature) + d.low) * by.inverse};
    } else {
      d.high = max(fill<double, N>(kLowest), d.high);
    }
    // Where x is −inf or x − m overflows, low is NaN or −inf, and 0 times that is NaN.
    d.low = max(d.low, fill<double, N>(-1));

    // exp(high)·(1 + low) as a double-double: 1 + y with y = r + r²·q, and what both sums lose.
    const V biased = d.high * E::kLog2E + (E::kRound + 64);
    const V k = biased - (E::kRound + 64);
    const V near = (d.high - k * E::kLn2Upper) - k * E::kLn2Lower;
    const V bend = near * near * E::tail(near);
    const DoubleDouble<V> y = quick_sum(near, bend);
    const DoubleDouble<V> p = quick_sum(fill<double, N>(1), y.high);
    const V scale = (V)((Vec<uint64_t, N>)biased << 52);
    const V e = p.high * scale, e_low = ((p.low + y.low) + d.low * p.high) * scale;

    const auto top = d.high == 0.0;  // false for NaN, which thus reaches r and every reading
    const V others = top ? V{} : e;
    tops += top;
    // two_sum with one step less, because nothing is negative.
    const V s = r + others, larger = max(r, others), smaller = r < others ? r : others;
    lost += (smaller - (s - larger)) + e_low;  // at the maximum e_low is 0
    r = s;
    if constexpr (Full) {
      const V first = others * d.high;
      u += first;
      t += first * d.high;
      w += others * others;
      hidden += x == -kInfinity<double>;
    }
  }

  // The state of one lane with n entries, and of all lanes with n entries together.
  SOFTSCOPE_INLINE PreciseState lane(int i, size_t n, double m) const {
    return state({.n = n,
                  .m = m,
                  .hidden = hidden[i],
                  .tops = tops[i],
                  .r = quick_sum(r[i], lost[i]),
                  .u = u[i],
                  .t = t[i],
                  .w = w[i]});
  }
  SOFTSCOPE_INLINE PreciseState all(size_t n, double m) const {
    DoubleDouble<double> total{0, 0};
    int64_t top = 0, away = 0;
    for (int i = 0; i < N; ++i) {
      total = sum(total, {r[i], lost[i]});
      top += tops[i];
      away += hidden[i];
    }
    return state({.n = n,
                  .m = m,
                  .hidden = away,
                  .tops = top,
                  .r = total,
                  .u = sum_lanes<double, N>(u),
                  .t = sum_lanes<double, N>(t),
                  .w = sum_lanes<double, N>(w)});
  }

 private:
  // One row's share of the sums above.
  struct Lifted {
    size_t n;
    double m;
    int64_t hidden, tops;
    DoubleDouble<double> r;
    double u, t, w;
  };
  SOFTSCOPE_INLINE static PreciseState state(const Lifted& row) {
    constexpr double kBack = 1 / kLift;
    const bool nan = row.r.high != row.r.high;
    return {{.count = static_cast<double>(static_cast<int64_t>(row.n) + row.hidden),
             .c = nan ? row.r.high : static_cast<double>(-row.tops),
             .m = row.m,
             .r = row.r.high * kBack,
             .u = row.u * kBack,
             .t = row.t * kBack,
             .w = row.w * kBack * kBack},
            row.r.low * kBack,
            0};
  }
};

template <int N, bool Full, bool Unit>
PreciseState careful_segment(const double* x, size_t n, double m, double temperature) {
  const Tempered<N> by = tempered<N>(m, temperature);
  CarefulSums<N, Full, Unit> sums;
  size_t i = 0;
  for (; i + N <= n; i += N) sums.add(load_raw<double, N>(x + i), by);
  if (i < n) sums.add(load_first<double, N>(x + i, n - i, -kInfinity<double>), by);
  return sums.all((n + N - 1) / N * N, m);  // the lanes past the end are hidden
}

// From this |max/T| on, the plain way can no longer tell exponents apart.
constexpr double kPlainRange = 0x1p40;

// Σ exp(d) in the plain way. It reduces exp's argument before it subtracts the maximum: x − k·ln 2
// is near the maximum, so its rounding is in proportion to that and not to x − m.
template <int N, bool Unit>
PreciseState plain_segment(const double* x, size_t n, double m, double temperature) {
  using E = DoubleExp;
  using V = Vec<double, N>;
  const double inverse = 1.0 / temperature;
  // Entries below the floor count as the floor does: k = −1023 there, and the scale is 0.
  const V floor = fill<double, N>(m - 709.0 * temperature);
  const V top = fill<double, N>(m), by = fill<double, N>(temperature);
  const DoubleDouble<V> center =
      Unit ? DoubleDouble<V>{top, V{}} : divided<V>({top, V{}}, by, fill<double, N>(inverse));
  // Starts at 1, which is never less than what is added, so that quick_sum will do.
  V total = fill<double, N>(1), lost{};
  const auto add = [&](V v) __attribute__((always_inline)) {
    v = max(floor, v);  // in this order NaN stays NaN
    V biased, r;
    if constexpr (Unit) {
      biased = (v - top) * E::kLog2E + E::kRound;
      const V k = biased - E::kRound;
      r = ((v - k * E::kLn2Upper) - top) - k * E::kLn2Lower;
    } else {
      biased = (v - top) * inverse * E::kLog2E + E::kRound;
      const V k = biased - E::kRound;
      const V high = v * inverse, low = remainder(v, high, by) * inverse - center.low;
      r = (((high - k * E::kLn2Upper) - center.high) - k * E::kLn2Lower) + low;
    }
    const DoubleDouble<V> s = quick_sum(total, exp_reduced<N>(r, biased));
    total = s.high;
    lost += s.low;
  };
  size_t i = 0;
  for (; i + N <= n; i += N) add(load_raw<double, N>(x + i));
  if (i < n) add(load_first<double, N>(x + i, n - i, -kInfinity<double>));
  DoubleDouble<double> z{0, 0};
  for (int l = 0; l < N; ++l) z = sum(z, {total[l] - 1, lost[l]});
  const double coarse = power_of_two(::fabs(m * inverse) + 0.36);
  const auto count = static_cast<double>(n);
  return {{.count = count, .c = 0, .m = m, .r = z.high, .u = 0, .t = 0, .w = 0}, z.low, coarse};
}

enum Way { kPlain, kCareful, kAll };  // kAll: careful, and the sums of every reading too

// The state of n contiguous entries. `known`: their maximum, if known beforehand, else −inf. Longer
// rows are taken in stretches, each counted from the highest maximum so far, so that memory is read
// once.
template <int N, Way W, bool Unit>
PreciseState precise_row(const double* x, size_t n, double temperature, double known) {
  constexpr size_t stretch = kStretchBytes / sizeof(double);
  PreciseState total = kNoPreciseEntries;
  double m = known;
  for (size_t i = 0; i < n; i += stretch) {
    const size_t count = n - i < stretch ? n - i : stretch;
    const double here = known == -kInfinity<double> ? segment_max<double, N>(x + i, count) : known;
    m = here > m ? here : m;
    PreciseState s;
    if (m == -kInfinity<double> && !any_nan<double, N>(x + i, count)) continue;
    if constexpr (W == kPlain) {
      if (!(::fabs(m / temperature) < kPlainRange)) {
        s = careful_segment<N, false, Unit>(x + i, count, m, temperature);
      } else {
        s = plain_segment<N, Unit>(x + i, count, m, temperature);
      }
    } else {
      s = careful_segment<N, W == kAll, Unit>(x + i, count, m, temperature);
    }
    // The maximum passes over a NaN, the sums do not. But +inf makes a NaN of its own.
    const bool lost = s.c != s.c || s.r != s.r;
    if (lost && (m != kInfinity<double> || any_nan<double, N>(x + i, count))) s.m = s.c + s.r;
    total = merged_precisely(total, s, temperature);
  }
  return total;
}

template <int N, Way W>
PreciseState precise_row(const double* x, size_t n, double temperature,
                         double known = -kInfinity<double>) {
  return temperature == 1 ? precise_row<N, W, true>(x, n, temperature, known)
                          : precise_row<N, W, false>(x, n, temperature, known);
}

}  // namespace
}  // namespace softscope
