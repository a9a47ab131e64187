// sparsemax and α-entmax of a row that several threads share: the kernels for one part of it.
#pragma once

#include "entmax/entmax_row.h"
#include "entmax/long_row.h"

namespace softscope {
namespace {

template <class S, int N>
double part_peaks(const EntmaxPart& p) {
  return static_cast<double>(
      find_peaks<S, N>(static_cast<const S*>(p.x), p.n, static_cast<Compute<S>*>(p.peaks)));
}

template <class S>
SOFTSCOPE_INLINE Reach<S> reach_of(const EntmaxPart& p) {
  return Reach<S>(static_cast<Compute<S>>(p.maximum), p.temperature, p.alpha);
}

template <class S, int N>
size_t part_pick(const EntmaxPart& p) {
  return pick<S, N>(static_cast<const S*>(p.x), p.n, static_cast<const Compute<S>*>(p.peaks),
                    reach_of<S>(p), p.picked);
}

template <class Form>
SOFTSCOPE_INLINE void keep_root(const Form& form, EntmaxPart& p) {
  p.root = form.root();
}
SOFTSCOPE_INLINE void keep_root(const Steep& form, EntmaxPart& p) {
  p.root = form.log_q;
  p.lowest = form.lowest;
}

template <class Form>
SOFTSCOPE_INLINE void take_root(Form& form, const EntmaxPart& p) {
  form.move_to(p.root);
}
SOFTSCOPE_INLINE void take_root(Steep& form, const EntmaxPart& p) {
  form.log_q = p.root;
  form.lowest = p.lowest;
}

template <class S, int N>
void part_weights(const EntmaxPart& p) {
  using C = Compute<S>;
  S* out = static_cast<S*>(p.out);
  if (!finite(p.maximum)) {
    fill_row<S, N>(out, p.n, static_cast<C>(__builtin_nan("")));
    return;
  }
  with_form(p.alpha, p.temperature, [&](auto& form) {
    take_root(form, p);
    write_weights<S, N>(static_cast<const S*>(p.x), out, p.n, static_cast<const C*>(p.peaks),
                        reach_of<S>(p), form, p.total);
  });
}

// Finds the root of the whole row from the entries that all parts picked.
template <int D>
void solve_parts(EntmaxPart& p, size_t count) {
  with_form(p.alpha, p.temperature, [&](auto& form) {
    p.total = solve<D>(form, p.picked, count);
    keep_root(form, p);
  });
}

}  // namespace
}  // namespace softscope
