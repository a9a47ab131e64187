// Where the weights of a row of sparse attention sum to 1: found once, kept with the row, and used
// again by the backward pass. A few numbers give every weight back, to the bit.
#pragma once

#include "attention/problem.h"
#include "entmax/entmax_row.h"
#include "entmax/exponential.h"
#include "entmax/single.h"

namespace softscope {
namespace {

// What is known of a row besides its logits. Of rows that see nothing, the maximum is −inf; of rows
// with NaN or +inf, it is that.
struct SparseRoot {
  double alpha, maximum;
  double root, lowest, total;  // see EntmaxPart
};

// Whether float32 steps will do to find the root. Nearer to 1, their differences would cancel.
SOFTSCOPE_INLINE bool is_single(double alpha) {
  return alpha > 1 + 0x1p-12 && alpha < 2 && alpha != 1.5;
}

// Calls back with the form of the problem for this alpha ≥ 1, before the root is known.
template <class C, class Call>
SOFTSCOPE_INLINE void with_any_form(double alpha, const Call& call) {
  if constexpr (sizeof(C) == 4) {
    if (is_single(alpha)) {
      SingleGeneral form(alpha - 1);
      call(form);
      return;
    }
  }
  if (alpha == 1) {
    Exponential form;
    call(form);
  } else {
    with_form(alpha, 1, call);
  }
}

template <class Form>
SOFTSCOPE_INLINE void keep(const Form& form, SparseRoot& at) {
  at.root = form.root();
  at.lowest = 0;
}
SOFTSCOPE_INLINE void keep(const Steep& form, SparseRoot& at) {
  at.root = form.log_q;
  at.lowest = form.lowest;
}
template <class Form>
SOFTSCOPE_INLINE void restore(Form& form, const SparseRoot& at) {
  form.move_to(at.root);
}
SOFTSCOPE_INLINE void restore(Steep& form, const SparseRoot& at) {
  form.log_q = at.root;
  form.lowest = at.lowest;
}

template <class C>
SOFTSCOPE_INLINE Reach<C> reach_from(const SparseRoot& at) {
  Reach<C> reach(static_cast<C>(at.maximum), 1, at.alpha);
  if (at.alpha == 1) reach.scale = 1;
  return reach;
}

// The form at its root, and what turns logits into its arguments.
template <class C, class Form>
struct Rooted {
  Reach<C> reach;
  Form form;
  double inverse;  // 1/Σ p

  // Weights, and s = p^(2−α); for α > 2, where it could overflow, 0.
  template <int D>
  SOFTSCOPE_INLINE Term<D> term(Vec<double, D> x) const {
    Term<D> t = form.template term<D>(reach.template e<D>(x));
    t.p *= inverse;
    if constexpr (__is_same(Form, Exponential)) t.u = t.p;
    return t;
  }
};

// Calls back with the Rooted form.
template <class C, class Call>
SOFTSCOPE_INLINE void with_root(const SparseRoot& at, const Call& call) {
  with_any_form<C>(at.alpha, [&]<class Form>(Form& form) {
    restore(form, at);
    call(Rooted<C, Form>{reach_from<C>(at), form, 1 / at.total});
  });
}

// Both terms of N logits in the type that computes.
template <class C, int N>
struct Weighed {
  Vec<C, N> p, s;
};

template <class C, int N, class R>
SOFTSCOPE_INLINE Weighed<C, N> weigh(const R& rooted, Vec<C, N> x) {
  if constexpr (__is_same(decltype(rooted.form), SingleGeneral)) {
    Vec<float, N> p, s;
    rooted.form.template single<N>(
        (x - static_cast<float>(rooted.reach.maximum)) * static_cast<float>(rooted.reach.scale), p,
        s);
    return {p * static_cast<float>(rooted.inverse), s};
  } else if constexpr (sizeof(C) == 8) {
    const Term<N> t = rooted.template term<N>(x);
    return {t.p, t.u};
  } else {
    constexpr int D = N / 2;
    const Term<D> lower = rooted.template term<D>(widened<D>(lower_half<C, N>(x)));
    const Term<D> upper = rooted.template term<D>(widened<D>(upper_half<C, N>(x)));
    return {joined<C, N>(narrowed<D>(lower.p), narrowed<D>(upper.p)),
            joined<C, N>(narrowed<D>(lower.u), narrowed<D>(upper.u))};
  }
}

}  // namespace
}  // namespace softscope
