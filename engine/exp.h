// exp of float32 numbers ≤ 0: what a softmax needs once the maximum is subtracted.
//
// Error below 1 ulp while exp(x) is a normal number, x ≥ −87.33; over every such float32 it is 0.90
// with fused multiply-add, 0.99 without. Below, a rounded denormal; from −87.69 down, 0. NaN: NaN.
#pragma once

#include "vec.h"

namespace softscope {
namespace {

template <int N>
[[gnu::always_inline]] inline Vec<float, N> exp_nonpositive(Vec<float, N> x) {
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
  x = max<N>(fill<N>(kLowest), x);
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

}  // namespace
}  // namespace softscope
