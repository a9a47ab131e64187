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

// Sums over the weights of a row for α ≤ 2. The largest s = p^(2−α) stays out of the sums of s, and
// so do those as large: 1 − s/Σs would cancel there.
template <int D>
struct SupportSums {
  using V = Vec<double, D>;
  V size{}, entropy{}, collision{}, ties{}, s{}, squares{};

  SOFTSCOPE_INLINE void add(const Term<D>& t, double peak) {
    const V one = fill<double, D>(1), none{};
    const auto largest = t.p == peak;
    const V other = largest ? none : t.u;
    size += t.p > 0.0 ? one : none;
    entropy -= t.p * log_positive<D>(t.p > 0.0 ? t.p : one);
    collision += t.p * t.p;
    ties += largest ? one : none;
    s += other;
    squares += other * other;
  }

  // Σ s_i·(1 − s_i/Σs).
  SOFTSCOPE_INLINE double trace(double top) const {
    const double tops = sum_lanes<double, D>(ties), others = sum_lanes<double, D>(s);
    const double total = tops * top + others;
    const double of_tops = tops * top * ((tops - 1) * top + others);
    return (of_tops + others * total - sum_lanes<double, D>(squares)) / total;
  }
};

// The same trace for α > 2, where s may leave the range though the trace does not: the largest s,
// here that of the smallest weight, does no harm however large.
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
void sparse_statistics(const SparseRoot& at, C* logits, size_t count, double* scratch, double* to) {
  constexpr int kOfC = sizeof(C) == 8 ? D : 2 * D;  // as many as a vector of C holds
  store_raw<C, kOfC>(logits + count, fill<C, kOfC>(-kInfinity<C>));
  with_root<C>(at, [&]<class R>(const R& rooted) {
    SupportSums<D> sums;
    Term<D> top;
    size_t many = 0;
    if constexpr (__is_same(decltype(rooted.form), SingleGeneral)) {
      constexpr int N = 2 * D;
      const auto half = [&](const Weighed<C, N>& w, bool upper) __attribute__((always_inline)) {
        return Term<D>{widened<D>(upper ? upper_half<C, N>(w.p) : lower_half<C, N>(w.p)),
                       widened<D>(upper ? upper_half<C, N>(w.s) : lower_half<C, N>(w.s))};
      };
      top = half(weigh<C, N>(rooted, fill<C, N>(static_cast<C>(at.maximum))), false);
      for (size_t i = 0; i < count; i += N) {
        const Weighed<C, N> w = weigh<C, N>(rooted, load_raw<C, N>(logits + i));
        sums.add(half(w, false), top.p[0]);
        sums.add(half(w, true), top.p[0]);
      }
    } else {
      top = rooted.template term<D>(fill<double, D>(at.maximum));
      for (size_t i = 0; i < count; i += D) {
        const Term<D> t = rooted.template term<D>(load_wide<C, D>(logits + i));
        sums.add(t, top.p[0]);
        if constexpr (__is_same(decltype(rooted.form), Steep)) {
          many += store_above<double, D>(scratch + many, t.p, 0.0);
        }
      }
    }
    to[kTau] = tau_of(at);
    to[kSize] = sum_lanes<double, D>(sums.size);
    to[kEntropy] = sum_lanes<double, D>(sums.entropy);
    to[kCollision] = sum_lanes<double, D>(sums.collision);
    to[kPeak] = top.p[0];
    if constexpr (__is_same(decltype(rooted.form), Steep)) {
      for (size_t i = 0; i < many; ++i) scratch[i] = ::log(scratch[i]);
      to[kTrace] = steep_trace(scratch, many, at.alpha);
    } else {
      to[kTrace] = sums.trace(top.u[0]);
    }
  });
}

}  // namespace
}  // namespace softscope
