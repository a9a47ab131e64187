// exp of numbers ≤ 0: what a softmax needs once the maximum is subtracted.
//
// float32: below 1 ulp while exp(x) is a normal number, x ≥ −87.33; over every such float32 it is
// 0.90 with fused multiply-add, 0.99 without. Below, a rounded denormal; from −87.69 down, 0.
// float64: below 1 ulp for x ≥ −708.4, and 0 from −708.75 down. NaN: NaN.
#pragma once

#include "vec.h"

namespace softscope {
namespace {

template <int N>
SOFTSCOPE_INLINE Vec<float, N> exp_nonpositive(Vec<float, N> x) {
  // exp(x) = 2^k · exp(r), x = k·ln 2 + r, |r| ≤ ln(2)/2.
  constexpr float kLowest = -88.0f;  // k = −127 here, where the scale below is exactly 0
  constexpr float kLog2E = 0x1.715476p+0f;
  // ln 2 in two parts (Cody and Waite). The upper has 16 bits, so that k times it is exact: with
  // the nearest float instead, r would be right only where the processor fuses multiply and add.
  constexpr float kLn2Upper = 0x1.62e4p-1f;
  constexpr float kLn2Lower = 0x1.7f7d1cp-20f;
  // Adding 1.5·2^23 leaves the sum's last bits as a rounded integer; 127 more is the exponent's
  // bias.
  constexpr float kRound = 0x1.8p+23f + 127.0f;

  // In this order NaN stays NaN: max returns its second argument then.
  x = max(fill<float, N>(kLowest), x);
  const Vec<float, N> biased = x * kLog2E + kRound;
  const Vec<float, N> k = biased - kRound;
  const Vec<float, N> r = (x - k * kLn2Upper) - k * kLn2Lower;

  // 1 + r + r²·q(r), minimax in relative error: 0.05 · 2^-24 with the coefficients rounded.
  // Degree 5 would save one step and cost a whole ulp.
  Vec<float, N> q = r * 0x1.6a4eccp-10f + 0x1.12399cp-7f;
  q = q * r + 0x1.5558b0p-5f;
  q = q * r + 0x1.555492p-3f;
  q = q * r + 0x1.fffffcp-2f;
  // Horner to the end is the shortest, but rounds the large product r·(1 + …) where nothing is
  // fused: 1.17 ulp.
  const Vec<float, N> p = kFusedMultiplyAdd ? (q * r + 1.0f) * r + 1.0f : ((q * r) * r + r) + 1.0f;

  // 2^k from the bits. Multiplied, not added to p's exponent: NaN stays NaN, and a denormal result
  // is rounded, where the addition would give garbage.
  const Vec<uint32_t, N> bits = (Vec<uint32_t, N>)biased << 23;
  return p * (Vec<float, N>)bits;
}

// exp(x) = 2^k · exp(r) in float64: what the two steps, and more exact ways to take them, share.
struct DoubleExp {
  static constexpr double kLog2E = 0x1.71547652b82fep+0;
  static constexpr double kLn2Upper = 0x1.62e42fefap-1;  // 36 bits: k times it is exact
  static constexpr double kLn2Lower = 0x1.cf79abc9e3b39p-40;
  static constexpr double kRound = 0x1.8p+52 + 1023.0;

  // (exp(r) − 1 − r) / r². Taylor's coefficients to degree 13 of exp: what is left out is
  // r^14/14! < 0.02 ulp of 1.
  template <class V>
  SOFTSCOPE_INLINE static V tail(V r) {
    V q = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
    q = q * r + 1.0 / 39916800.0;
    q = q * r + 1.0 / 3628800.0;
    q = q * r + 1.0 / 362880.0;
    q = q * r + 1.0 / 40320.0;
    q = q * r + 1.0 / 5040.0;
    q = q * r + 1.0 / 720.0;
    q = q * r + 1.0 / 120.0;
    q = q * r + 1.0 / 24.0;
    q = q * r + 1.0 / 6.0;
    return q * r + 0.5;
  }
};

// 2^k · exp(r), |r| ≤ ln(2)/2; `biased` is k + kRound, which holds the exponent in its last bits.
template <int N>
SOFTSCOPE_INLINE Vec<double, N> exp_reduced(Vec<double, N> r, Vec<double, N> biased) {
  const Vec<double, N> q = DoubleExp::tail(r);
  const Vec<double, N> p = kFusedMultiplyAdd ? (q * r + 1.0) * r + 1.0 : ((q * r) * r + r) + 1.0;
  const Vec<uint64_t, N> bits = (Vec<uint64_t, N>)biased << 52;
  return p * (Vec<double, N>)bits;
}

template <int N>
SOFTSCOPE_INLINE Vec<double, N> exp_nonpositive(Vec<double, N> x) {
  using E = DoubleExp;
  constexpr double kLowest = -709.0;  // k = −1023 here, where the scale is exactly 0

  x = max(fill<double, N>(kLowest), x);
  const Vec<double, N> biased = x * E::kLog2E + E::kRound;
  const Vec<double, N> k = biased - E::kRound;
  return exp_reduced<N>((x - k * E::kLn2Upper) - k * E::kLn2Lower, biased);
}

}  // namespace
}  // namespace softscope
