// Softmax in the form of newton.h, for rows of entmax whose alpha is 1: p = exp(x − max), which
// needs no root.
#pragma once

#include "entmax/newton.h"

namespace softscope {
namespace {

struct Exponential {
  double s = 1;

  // Of e = x − max.
  template <int D>
  SOFTSCOPE_INLINE Term<D> term(Vec<double, D> e) const {
    const Vec<double, D> p = exp_nonpositive<D>(e);
    return {p, p};
  }
  double root() const { return 0; }
  void move_to(double) {}
};

// Returns Σ p, which is not 1.
template <int D>
double solve(Exponential& form, double* e, size_t count) {
  return sums_of<D>(form, e, padded<D>(e, count)).f;
}

}  // namespace
}  // namespace softscope
