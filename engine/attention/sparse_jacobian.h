// The backward pass through the weights of one row of sparse attention: from dp, the gradient of
// the weights, to ds = J·dp, and to the gradient of alpha.
//
//   J = diag(s) − s·sᵀ/Σs,  s = p^(2−α)          ∂p/∂α = −J·g,  g = ∂/∂β [(p^β − 1)/β],  β = α − 1
//
// J maps constants to 0. So dp counts from its value at the largest s, and g from its value at the
// largest weight: else they would cancel near one-hot.
#pragma once

#include "attention/sparse_statistics.h"

namespace softscope {
namespace {

// g = (log p)²·ψ(β·log p), ψ(y) = (y·e^y − e^y + 1)/y², by its series where that form cancels. For
// p > 0 and β ≤ 1.
template <int D>
SOFTSCOPE_INLINE Vec<double, D> alpha_pull(Vec<double, D> p, double beta) {
  using V = Vec<double, D>;
  const V log = log_positive<D>(p), y = beta * log;
  const V power = exp_nonpositive<D>(y);
  V series{}, small = y > -1.0 ? y : V{};
  double factorial = 6402373705728000.0 * 19;  // 19!
#pragma GCC unroll 1
  for (int k = 17; k >= 0; --k) {  // Σ y^k·(k + 1)/(k + 2)!
    series = series * small + (k + 1) / factorial;
    factorial /= k + 2;
  }
  const V direct = (y * power - (power - 1.0)) / (y * y);
  return log * log * (y > -1.0 ? series : direct);
}

// The same for α > 2, up to a constant, which J maps to 0: beside it, small weights, whose s is
// large, would lose their g.
template <int D>
SOFTSCOPE_INLINE Vec<double, D> steep_alpha_pull(Vec<double, D> log_p, double beta) {
  return exp_nonpositive<D>(beta * log_p) * (log_p - 1 / beta) / beta;
}

// value·e^log in two factors, so that neither overflows before the product does; 0 stays 0.
template <int D>
SOFTSCOPE_INLINE Vec<double, D> times_exp(Vec<double, D> value, Vec<double, D> log) {
  using V = Vec<double, D>;
  const V half = exp_nonpositive<D>(log > 0.0 ? -0.5 * log : 0.5 * log);
  const V factor = log > 0.0 ? 1.0 / half : half;
  return value == 0.0 ? V{} : (value * factor) * factor;
}

// J·v for α > 2, where s may leave the range: `n` entries, none without weight, given by log p.
// Whole vectors are read and written. One s, however large, does no harm: with it, J is nearly
// diag(s) of the others, and the entry at the largest s is minus the sum of theirs.
template <int D>
void steep_product(const double* log_p, const double* v, size_t n, double alpha, double* out) {
  using V = Vec<double, D>;
  size_t top = 0;
  for (size_t i = 1; i < n; ++i) top = log_p[i] < log_p[top] ? i : top;
  double second = kInfinity<double>;  // the lowest log p but for that
  for (size_t i = 0; i < n; ++i) second = i != top && log_p[i] < second ? log_p[i] : second;
  if (n == 1) second = 0;
  const double most = alpha < 1e300 ? alpha : 1e300;  // more would only let logarithms overflow
  const double exponent = 2 - most, share = ::exp(exponent * (second - log_p[top]));
  double total = 0, moved = 0;
  for (size_t i = 0; i < n; i += D) {
    const V log = load_raw<double, D>(log_p + i), beside = load_raw<double, D>(v + i) - v[top];
    const V s = exp_nonpositive<D>(exponent * (log - second));
    for (size_t l = 0; l < D && i + l < n; ++l) {
      if (i + l == top) continue;
      total += s[l];
      moved += s[l] * beside[l];
    }
  }
  moved /= n == 1 ? 1 : 1 + share * total;
  const double base = v[top];
  for (size_t i = 0; i < n; i += D) {
    const V log = load_raw<double, D>(log_p + i), beside = load_raw<double, D>(v + i) - base;
    store_raw<double, D>(out + i, times_exp<D>(beside - share * moved, exponent * log));
  }
  out[top] =
      n == 1 ? 0 : times_exp<2>(fill<double, 2>(-moved), fill<double, 2>(exponent * second))[0];
}

}  // namespace
}  // namespace softscope
