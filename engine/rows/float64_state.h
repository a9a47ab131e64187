// Sums of float64 exponentials for logarithms within 2 ulp: there is nothing wider to compute in.
//
// Two ways. The plain one is as quick as any, and says how coarse it may be; where that could miss
// the bound, the careful one takes the row again in pairs. In units of roundoff u, of each term:
//
//   plain    2.75 + P, where P is the power of two at |max/T| + 0.36; nothing grows with x − m
//   careful  0.5, and every term below the maximum counts, down to the smallest denormal
#pragma once

#include "rows/side_by_side.h"
#include "simd/double_double.h"

namespace softscope {

// A state, with more of r, and how coarse it may be (0: careful). Without the other sums c may be
// 0, and all that is at the maximum in r.
struct ExactState {
  double count, c, m, r, u, t, w, r_low, coarse;
};

namespace {

// The power of two at or below a finite v > 0: half an ulp of v is u times that.
SOFTSCOPE_INLINE double power_of_two(double v) {
  uint64_t bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  bits &= 0x7ff0000000000000;
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}

// What the exponential of an entry needs to know of its row, or of one row in each lane.
template <int N>
struct Tempered {
  Vec<double, N> m, temperature, inverse;
};

template <int N>
SOFTSCOPE_INLINE Tempered<N> tempered(double m, double temperature) {
  return {fill<double, N>(m), fill<double, N>(temperature), fill<double, N>(1.0 / temperature)};
}

// The careful sums of N lanes. They are lifted by 2^64, so that no term is denormal.
template <int N, bool Full, bool Unit>  // Unit: T = 1, which saves steps and changes no bit
struct CarefulSums {
  using V = Vec<double, N>;
  static constexpr double kLift = 0x1p64;
  static constexpr double kLowest = -753.5;  // k = −1087 here, where the lifted scale is exactly 0

  V r{}, lost{}, u{}, t{}, w{};
  Vec<int64_t, N> tops{}, hidden{};  // how many, below 0: a comparison that holds is −1

  SOFTSCOPE_INLINE void add(V x, const Tempered<N>& by) {
    using E = DoubleExp;
    // d = (x − m)/T as a pair.
    Pair<V> d = two_sum(x, -by.m);
    if constexpr (!Unit) {
      const V high = max(fill<double, N>(kLowest), d.high * by.inverse);  // in this order NaN stays
      d = {high, (remainder(d.high, high, by.temperature) + d.low) * by.inverse};
    } else {
      d.high = max(fill<double, N>(kLowest), d.high);
    }
    // Where x is −inf, or x − m overflows, low is NaN or −inf, and 0 times that is NaN.
    d.low = max(d.low, fill<double, N>(-1));

    // exp(high)·(1 + low), as a pair: 1 + y with y = r + r²·q, and what both sums lose.
    const V biased = d.high * E::kLog2E + (E::kRound + 64);
    const V k = biased - (E::kRound + 64);
    const V near = (d.high - k * E::kLn2Upper) - k * E::kLn2Lower;
    const V bend = near * near * E::tail(near);
    const Pair<V> y = quick_sum(near, bend);
    const Pair<V> p = quick_sum(fill<double, N>(1), y.high);
    const V scale = (V)((Vec<uint64_t, N>)biased << 52);
    const V e = p.high * scale, e_low = ((p.low + y.low) + d.low * p.high) * scale;

    const auto top = d.high == 0.0;  // false for NaN, which so reaches r and every reading
    const V others = top ? V{} : e;
    tops += top;
    // two_sum in a step less: nothing is below 0.
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

  // The state of one lane, and of all together; n entries in each, or in all.
  SOFTSCOPE_INLINE ExactState lane(int i, size_t n, double m) const {
    return state(hidden[i], n, tops[i], m, quick_sum(r[i], lost[i]), u[i], t[i], w[i]);
  }
  SOFTSCOPE_INLINE ExactState all(size_t n, double m) const {
    Pair<double> total{0, 0};
    int64_t top = 0, away = 0;
    for (int i = 0; i < N; ++i) {
      total = sum(total, {r[i], lost[i]});
      top += tops[i];
      away += hidden[i];
    }
    return state(away, n, top, m, total, sum_lanes<double, N>(u), sum_lanes<double, N>(t),
                 sum_lanes<double, N>(w));
  }

 private:
  SOFTSCOPE_INLINE static ExactState state(int64_t away, size_t n, int64_t top, double m,
                                           Pair<double> others, double first, double second,
                                           double squares) {
    constexpr double kBack = 1 / kLift;
    return {static_cast<double>(static_cast<int64_t>(n) + away),
            others.high == others.high ? static_cast<double>(-top) : others.high,
            m,
            others.high * kBack,
            first * kBack,
            second * kBack,
            squares * kBack * kBack,
            others.low * kBack,
            0};
  }
};

template <int N, bool Full, bool Unit>
ExactState careful_segment(const double* x, size_t n, double m, double temperature) {
  const Tempered<N> by = tempered<N>(m, temperature);
  CarefulSums<N, Full, Unit> sums;
  size_t i = 0;
  for (; i + N <= n; i += N) sums.add(load_raw<double, N>(x + i), by);
  if (i < n) sums.add(load_first<double, N>(x + i, n - i, -kInfinity<double>), by);
  return sums.all((n + N - 1) / N * N, m);  // what is behind the end is hidden
}

// Where |max/T| is this large, exponents below cannot be told from one another in the plain way.
constexpr double kPlainRange = 0x1p40;

// Σ exp(d) in the plain way. exp's argument is reduced before the maximum is subtracted: x − k·ln 2
// lies near the maximum, and so rounds in proportion to that instead of to x − m.
template <int N, bool Unit>
ExactState plain_segment(const double* x, size_t n, double m, double temperature) {
  using E = DoubleExp;
  using V = Vec<double, N>;
  const double inverse = 1.0 / temperature;
  // Entries below this count as it does: k = −1023, and the scale is 0.
  const V floor = fill<double, N>(m - 709.0 * temperature);
  const V top = fill<double, N>(m), by = fill<double, N>(temperature);
  const Pair<V> center =
      Unit ? Pair<V>{top, V{}} : divided<V>({top, V{}}, by, fill<double, N>(inverse));
  // 1 in advance: it is never less than what comes, so that quick_sum will do.
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
    const Pair<V> s = quick_sum(total, exp_reduced<N>(r, biased));
    total = s.high;
    lost += s.low;
  };
  size_t i = 0;
  for (; i + N <= n; i += N) add(load_raw<double, N>(x + i));
  if (i < n) add(load_first<double, N>(x + i, n - i, -kInfinity<double>));
  Pair<double> z{0, 0};
  for (int l = 0; l < N; ++l) z = sum(z, {total[l] - 1, lost[l]});
  return {static_cast<double>(n),
          0,
          m,
          z.high,
          0,
          0,
          0,
          z.low,
          power_of_two(::fabs(m * inverse) + 0.36)};
}

// The state of a part as seen from a maximum `m` above its own, and the state of two parts.
inline ExactState moved_exactly(const ExactState& s, double m, double temperature) {
  Pair<double> delta = two_sum(s.m, -m);
  const double high = delta.high / temperature;
  if (!(high > -746)) return {s.count, 0, m, high == high ? 0 : high, 0, 0, 0, 0, s.coarse};
  delta = {high, (remainder(delta.high, high, temperature) + delta.low) / temperature};
  const Pair<double> shrink = exp_exactly(delta);
  const Pair<double> r = product(shrink, sum({s.c, 0}, {s.r, s.r_low}));
  const double z = s.c + s.r, e = shrink.high;
  return {s.count,
          0,
          m,
          r.high,
          e * (s.u + high * z),
          e * (s.t + 2 * high * s.u + high * high * z),
          e * e * (s.w + s.c),
          r.low,
          s.coarse};
}

inline ExactState merged_exactly(ExactState a, ExactState b, double temperature) {
  if (b.count == 0) return a;
  if (a.count == 0) return b;
  if (a.m != a.m || b.m != b.m) {  // NaN wins, but all are counted
    ExactState& nan = a.m != a.m ? a : b;
    nan.count = a.count + b.count;
    return nan;
  }
  if (a.m < b.m) {
    // What was at the maximum of a sums-only state is in r already.
    a = moved_exactly(a, b.m, temperature);
  } else if (b.m < a.m) {
    b = moved_exactly(b, a.m, temperature);
  }
  const Pair<double> r = sum({a.r, a.r_low}, {b.r, b.r_low});
  return {a.count + b.count,
          a.c + b.c,
          a.m,
          r.high,
          a.u + b.u,
          a.t + b.t,
          a.w + b.w,
          r.low,
          a.coarse > b.coarse ? a.coarse : b.coarse};
}

enum Way { kPlain, kCareful, kAll };  // all: careful, with the sums of every reading

// The state of n contiguous entries. `from`: a maximum known beforehand, or −inf. Longer rows are
// taken by stretches, each with the highest maximum so far, so that memory is read once.
template <int N, Way W, bool Unit>
ExactState exact_row(const double* x, size_t n, double temperature, double from) {
  constexpr size_t stretch = kStretchBytes / sizeof(double);
  ExactState total = {0, 0, -kInfinity<double>, 0, 0, 0, 0, 0, 0};
  double m = from;
  for (size_t i = 0; i < n; i += stretch) {
    const size_t count = n - i < stretch ? n - i : stretch;
    const double here = from == -kInfinity<double> ? segment_max<double, N>(x + i, count) : from;
    m = here > m ? here : m;
    ExactState s;
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
    // A NaN that the maximum passed over; +inf makes one by itself.
    const bool lost = s.c != s.c || s.r != s.r;
    if (lost && (m != kInfinity<double> || any_nan<double, N>(x + i, count))) s.m = s.c + s.r;
    total = merged_exactly(total, s, temperature);
  }
  return total;
}

template <int N, Way W>
ExactState exact_row(const double* x, size_t n, double temperature,
                     double from = -kInfinity<double>) {
  return temperature == 1 ? exact_row<N, W, true>(x, n, temperature, from)
                          : exact_row<N, W, false>(x, n, temperature, from);
}

}  // namespace
}  // namespace softscope
