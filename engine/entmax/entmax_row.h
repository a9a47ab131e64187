// sparsemax and α-entmax of one contiguous row. Most entries have weight 0 and are hardly looked
// at.
//
// A first pass keeps the largest entry of each block of a few vectors: its peak. Only entries above
// max − T/(α−1) can have weight. They are picked from the few blocks whose peak lies above that,
// and the root is found on them alone. Blocks whose peak has no weight are then zeros, and are not
// even read again.
#pragma once

#include "entmax/newton.h"
#include "entmax/steep.h"
#include "rows/softmax.h"

namespace softscope {
namespace {

template <int N>
constexpr size_t kPeakBlock = 4 * N;

template <class C, int N, int Half = N / 2>
SOFTSCOPE_INLINE C peak_of(Vec<C, N> v) {
  if constexpr (Half == 0) {
    return v[0];
  } else {
    Vec<typename IndexOf<C>::type, N> other;
    for (int i = 0; i < N; ++i) other[i] = i ^ Half;
    return peak_of<C, N, Half / 2>(max(v, __builtin_shuffle(v, other)));
  }
}

// Writes the peaks of n entries, and returns their maximum; NaN if there is one among them.
template <class S, int N>
Compute<S> find_peaks(const S* x, size_t n, Compute<S>* peaks) {
  using C = Compute<S>;
  using V = Vec<C, N>;
  V top = fill<C, N>(-kInfinity<C>), nan = top;
  const auto take = [&](V v) __attribute__((always_inline)) {
    nan = v == v ? nan : v;  // max would lose a NaN
    return v;
  };
  size_t i = 0;
  for (; i + kPeakBlock<N> <= n; i += kPeakBlock<N>) {
    const V a = take(load<S, N>(x + i)), b = take(load<S, N>(x + i + N));
    const V c = take(load<S, N>(x + i + 2 * N)), d = take(load<S, N>(x + i + 3 * N));
    const V m = max(max(a, b), max(c, d));
    top = max(m, top);
    *peaks++ = peak_of<C, N>(m);
  }
  if (i < n) {
    V m = take(load_last<S, N>(x, n, -kInfinity<C>));
    for (; i + N <= n; i += N) m = max(take(load<S, N>(x + i)), m);
    top = max(m, top);
    *peaks = peak_of<C, N>(m);
  }
  for (int l = 0; l < N; ++l) {
    if (nan[l] != nan[l]) return nan[l];
  }
  return peak_of<C, N>(top);
}

// What turns logits into e = β·(x − max)/T, and how far below the maximum there can be weight: down
// to β·d = −s, or to where p ≤ exp(d) rounds to 0. For α > 2, e is the logit itself; see steep.h.
template <class S>
struct Reach {
  using C = Compute<S>;
  double maximum, origin, scale, temperature, beta;

  SOFTSCOPE_INLINE Reach(C m, double t, double alpha)
      : maximum(static_cast<double>(m)),
        origin(alpha > 2 ? 0 : maximum),
        scale(alpha > 2 ? 1 : (alpha - 1) / t),
        temperature(t),
        beta(alpha - 1) {}

  // No entry at or below the floor has weight if the largest weight to the power β is s. It is set
  // a little low, to allow for roundings.
  SOFTSCOPE_INLINE C floor(double s) const {
    constexpr double kVanishes = sizeof(C) == 8 ? 746 : 105;
    const double lowest = s < kVanishes * beta ? s / beta : kVanishes;
    const double depth = lowest * temperature;
    return below(maximum - depth, depth);
  }
  SOFTSCOPE_INLINE static C below(double at, double depth) {
    const double low = at - (::fabs(at) + depth) * 0x1p-22 - 0x1p-140;
    return low < -3e38 && sizeof(C) == 4 ? -kInfinity<C> : static_cast<C>(low);
  }
  template <int D>
  SOFTSCOPE_INLINE Vec<double, D> e(Vec<double, D> x) const {
    return (x - origin) * scale;
  }
};

// Writes e of the entries above the floor, in order, and returns how many there are.
template <class S, int N>
size_t pick(const S* x, size_t n, const Compute<S>* peaks, const Reach<S>& reach, double* e) {
  using C = Compute<S>;
  const C floor = reach.floor(1);
  size_t count = 0;
  const auto take = [&](Vec<C, N> v) __attribute__((always_inline)) {
    for (int l = 0; l < N; ++l) {
      e[count] = (static_cast<double>(v[l]) - reach.origin) * reach.scale;
      count += v[l] > floor;
    }
  };
  for (size_t i = 0; i < n; i += kPeakBlock<N>) {
    if (!(*peaks++ > floor)) continue;
    const size_t end = n - i < kPeakBlock<N> ? n : i + kPeakBlock<N>;
    size_t j = i;
    for (; j + N <= end; j += N) take(load<S, N>(x + j));
    if (j < end) take(load_first<S, N>(x + j, end - j, -kInfinity<C>));
  }
  return count;
}

template <class S, class Form>
SOFTSCOPE_INLINE Compute<S> floor_of(const Reach<S>& reach, const Form& form) {
  return reach.floor(form.s);
}
template <class S>
SOFTSCOPE_INLINE Compute<S> floor_of(const Reach<S>& reach, const Steep& form) {
  return reach.below(form.lowest, 0);
}

// out = p / Σ p; `out` may be x.
template <class S, int N, class Form>
void write_weights(const S* x, S* out, size_t n, const Compute<S>* peaks, const Reach<S>& reach,
                   const Form& form, double total) {
  using C = Compute<S>;
  using V = Vec<C, N>;
  const C floor = floor_of(reach, form);
  const double inverse = 1 / total;
  const auto one = [&](V v) __attribute__((always_inline)) {
    if constexpr (sizeof(C) == 8) {
      return form.template term<N>(reach.template e<N>(v)).p * inverse;
    } else {
      constexpr int D = N / 2;
      Vec<double, D> lower, upper;
      for (int l = 0; l < D; ++l) {
        lower[l] = v[l];
        upper[l] = v[l + D];
      }
      lower = form.template term<D>(reach.template e<D>(lower)).p * inverse;
      upper = form.template term<D>(reach.template e<D>(upper)).p * inverse;
      V p;
      for (int l = 0; l < D; ++l) {
        p[l] = static_cast<C>(lower[l]);
        p[l + D] = static_cast<C>(upper[l]);
      }
      return p;
    }
  };
  for (size_t i = 0; i < n; i += kPeakBlock<N>) {
    const bool some = *peaks++ > floor;
    const size_t end = n - i < kPeakBlock<N> ? n : i + kPeakBlock<N>;
    size_t j = i;
    if (some) {
      for (; j + N <= end; j += N) store<S, N>(out + j, one(load<S, N>(x + j)));
      if (j < end) {
        store_first<S, N>(out + j, end - j, one(load_first<S, N>(x + j, end - j, -kInfinity<C>)));
      }
    } else {
      for (; j + N <= end; j += N) store<S, N>(out + j, V{});
      if (j < end) store_first<S, N>(out + j, end - j, V{});
    }
  }
}

// Calls back with the form of the problem for this alpha > 1.
template <class Call>
SOFTSCOPE_INLINE void with_form(double alpha, double temperature, const Call& call) {
  if (alpha > 2) {
    Steep form(alpha - 1, temperature);
    call(form);
  } else if (alpha == 2) {
    Sparsemax form;
    call(form);
  } else if (alpha == 1.5) {
    Entmax15 form;
    call(form);
  } else {
    General form(alpha - 1);
    call(form);
  }
}

template <class S, int N>
void fill_row(S* out, size_t n, Compute<S> value) {
  const Vec<Compute<S>, N> v = fill<Compute<S>, N>(value);
  size_t i = 0;
  for (; i + N <= n; i += N) store<S, N>(out + i, v);
  if (i < n) store_first<S, N>(out + i, n - i, v);
}

template <class C>
SOFTSCOPE_INLINE bool finite(C m) {
  return m > -kInfinity<C> && m < kInfinity<C>;  // false for NaN too
}

// The scratch holds the peaks, and behind them the entries that were picked.
template <class S, int N>
void entmax_row(const S* x, S* out, size_t n, double temperature, double alpha, void* scratch) {
  using C = Compute<S>;
  if (alpha == 1) {
    Softmax<S, N>::row(x, out, n, temperature, scratch);
    return;
  }
  C* peaks = static_cast<C*>(scratch);
  double* e = static_cast<double*>(scratch) + peaks_bytes(n) / sizeof(double);
  const C m = find_peaks<S, N>(x, n, peaks);
  if (!finite(m)) {
    fill_row<S, N>(out, n, static_cast<C>(__builtin_nan("")));
    return;
  }
  const Reach<S> reach(m, temperature, alpha);
  with_form(alpha, temperature, [&](auto& form) {
    const size_t count = pick<S, N>(x, n, peaks, reach, e);
    const double total = solve<sizeof(C) == 8 ? N : N / 2>(form, e, count);
    write_weights<S, N>(x, out, n, peaks, reach, form, total);
  });
}

}  // namespace
}  // namespace softscope
