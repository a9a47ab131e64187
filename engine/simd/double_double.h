// Double-double numbers: unevaluated sums high + low with about 100 bits, for what float64 alone
// would round away.
//
// None of this survives -ffast-math. The compiler may fuse a·b + c wherever it likes: no step
// relies on a product being rounded. A step that relies on a fused one calls `fused`, because what
// the compiler fuses by itself depends on its flags.
#pragma once

#include <cmath>

#include "simd/exp.h"
#include "simd/log.h"

namespace softscope {
namespace {

// The power of two at or below a finite v > 0: u times that is half an ulp of v.
SOFTSCOPE_INLINE double power_of_two(double v) {
  uint64_t bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  bits &= 0x7ff0000000000000;
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}

// V: a number, or a vector of them.
template <class V>
struct DoubleDouble {
  V high, low;
};

// a + b exactly (Knuth).
template <class V>
SOFTSCOPE_INLINE DoubleDouble<V> two_sum(V a, V b) {
  const V s = a + b;
  const V part = s - a;
  return {s, (a - (s - part)) + (b - part)};
}

// The same in half the steps, for |a| ≥ |b| (Dekker).
template <class V>
SOFTSCOPE_INLINE DoubleDouble<V> quick_sum(V a, V b) {
  const V s = a + b;
  return {s, b - (s - a)};
}

// The upper 26 bits of a number: the product of two such is exact. A mask cuts them off; the usual
// way, multiplying by 2^27 + 1, overflows.
template <class V>
SOFTSCOPE_INLINE V upper_bits(V v) {
  constexpr uint64_t kMask = ~((uint64_t{1} << 27) - 1);
  if constexpr (sizeof(V) == sizeof(double)) {
    uint64_t bits;
    __builtin_memcpy(&bits, &v, sizeof bits);
    bits &= kMask;
    __builtin_memcpy(&v, &bits, sizeof v);
    return v;
  } else {
    return (V)((Vec<uint64_t, sizeof(V) / 8>)v & kMask);
  }
}

// x − q·t where the two are nearly equal: exact but for one last rounding.
template <class V>
SOFTSCOPE_INLINE V remainder(V x, V q, V t) {
  if constexpr (kFusedMultiplyAdd) {
    return fused(-q, t, x);
  } else {
    const V product = q * t;
    const V q_upper = upper_bits(q), t_upper = upper_bits(t);
    const V q_lower = q - q_upper, t_lower = t - t_upper;
    const V lost =
        ((q_upper * t_upper - product) + q_upper * t_lower + q_lower * t_upper) + q_lower * t_lower;
    return (x - product) - lost;
  }
}

// x/T.
template <class V>
SOFTSCOPE_INLINE DoubleDouble<V> divided(DoubleDouble<V> x, V temperature, V inverse) {
  const V high = x.high * inverse;
  return {high, (remainder(x.high, high, temperature) + x.low) * inverse};
}

template <class V = double>
SOFTSCOPE_INLINE DoubleDouble<V> sum(DoubleDouble<V> a, DoubleDouble<V> b) {
  const DoubleDouble<V> s = two_sum(a.high, b.high);
  return quick_sum(s.high, s.low + (a.low + b.low));
}

SOFTSCOPE_INLINE DoubleDouble<double> product(DoubleDouble<double> a, DoubleDouble<double> b) {
  const double high = a.high * b.high;
  double lost;
  if constexpr (kFusedMultiplyAdd) {
    lost = fused(a.high, b.high, -high);
  } else {
    lost = -remainder(high, a.high, b.high);
  }
  return quick_sum(high, lost + (a.high * b.low + a.low * b.high));
}

// exp(d), d ≤ 0, within 2^-70 of itself. The states of a row's parts may be merged hundreds of
// times; a float64 rounding each time would add up.
inline DoubleDouble<double> exp_precisely(DoubleDouble<double> d) {
  using E = DoubleExp;
  if (!(d.high > -746)) return {d.high == d.high ? 0 : d.high, 0};
  const double k = (d.high * E::kLog2E + E::kRound) - E::kRound;
  DoubleDouble<double> r = product({-k, 0}, {E::kLn2Lower, 0});
  r = sum({d.high - k * E::kLn2Upper, d.low}, r);
  // exp(r) − 1 from exp(r/256) − 1, squared eight times: down there float64 suffices from r³ on.
  r = {r.high / 256, r.low / 256};
  const DoubleDouble<double> square = product(r, r);
  const double x = r.high;
  const double rest =
      x * x * x * (1.0 / 6 + x * (1.0 / 24 + x * (1.0 / 120 + x * (1.0 / 720 + x / 5040))));
  DoubleDouble<double> e = sum(r, sum({square.high / 2, square.low / 2}, {rest, 0}));
  for (int i = 0; i < 8; ++i) e = sum({2 * e.high, 2 * e.low}, product(e, e));
  e = sum({1, 0}, e);
  const int exponent = static_cast<int>(k);
  return {::ldexp(e.high, exponent), ::ldexp(e.low, exponent)};
}

// log(1 + r), r ≥ 0, within 0.1 u of itself, by the method of log1p_nonnegative.
template <int N>
SOFTSCOPE_INLINE DoubleDouble<Vec<double, N>> log1p_double_double(DoubleDouble<Vec<double, N>> r) {
  using V = Vec<double, N>;
  using Split = LogSplit<N>;
  DoubleDouble<V> z = two_sum(fill<double, N>(1), r.high);
  z.low += r.low;
  const Split split(z.high);
  const V scale = (V)((1023 - split.exponent) << 52);
  const V above = split.k == 0.0 ? r.high : split.f - 1.0;
  const V below = split.k == 0.0 ? r.low : z.low * scale;
  // s = (f − 1)/(f + 1), as a double-double.
  const V by = 2.0 + above, by_lost = above - (by - 2.0);
  const V s = above / by;
  const V s_lost = (remainder(above, s, by) + (below - s * (by_lost + below))) / by;
  const V s2 = s * s;
  const DoubleDouble<V> whole = two_sum(split.k * Split::kLn2Upper, 2.0 * s);
  const DoubleDouble<V> log = quick_sum(
      whole.high,
      whole.low + (2.0 * s_lost + (atanh_tail(s2) * s2 * s + split.k * Split::kLn2Lower)));
  return {r.high == r.high ? log.high : r.high, log.low};
}

}  // namespace
}  // namespace softscope
