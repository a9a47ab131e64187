// Finds where the weights of sparsemax and α-entmax sum to 1, by Newton's method.
//
// With β = α − 1 and e = β·(x − max)/T ≤ 0, the weights are p = [s + e]₊^(1/β), where s is the
// largest weight to the power β. Newton's method runs on the norm (Σ p)^β, which is convex and
// grows with s: from s = 1, where it is at least 1, every step stays above the root. For β = 1 this
// is Michelot's algorithm, which needs as many steps as it takes to throw entries out; for β = 0 it
// would need one. All in float64, whatever the type of the rows.
#pragma once

#include <cmath>

#include "simd/exp.h"
#include "simd/log.h"
#include "simd/sum.h"

namespace softscope {
namespace {

constexpr int kMostSteps = 100;  // about 6 are usual
constexpr double kNear = 0x1p-50;

// With u = p^(1−β), the derivative of a weight: f = Σ p, g = Σ u, h = Σ u·(−e), and how many p > 0.
struct NewtonSums {
  double f = 0, g = 0, h = 0, count = 0;
};

// One weight and its u.
template <int D>
struct Term {
  Vec<double, D> p, u;
};

// β = 1 and β = ½. The next s is (f^(1−β) + h)/g: Newton's step with s·g − f written as h, which
// adds numbers of one sign; s − (…)/g would cancel in long rows.
template <bool Squared>
struct Closed {
  double s = 1;

  template <int D>
  SOFTSCOPE_INLINE Term<D> term(Vec<double, D> e) const {
    const Vec<double, D> w = max(e + s, Vec<double, D>{});
    if constexpr (Squared) return {w * w, w};
    return {w, w > 0.0 ? fill<double, D>(1) : Vec<double, D>{}};
  }
  double root() const { return s; }
  void move_to(double found) { s = found; }
  // False if s is already the root.
  bool step(const NewtonSums& sums) {
    const double next = ((Squared ? ::sqrt(sums.f) : 1) + sums.h) / sums.g;
    if (!(next < s * (1 - kNear))) return false;
    s = next;
    return true;
  }
};
using Sparsemax = Closed<false>;
using Entmax15 = Closed<true>;

// Any β in (0, 1), in logarithms: near β = 0, s is 1 minus almost nothing, and p = s^(1/β).
struct General {
  double beta, inverse_beta, log_top = 0, s = 1, inverse_s = 1;
  int turns = 0;

  explicit General(double b) : beta(b), inverse_beta(1 / b) {}

  // log p = log_top + log1p(e/s)/β, and log1p(y) = −log1p(−y/(1 + y)).
  template <int D>
  SOFTSCOPE_INLINE Term<D> term(Vec<double, D> e) const {
    const Vec<double, D> y = max(e * inverse_s, fill<double, D>(-1));
    const Vec<double, D> left = 1.0 + y;
    const Vec<double, D> log = log_top - log1p_nonnegative<D>(-y / left) * inverse_beta;
    const Vec<double, D> p = left > 0.0 ? exp_nonpositive<D>(log) : Vec<double, D>{};
    return {p, left > 0.0 ? p / (left * s) : Vec<double, D>{}};
  }
  double root() const { return log_top; }
  void move_to(double log) {
    log_top = log < 0 ? log : 0;
    s = ::exp(beta * log_top);
    inverse_s = ::exp(-beta * log_top);
  }
  bool step(const NewtonSums& sums) {
    const double share = -::expm1(-beta * ::log(sums.f)) * sums.f / (sums.g * s);
    const double down = -::log1p(-share) * inverse_beta;
    // Rounding may take it below the root; one step leads back from there.
    if (!(::fabs(down) > kNear) || turns == 2) return false;
    if (down < 0) ++turns;
    move_to(log_top - down);
    return true;
  }
};

// Over n entries, a multiple of 2·D.
template <int D, class Form>
NewtonSums sums_of(const Form& form, const double* e, size_t n) {
  using V = Vec<double, D>;
  constexpr size_t kFew = 256;  // entries in one plain sum
  CompensatedSum<double> f, g, h;
  NewtonSums sums;
  for (size_t first = 0; first < n; first += kFew) {
    const size_t end = n - first < kFew ? n : first + kFew;
    V part_f[2] = {}, part_g[2] = {}, part_h[2] = {}, count{};
    for (size_t i = first; i < end; i += 2 * D) {
      for (size_t c = 0; c < 2; ++c) {
        const V v = load_raw<double, D>(e + i + c * D);
        const Term<D> t = form.template term<D>(v);
        part_f[c] += t.p;
        part_g[c] += t.u;
        part_h[c] -= t.p > 0.0 ? t.u * v : V{};
        count += t.p > 0.0 ? fill<double, D>(1) : V{};
      }
    }
    f.add(sum_lanes<double, D>(part_f[0] + part_f[1]));
    g.add(sum_lanes<double, D>(part_g[0] + part_g[1]));
    h.add(sum_lanes<double, D>(part_h[0] + part_h[1]));
    sums.count += sum_lanes<double, D>(count);
  }
  sums.f = f.total + f.lost;
  sums.g = g.total + g.lost;
  sums.h = h.total + h.lost;
  return sums;
}

// Fills e up to a whole number of vectors with entries that have no weight. There must be room.
template <int D>
SOFTSCOPE_INLINE size_t padded(double* e, size_t n) {
  for (size_t i = n; i < n + 2 * D; ++i) e[i] = -kInfinity<double>;
  return (n + 2 * D - 1) / (2 * D) * (2 * D);
}

// Finds the root. Returns Σ p there, which is 1 up to rounding. Drops entries from e once they have
// no weight.
template <int D, class Form>
double solve(Form& form, double* e, size_t count) {
  constexpr size_t kMany = 512;
  size_t n = padded<D>(e, count);
  for (int i = 0;; ++i) {
    const NewtonSums sums = sums_of<D>(form, e, n);
    if (i == kMostSteps || !form.step(sums)) return sums.f;
    if (n > kMany && sums.count < 0.5 * static_cast<double>(n)) {
      size_t kept = 0;
      const double floor = -form.s;
      for (size_t j = 0; j < n; ++j) {
        const double v = e[j];
        e[kept] = v;
        kept += v > floor;
      }
      n = padded<D>(e, kept);
    }
  }
}

}  // namespace
}  // namespace softscope
