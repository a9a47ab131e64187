// Logarithms in float64, N at a time.
//
// log1p_nonnegative: log(1 + r) for r ≥ 0, where r is a sum of exponentials without the maximum's
// own 1. Below 2 ulp; NaN gives NaN.
// log_positive: of every finite number above 0, denormal ones too. Below 2 ulp, or 2^-52 if k·ln 2
// and log f cancel.
#pragma once

#include "simd/vec.h"

namespace softscope {
namespace {

// The series Σ 2·s^(2i+1)/(2i+1) from the third power on, divided by s³. For |s| ≤ 0.1716 the
// remainder is below 2^-57 of log f = 2·atanh(s).
template <class V>
SOFTSCOPE_INLINE V atanh_tail(V s2) {
  V q = s2 * (2.0 / 21.0) + 2.0 / 19.0;
  q = q * s2 + 2.0 / 17.0;
  q = q * s2 + 2.0 / 15.0;
  q = q * s2 + 2.0 / 13.0;
  q = q * s2 + 2.0 / 11.0;
  q = q * s2 + 2.0 / 9.0;
  q = q * s2 + 2.0 / 7.0;
  q = q * s2 + 2.0 / 5.0;
  return q * s2 + 2.0 / 3.0;
}

// z = 2^k·f with f in [√½, √2), for z ≥ 1.
template <int N>
struct LogSplit {
  using Bits = Vec<uint64_t, N>;
  static constexpr double kLn2Upper = 0x1.62e42fefa38p-1, kLn2Lower = 0x1.ef35793c7673p-45;
  Vec<double, N> f, k;
  Bits exponent;

  SOFTSCOPE_INLINE explicit LogSplit(Vec<double, N> z) {
    constexpr uint64_t kHalfRoot = 0x3fe6a09e667f3bcd;  // √½
    exponent = ((Bits)z - kHalfRoot) >> 52;
    f = (Vec<double, N>)((Bits)z - (exponent << 52));
    // The exponent as a float64: put its bits below those of 2^52, then subtract that.
    k = (Vec<double, N>)(exponent | 0x4330000000000000u) - 0x1p52;
  }
};

template <int N>
SOFTSCOPE_INLINE Vec<double, N> log1p_nonnegative(Vec<double, N> r) {
  // log f = 2·atanh(s), s = (f − 1)/(f + 1). For k = 0, f − 1 is r itself, with all its digits.
  using Split = LogSplit<N>;
  const Split z(1.0 + r);
  const Vec<double, N> above = z.k == 0.0 ? r : z.f - 1.0;
  const Vec<double, N> s = above / (2.0 + above);
  const Vec<double, N> s2 = s * s;
  const Vec<double, N> log_f = 2.0 * s + atanh_tail(s2) * s2 * s;
  const Vec<double, N> sum = z.k * Split::kLn2Upper + (log_f + z.k * Split::kLn2Lower);
  return r == r ? sum : r;
}

template <int N>
SOFTSCOPE_INLINE Vec<double, N> log_positive(Vec<double, N> x) {
  using Bits = Vec<uint64_t, N>;
  using Split = LogSplit<N>;
  // x = 2^k·f as in LogSplit, which knows no negative k: 1024 is added and taken off again.
  const auto denormal = x < 0x1p-1022;
  x = denormal ? x * 0x1p54 : x;
  const Bits exponent = ((Bits)x - 0x3fe6a09e667f3bcdu + (uint64_t{1024} << 52)) >> 52;
  const Vec<double, N> f = (Vec<double, N>)((Bits)x - ((exponent - 1024) << 52));
  const Vec<double, N> k =
      (Vec<double, N>)(exponent | 0x4330000000000000u) -
      (denormal ? fill<double, N>(0x1p52 + 1078) : fill<double, N>(0x1p52 + 1024));
  const Vec<double, N> above = f - 1.0;
  const Vec<double, N> s = above / (2.0 + above);
  const Vec<double, N> s2 = s * s;
  const Vec<double, N> log_f = 2.0 * s + atanh_tail(s2) * s2 * s;
  return k * Split::kLn2Upper + (log_f + k * Split::kLn2Lower);
}

}  // namespace
}  // namespace softscope
