// log(1 + r) of float64 numbers r ≥ 0, N at a time: what is left of a sum of exponentials once the
// maximum's own 1 is taken out. Below 2 ulp; NaN: NaN.
#pragma once

#include "vec.h"

namespace softscope {
namespace {

template <int N>
SOFTSCOPE_INLINE Vec<double, N> log1p_nonnegative(Vec<double, N> r) {
  // 1 + r = 2^k·f with f in [√½, √2); then log f = 2·atanh(s), s = (f − 1)/(f + 1). For k = 0 the
  // difference f − 1 is r itself, with all its digits.
  const Vec<double, N> z = 1.0 + r;
  const Vec<uint64_t, N> bits = (Vec<uint64_t, N>)z;
  constexpr uint64_t kHalfRoot = 0x3fe6a09e667f3bcd;  // √½
  const Vec<uint64_t, N> exponent = (bits - kHalfRoot) >> 52;
  const Vec<double, N> f = (Vec<double, N>)(bits - (exponent << 52));
  // The exponent as a float64: its bits below those of 2^52.
  const Vec<double, N> k = (Vec<double, N>)(exponent | 0x4330000000000000u) - 0x1p52;
  const Vec<double, N> above = k == 0.0 ? r : f - 1.0;
  const Vec<double, N> s = above / (2.0 + above);
  const Vec<double, N> s2 = s * s;
  // Σ 2·s^(2i+1)/(2i+1), |s| ≤ 0.1716: what is left out is below 2^-57 of the result.
  Vec<double, N> q = s2 * (2.0 / 21.0) + 2.0 / 19.0;
  q = q * s2 + 2.0 / 17.0;
  q = q * s2 + 2.0 / 15.0;
  q = q * s2 + 2.0 / 13.0;
  q = q * s2 + 2.0 / 11.0;
  q = q * s2 + 2.0 / 9.0;
  q = q * s2 + 2.0 / 7.0;
  q = q * s2 + 2.0 / 5.0;
  q = q * s2 + 2.0 / 3.0;
  const Vec<double, N> log_f = 2.0 * s + q * s2 * s;
  constexpr double kLn2Upper = 0x1.62e42fefa38p-1, kLn2Lower = 0x1.ef35793c7673p-45;
  const Vec<double, N> sum = k * kLn2Upper + (log_f + k * kLn2Lower);
  return r == r ? sum : r;
}

}  // namespace
}  // namespace softscope
