// exp of numbers ≤ 0: all that a softmax needs once the maximum is subtracted.
//
// float32: below 1 ulp wherever exp(x) is a normal number, x ≥ −87.33. Measured over every such
// float32: 0.90 with fused multiply-add, 0.99 without. Below that a rounded denormal, and 0 from
// −87.69 down.
// float64: below 1 ulp for x ≥ −708.4, and 0 from −708.75 down.
// NaN gives NaN.
//
// K vectors at a time, each step for all of them before the next step. One vector after the other
// takes a quarter longer: the processor does not look far enough ahead to overlap them.
#pragma once

#include "simd/vec.h"

namespace softscope {
namespace {

// With Low, the argument is x + low, where low is at most a few roundings of x.
template <int N, int K, bool Low = false>
SOFTSCOPE_INLINE void exp_nonpositive(Vec<float, N> (&x)[K],
                                      const Vec<float, N> (*low)[K] = nullptr) {
  // exp(x) = 2^k · exp(r), x = k·ln 2 + r, |r| ≤ ln(2)/2.
  constexpr float kLowest = -88.0f;  // k = −127 here, where the scale below is exactly 0
  constexpr float kLog2E = 0x1.715476p+0f;
  // ln 2 in two parts (Cody and Waite). The upper part has 16 bits, so that k times it is exact.
  // The float nearest to ln 2 would need a fused multiply-add for r to be right, and even with one
  // exp would be off by 2 ulp at the far end.
  constexpr float kLn2Upper = 0x1.62e4p-1f;
  constexpr float kLn2Lower = 0x1.7f7d1cp-20f;
  // Adding 1.5·2^23 leaves a rounded integer in the sum's last bits; 127 more is the exponent bias.
  constexpr float kRound = 0x1.8p+23f + 127.0f;

  Vec<float, N> biased[K], q[K];
  // In this order NaN stays NaN: max then returns its second argument.
  for (auto& v : x) v = max(fill<float, N>(kLowest), v);
  for (int c = 0; c < K; ++c) biased[c] = x[c] * kLog2E + kRound;
  for (int c = 0; c < K; ++c) q[c] = biased[c] - kRound;
  for (int c = 0; c < K; ++c) x[c] = x[c] - q[c] * kLn2Upper;
  for (int c = 0; c < K; ++c) x[c] = x[c] - q[c] * kLn2Lower;
  if constexpr (Low) {
    for (int c = 0; c < K; ++c) x[c] += (*low)[c];
  }
  // 1 + r + r²·q(r), minimax in relative error: 0.05 · 2^-24 with rounded coefficients. Degree 5
  // would save one step and cost a whole ulp.
  for (int c = 0; c < K; ++c) q[c] = x[c] * 0x1.6a4eccp-10f + 0x1.12399cp-7f;
  for (int c = 0; c < K; ++c) q[c] = q[c] * x[c] + 0x1.5558b0p-5f;
  for (int c = 0; c < K; ++c) q[c] = q[c] * x[c] + 0x1.555492p-3f;
  for (int c = 0; c < K; ++c) q[c] = q[c] * x[c] + 0x1.fffffcp-2f;
  // Horner to the end is shortest, but without fusing it rounds the large product r·(1 + …), and
  // the error is 1.17 ulp.
  for (int c = 0; c < K; ++c) q[c] = kFusedMultiplyAdd ? q[c] * x[c] + 1.0f : (q[c] * x[c]) * x[c];
  for (int c = 0; c < K; ++c) q[c] = kFusedMultiplyAdd ? q[c] * x[c] + 1.0f : (q[c] + x[c]) + 1.0f;
  // 2^k made from its bits. Multiplied rather than added to the exponent: so NaN stays NaN, and a
  // denormal result is rounded where the addition would give garbage.
  for (int c = 0; c < K; ++c) {
    x[c] = q[c] * (Vec<float, N>)((Vec<uint32_t, N>)biased[c] << 23);
  }
}

// exp(x) = 2^k · exp(r) in float64: constants and polynomial that the plain and the more precise
// versions share.
struct DoubleExp {
  static constexpr double kLog2E = 0x1.71547652b82fep+0;
  static constexpr double kLn2Upper = 0x1.62e42fefap-1;  // 36 bits: k times it is exact
  static constexpr double kLn2Lower = 0x1.cf79abc9e3b39p-40;
  static constexpr double kRound = 0x1.8p+52 + 1023.0;
  // Taylor coefficients to degree 13: the remainder r^14/14! is below 0.02 ulp of 1.
  static constexpr double kTaylor[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
                                       1.0 / 3628800.0,    1.0 / 362880.0,    1.0 / 40320.0,
                                       1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,
                                       1.0 / 24.0,         1.0 / 6.0,         0.5};

  // q = (exp(r) − 1 − r) / r².
  template <int N, int K>
  SOFTSCOPE_INLINE static void tail(const Vec<double, N> (&r)[K], Vec<double, N> (&q)[K]) {
    for (int c = 0; c < K; ++c) q[c] = r[c] * kTaylor[0] + kTaylor[1];
#pragma GCC unroll 16
    for (int i = 2; i < 12; ++i) {
      for (int c = 0; c < K; ++c) q[c] = q[c] * r[c] + kTaylor[i];
    }
  }
  template <class V>
  SOFTSCOPE_INLINE static V tail(V r) {
    V q = r * kTaylor[0] + kTaylor[1];
#pragma GCC unroll 16
    for (int i = 2; i < 12; ++i) q = q * r + kTaylor[i];
    return q;
  }
};

// x ← 2^k · exp(x), |x| ≤ ln(2)/2. `biased` is k + kRound, whose last bits are the exponent.
template <int N, int K>
SOFTSCOPE_INLINE void exp_reduced(Vec<double, N> (&x)[K], const Vec<double, N> (&biased)[K]) {
  Vec<double, N> q[K];
  DoubleExp::tail<N, K>(x, q);
  for (int c = 0; c < K; ++c) q[c] = kFusedMultiplyAdd ? q[c] * x[c] + 1.0 : (q[c] * x[c]) * x[c];
  for (int c = 0; c < K; ++c) q[c] = kFusedMultiplyAdd ? q[c] * x[c] + 1.0 : (q[c] + x[c]) + 1.0;
  for (int c = 0; c < K; ++c) {
    x[c] = q[c] * (Vec<double, N>)((Vec<uint64_t, N>)biased[c] << 52);
  }
}
template <int N>
SOFTSCOPE_INLINE Vec<double, N> exp_reduced(Vec<double, N> r, Vec<double, N> biased) {
  Vec<double, N> x[1] = {r}, b[1] = {biased};
  exp_reduced<N, 1>(x, b);
  return x[0];
}

template <int N, int K>
SOFTSCOPE_INLINE void exp_nonpositive(Vec<double, N> (&x)[K]) {
  using E = DoubleExp;
  constexpr double kLowest = -709.0;  // k = −1023 here, where the scale is exactly 0
  Vec<double, N> biased[K], k[K];
  for (auto& v : x) v = max(fill<double, N>(kLowest), v);
  for (int c = 0; c < K; ++c) biased[c] = x[c] * E::kLog2E + E::kRound;
  for (int c = 0; c < K; ++c) k[c] = biased[c] - E::kRound;
  for (int c = 0; c < K; ++c) x[c] = (x[c] - k[c] * E::kLn2Upper) - k[c] * E::kLn2Lower;
  exp_reduced<N, K>(x, biased);
}

template <int N>
SOFTSCOPE_INLINE Vec<float, N> exp_nonpositive(Vec<float, N> x) {
  Vec<float, N> one[1] = {x};
  exp_nonpositive<N, 1>(one);
  return one[0];
}
template <int N>
SOFTSCOPE_INLINE Vec<double, N> exp_nonpositive(Vec<double, N> x) {
  Vec<double, N> one[1] = {x};
  exp_nonpositive<N, 1>(one);
  return one[0];
}

// In float64 on behalf of float32: within 2^-34, in half the steps. exp(0) is exactly 1 here too.
template <int N, int K>
SOFTSCOPE_INLINE void exp_for_float32(Vec<double, N> (&x)[K]) {
  constexpr double kLowest = -709.0;
  constexpr double kLog2E = 0x1.71547652b82fep+0, kLn2 = 0x1.62e42fefa39efp-1;
  constexpr double kRound = 0x1.8p+52 + 1023.0;
  constexpr double kMinimax[] = {0x1.9f089cd48bb13p-13,
                                 0x1.6d8d07e74fc4fp-10,
                                 0x1.111270b000e03p-7,
                                 0x1.55548dc32e610p-5,
                                 0x1.555554433c25dp-3,
                                 0x1.0000003a2445ep-1,
                                 1.0,
                                 1.0};

  Vec<double, N> biased[K], q[K];
  for (auto& v : x) v = max(fill<double, N>(kLowest), v);
  for (int c = 0; c < K; ++c) biased[c] = x[c] * kLog2E + kRound;
  for (int c = 0; c < K; ++c) q[c] = biased[c] - kRound;
  for (int c = 0; c < K; ++c) x[c] = x[c] - q[c] * kLn2;
  for (int c = 0; c < K; ++c) q[c] = x[c] * kMinimax[0] + kMinimax[1];
#pragma GCC unroll 8
  for (int i = 2; i < 8; ++i) {
    for (int c = 0; c < K; ++c) q[c] = q[c] * x[c] + kMinimax[i];
  }
  for (int c = 0; c < K; ++c) {
    x[c] = q[c] * (Vec<double, N>)((Vec<uint64_t, N>)biased[c] << 52);
  }
}

}  // namespace
}  // namespace softscope
