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

// The trace Σ s_i·(1 − s_i/Σs) of n weights, s = p^(2−α), padded with zeros to a whole vector. The
// largest s stays out of the sums: 1 − s/Σs would cancel there.
template <int D>
double sparse_trace(const double* p, size_t n, double alpha, double strongest) {
  using V = Vec<double, D>;
  const double exponent = 2 - alpha, log_strongest = ::log(strongest);
  const double log_top = exponent * log_strongest;
  V ties{}, sum{}, squares{};
  for (size_t i = 0; i < n; i += D) {
    const V at = load_raw<double, D>(p + i), none{};
    const V s = exp_nonpositive<D>(exponent * (log_positive<D>(at) - log_strongest));
    const auto other = (at > 0.0) & (at != strongest);
    ties += at == strongest ? fill<double, D>(1) : none;
    sum += other ? s : none;
    squares += other ? s * s : none;
  }
  const double tops = sum_lanes<double, D>(ties), others = sum_lanes<double, D>(sum);
  const double total = tops + others;
  if (alpha <= 2) {
    const double twice = tops * ((tops - 1) + others) + others * total;
    return (twice - sum_lanes<double, D>(squares)) / total * ::exp(log_top);
  }
  // s may leave the range, though the trace does not: one s, however large, does no harm.
  double trace = 0;
  bool first = true;
  for (size_t i = 0; i < n; ++i) {
    if (first && p[i] == strongest) {
      first = false;
    } else {
      const double log_s = exponent * ::log(p[i]);
      trace += ::exp(log_s) * (1 / total + (1 - ::exp(log_s - log_top) / total));
    }
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
  V entropy{}, collision{}, highest{}, lowest = fill<double, D>(1);
  for (size_t i = 0; i < size; i += D) {
    const V p = load_raw<double, D>(weights + i), none{};
    entropy -= p > 0.0 ? p * log_positive<D>(p) : none;
    collision += p * p;
    highest = max(p, highest);
    lowest = (p > 0.0) & (p < lowest) ? p : lowest;
  }
  const double peak = max_lane<double, D>(highest), least = -max_lane<double, D>(-lowest);
  to[kTau] = tau_of(at);
  to[kSize] = static_cast<double>(size);
  to[kEntropy] = sum_lanes<double, D>(entropy);
  to[kCollision] = sum_lanes<double, D>(collision);
  to[kPeak] = peak;
  to[kTrace] = sparse_trace<D>(weights, size, at.alpha, at.alpha > 2 ? least : peak);
}

}  // namespace
}  // namespace softscope
