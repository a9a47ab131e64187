// The soft cap c·tanh(x/c) on scores, and its derivative.
#pragma once

#include "simd/exp.h"

namespace softscope {
namespace {

// exp(y) − 1 for |y| ≤ 0.35, by its series.
template <int N>
SOFTSCOPE_INLINE Vec<double, N> small_expm1(Vec<double, N> y) {
  return y + y * y * DoubleExp::tail(y);
}
template <int N>
SOFTSCOPE_INLINE Vec<float, N> small_expm1(Vec<float, N> y) {
  Vec<float, N> q = y * 0x1.a01a02p-13f + 0x1.6c16c2p-10f;
  q = q * y + 0x1.111112p-7f;
  q = q * y + 0x1.555556p-5f;
  q = q * y + 0x1.555556p-3f;
  q = q * y + 0.5f;
  return y + y * y * q;
}

// tanh within a few ulp, from e = exp(−2|x|), or from the series where 1 − e would cancel.
template <class C, int N>
SOFTSCOPE_INLINE Vec<C, N> tanh(Vec<C, N> x) {
  const Vec<C, N> y = x < C(0) ? x * C(2) : x * C(-2);
  const Vec<C, N> large = C(1) - exp_nonpositive<N>(y);
  const Vec<C, N> small = -small_expm1<N>(y > C(-0.35) ? y : Vec<C, N>{});
  const Vec<C, N> f = y > C(-0.35) ? small : large;
  const Vec<C, N> t = f / (C(2) - f);
  return x < C(0) ? -t : t;
}

// c·tanh(x/c), and its derivative 1 − tanh² written as 4e/(1 + e)², which does not cancel.
template <class C, int N>
SOFTSCOPE_INLINE Vec<C, N> capped(Vec<C, N> x, C cap, Vec<C, N>& slope) {
  const Vec<C, N> s = x / cap;
  const Vec<C, N> e = exp_nonpositive<N>(s < C(0) ? s * C(2) : s * C(-2));
  slope = C(4) * e / ((C(1) + e) * (C(1) + e));
  return cap * tanh<C, N>(s);
}

}  // namespace
}  // namespace softscope
