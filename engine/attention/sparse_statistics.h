// What `Support` reports of a row of sparse weights, from the logits that may have weight.
#pragma once

#include "attention/sparse_root.h"
#include "simd/compress.h"
#include "simd/log.h"

namespace softscope {
namespace {

SOFTSCOPE_INLINE double tau_of(const SparseRoot& at) {
  const double beta = at.alpha - 1;
  if (beta > 1) return beta * at.lowest - ::exp(beta * at.root);
  if (beta == 1 || beta == 0.5) return beta * at.maximum - at.root;
  return beta * at.maximum - (beta == 0 ? 1 : ::exp(beta * at.root));
}

// Numbers as doubles, D at a time.
template <class C, int D>
SOFTSCOPE_INLINE Vec<double, D> load_wide(const C* from) {
  if constexpr (sizeof(C) == 8) {
    return load_raw<double, D>(from);
  } else {
    return widened<D>(load_raw<float, D>(from));
  }
}

// The trace Σ s_i·(1 − s_i/Σs) for α < 2, s = p^(2−α) from log p, padded with −inf to a whole
// vector; `top` is log p of the largest. Its s stays out of the sums: 1 − s/Σs would cancel there.
template <int D>
double sparse_trace(const double* log_p, size_t n, double alpha, double top) {
  using V = Vec<double, D>;
  const double exponent = 2 - alpha;
  V ties{}, sum{}, squares{};
  for (size_t i = 0; i < n; i += D) {
    const V at = load_raw<double, D>(log_p + i), none{};
    const V s = exp_nonpositive<D>(exponent * (at - top));  // in units of the largest
    const auto largest = at == top;
    ties += largest ? fill<double, D>(1) : none;
    sum += largest ? none : s;
    squares += largest ? none : s * s;
  }
  const double tops = sum_lanes<double, D>(ties), others = sum_lanes<double, D>(sum);
  const double total = tops + others;
  const double twice = tops * ((tops - 1) + others) + others * total;
  return (twice - sum_lanes<double, D>(squares)) / total * ::exp(exponent * top);
}

// The same for α > 2, where s may leave the range though the trace does not: the largest s, here
// that of the smallest weight, does no harm however large.
SOFTSCOPE_INLINE double steep_trace(const double* log_p, size_t n, double alpha) {
  const double exponent = 2 - alpha;
  size_t first = 0;
  for (size_t i = 1; i < n; ++i) first = log_p[i] < log_p[first] ? i : first;
  double total = 0, trace = 0;
  for (size_t i = 0; i < n; ++i) total += ::exp(exponent * (log_p[i] - log_p[first]));
  for (size_t i = 0; i < n; ++i) {
    const double share = ::exp(exponent * (log_p[i] - log_p[first])) / total;
    if (i != first) trace += ::exp(exponent * log_p[i]) * (1 / total + (1 - share));
  }
  return trace;
}

// Of `count` logits, among them all with weight. Behind both there is room for a vector more.
template <class C, int D>
void sparse_statistics(const SparseRoot& at, C* logits, size_t count, double* weights, double* to) {
  using V = Vec<double, D>;
  for (size_t i = count; i < count + D; ++i) logits[i] = -kInfinity<C>;
  size_t size = 0;
  with_root<C>(at, [&](const auto& rooted) {
    for (size_t i = 0; i < count; i += D) {
      const V p = rooted.template term<D>(load_wide<C, D>(logits + i)).p;
      size += store_above<double, D>(weights + size, p, 0.0);
    }
  });
  for (size_t i = size; i < size + D; ++i) weights[i] = 0;
  V entropy{}, collision{}, highest{}, top = fill<double, D>(-kInfinity<double>);
  for (size_t i = 0; i < size; i += D) {
    const V p = load_raw<double, D>(weights + i);
    const V log = p > 0.0 ? log_positive<D>(p) : fill<double, D>(-kInfinity<double>);
    entropy -= p > 0.0 ? p * log : V{};
    collision += p * p;
    highest = max(p, highest);
    top = max(log, top);
    store_raw<double, D>(weights + i, log);
  }
  to[kTau] = tau_of(at);
  to[kSize] = static_cast<double>(size);
  to[kEntropy] = sum_lanes<double, D>(entropy);
  to[kCollision] = sum_lanes<double, D>(collision);
  to[kPeak] = max_lane<double, D>(highest);
  to[kTrace] = at.alpha > 2    ? steep_trace(weights, size, at.alpha)
               : at.alpha == 2 ? static_cast<double>(size) - 1
                               : sparse_trace<D>(weights, size, at.alpha, max_lane<double, D>(top));
}

}  // namespace
}  // namespace softscope
