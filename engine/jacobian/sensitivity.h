// s = p^(2−α) of weights p: how strongly a weight responds to its logit.
#pragma once

#include "simd/exp.h"
#include "simd/log.h"

namespace softscope {
namespace {

// p^q for p in (0, 1] and 0 < q < 1, as exp(q·log p) in float64. The relative error is at most
// (2 + 3·|log p|)·2^-53. p may be rounded to a little more than 1.
template <int N>
SOFTSCOPE_INLINE Vec<double, N> power(Vec<double, N> p, Vec<double, N> q) {
  using V = Vec<double, N>;
  const V log = q * log_positive<N>(p);
  // exp stops at normal numbers; one below is computed 2^64 times as large.
  const auto denormal = log < -708.0;
  const V lifted = exp_nonpositive<N>(denormal ? log + 0x1.62e42fefa39efp+5 : log);
  return denormal ? lifted * 0x1p-64 : lifted;
}

template <int N>
SOFTSCOPE_INLINE Vec<float, N> power(Vec<float, N> p, const double* q) {
  constexpr int D = N / 2;
  Vec<double, D> lower, upper;
  for (int i = 0; i < D; ++i) {
    lower[i] = p[i];
    upper[i] = p[i + D];
  }
  lower = power<D>(lower, load_raw<double, D>(q));
  upper = power<D>(upper, load_raw<double, D>(q + D));
  Vec<float, N> s;
  for (int i = 0; i < D; ++i) {
    s[i] = static_cast<float>(lower[i]);
    s[i + D] = static_cast<float>(upper[i]);
  }
  return s;
}

template <int N>
SOFTSCOPE_INLINE Vec<double, N> power(Vec<double, N> p, const double* q) {
  return power<N>(p, load_raw<double, N>(q));
}

// s = p^q of N weights, q = 2 − α of each lane. Plain: q is 1 everywhere. Where p is not positive,
// s is p: 0 outside the support, and NaN stays NaN.
template <class C, int N, bool Plain>
struct Sensitivity {
  SOFTSCOPE_INLINE void set(int, double) {}
  SOFTSCOPE_INLINE Vec<C, N> of(Vec<C, N> p) const { return p; }
};

template <class C, int N>
struct Sensitivity<C, N, false> {
  C kinds[N] = {};  // of each lane: 0 for q = 1, 1 for q = 0, 2 for q = ½, 3 for any other
  double exponents[N] = {};
  bool some[4] = {};  // whether any lane is of this kind

  SOFTSCOPE_INLINE void set(int lane, double exponent) {
    const int k = exponent == 1 ? 0 : exponent == 0 ? 1 : exponent == 0.5 ? 2 : 3;
    kinds[lane] = static_cast<C>(k);
    exponents[lane] = exponent;
    some[k] = true;
  }
  SOFTSCOPE_INLINE Vec<C, N> of(Vec<C, N> p) const {
    Vec<C, N> s = p;
    const Vec<C, N> kind = load_raw<C, N>(kinds);
    if (some[1]) s = kind == C(1) ? fill<C, N>(1) : s;
    if (some[2]) {
      Vec<C, N> root;
      for (int i = 0; i < N; ++i) {
        root[i] = sizeof(C) == 4 ? static_cast<C>(__builtin_sqrtf(static_cast<float>(p[i])))
                                 : static_cast<C>(__builtin_sqrt(static_cast<double>(p[i])));
      }
      s = kind == C(2) ? root : s;
    }
    if (some[3]) {
      const Vec<C, N> other = power<N>(p, exponents);
      s = kind == C(3) ? (p < kInfinity<C> ? other : p) : s;
    }
    return p > C(0) ? s : p;
  }
};

}  // namespace
}  // namespace softscope
