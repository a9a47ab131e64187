// α-entmax for α > 2, where a weight leaves 0 with infinite slope.
//
// Next to the threshold s + e of newton.h cancels, and its root 1/β < 1 turns one lost digit into
// many. So everything is counted from y, the lowest logit with weight, and its weight q: with
// b = (β·(x − y)/T)^(1/β), the weights are p = (q^β + b^β)^(1/β). y is the lowest logit with
// Σ b < 1, which a comparison decides. And p is the β-norm of (q, b): convex in q, with a slope of
// at most 1, so from above every Newton step stays above the root, and at least quarters
// (Σ p − 1)·slope. In logarithms, which hold every α and T; all in float64.
#pragma once

#include <cmath>

#include "entmax/newton.h"
#include "simd/storage.h"

namespace softscope {
namespace {

struct Steep {
  double beta, inverse_beta, log_scale;  // log(β/T)
  double lowest = 0, log_q = 0;

  Steep(double b, double temperature)
      : beta(b), inverse_beta(1 / b), log_scale(::log(b) - ::log(temperature)) {}

  // log b, at most 0: where b ≥ 1, it only matters that it is. −inf where x ≤ y.
  template <int D>
  SOFTSCOPE_INLINE Vec<double, D> log_b(Vec<double, D> x) const {
    const Vec<double, D> gap = x - lowest;
    const Vec<double, D> log = (log_positive<D>(gap) + log_scale) * inverse_beta;
    return gap > 0.0 ? (log < 0.0 ? log : Vec<double, D>{}) : fill<double, D>(-kInfinity<double>);
  }
  template <int D>
  SOFTSCOPE_INLINE Vec<double, D> log_p(Vec<double, D> log_b) const {
    const Vec<double, D> apart = log_b - log_q;
    const Vec<double, D> lower = exp_nonpositive<D>(-beta * max(apart, -apart));
    return max(log_b, fill<double, D>(log_q)) + log1p_nonnegative<D>(lower) * inverse_beta;
  }
  // The weight of a logit.
  template <int D>
  SOFTSCOPE_INLINE Term<D> term(Vec<double, D> x) const {
    const Vec<double, D> p = exp_nonpositive<D>(log_p<D>(log_b<D>(x)));
    return {x >= lowest ? p : Vec<double, D>{}, Vec<double, D>{}};
  }
};

// f = Σ p and g = Σ u of the terms that `of` makes of n entries; where there is none, of −inf.
template <int D, class Of>
NewtonSums sum_terms(const double* x, size_t n, const Of& of) {
  constexpr size_t kFew = 256;  // entries in one plain sum
  CompensatedSum<double> f, g;
  for (size_t first = 0; first < n; first += kFew) {
    const size_t end = n - first < kFew ? n : first + kFew;
    Vec<double, D> part_f{}, part_g{};
    for (size_t i = first; i < end; i += D) {
      const Term<D> t =
          of(i + D <= end ? load_raw<double, D>(x + i)
                          : load_first<double, D>(x + i, end - i, -kInfinity<double>));
      part_f += t.p;
      part_g += t.u;
    }
    f.add(sum_lanes<double, D>(part_f));
    g.add(sum_lanes<double, D>(part_g));
  }
  NewtonSums sums;
  sums.f = f.total + f.lost;
  sums.g = g.total + g.lost;
  return sums;
}

// Σ b of n logits.
template <int D>
double sum_b(const Steep& form, const double* x, size_t n) {
  return sum_terms<D>(x, n,
                      [&](Vec<double, D> v) __attribute__((always_inline)) {
                        return Term<D>{exp_nonpositive<D>(form.template log_b<D>(v)),
                                       Vec<double, D>{}};
                      })
      .f;
}

SOFTSCOPE_INLINE void swap(double& a, double& b) {
  const double kept = a;
  a = b;
  b = kept;
}

// Finds the lowest logit with weight, by quickselect, and moves all that have weight to the front.
// Returns how many they are.
template <int D>
size_t find_lowest(Steep& form, double* x, size_t count) {
  size_t with = 0, open = count;  // [0, with) have weight, [with, open) may have
  double found = 0;
  uint64_t dice = 1;
  while (with < open) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    const double pivot = x[with + (dice >> 33) % (open - with)];
    size_t above = with, same = with;  // [with, above) > pivot, [above, same) = pivot
    for (size_t i = with; i < open; ++i) {
      if (x[i] < pivot) continue;
      swap(x[i], x[same]);
      if (x[same] > pivot) swap(x[same], x[above++]);
      ++same;
    }
    form.lowest = pivot;
    if (sum_b<D>(form, x, above) < 1) {
      found = pivot;
      with = same;
    } else {
      open = above;
    }
  }
  form.lowest = found;
  return with;
}

// Finds y and q. Returns Σ p there, which is 1 up to rounding. Overwrites the logits.
template <int D>
double solve(Steep& form, double* x, size_t count) {
  const size_t size = find_lowest<D>(form, x, count);
  size_t above = 0;
  for (size_t i = 0; i < size; ++i) {
    if (x[i] > form.lowest) swap(x[i], x[above++]);
  }
  const auto ties = static_cast<double>(size - above);
  // Σ p is at least q·size, and at least Σ b + q·ties: both bound the root from above.
  const double even = 1 / static_cast<double>(size);
  double q = (1 - sum_b<D>(form, x, above)) / ties;
  q = q < even ? q : even;
  for (size_t i = 0; i < above; i += D) {
    const size_t left = above - i < D ? above - i : D;
    store_first<double, D>(
        x + i, left,
        form.template log_b<D>(load_first<double, D>(x + i, left, -kInfinity<double>)));
  }
  for (int i = 0;; ++i) {
    form.log_q = ::log(q);
    NewtonSums sums =
        sum_terms<D>(x, above, [&](Vec<double, D> log_b) __attribute__((always_inline)) {
          const Vec<double, D> log = form.template log_p<D>(log_b), none{};
          const auto some = log_b > -kInfinity<double>;
          const Vec<double, D> u = exp_nonpositive<D>((form.beta - 1) * (form.log_q - log));
          return Term<D>{some ? exp_nonpositive<D>(log) : none, some ? u : none};
        });
    sums.f += ties * q;
    const double next = q - (sums.f - 1) / (sums.g + ties);
    if (!(next < q * (1 - kNear)) || i == kMostSteps) return sums.f;
    q = next > 0x1p-1000 ? next : 0x1p-1000;  // below the rounding of the sum, but with a logarithm
  }
}

}  // namespace
}  // namespace softscope
