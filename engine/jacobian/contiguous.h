// J·v of contiguous rows: sums and map of one row at a time. See jacobian_product.h.
#pragma once

#include "jacobian/moments.h"
#include "jacobian/sensitivity.h"
#include "rows/contiguous_state.h"

namespace softscope {
namespace {

template <class S, int N, bool Plain>
struct RowProduct {
  using C = Compute<S>;
  using V = Vec<C, N>;
  Sensitivity<C, N, Plain> s;

  // Lanes of Σs, Σ s·v and Σ s·v².
  struct Sums {
    V total, sum, square;
  };
  SOFTSCOPE_INLINE Sums sums(const S* p, const S* v, size_t n) const {
    Sums two[2] = {};
    const auto meet = [&](V here, V beside, int c) __attribute__((always_inline)) {
      const V term = here * beside;
      two[c].total += here;
      two[c].sum += term;
      two[c].square += term * beside;
    };
    size_t i = 0;
    for (; i + 2 * N <= n; i += 2 * N) {
      meet(s.of(load<S, N>(p + i)), load<S, N>(v + i), 0);
      meet(s.of(load<S, N>(p + i + N)), load<S, N>(v + i + N), 1);
    }
    if (i + N <= n) meet(s.of(load<S, N>(p + i)), load<S, N>(v + i), 0);
    if (n % N != 0) {
      meet(uncovered<C, N>(s.of(load_last<S, N>(p, n, 0)), n),
           uncovered<C, N>(load_last<S, N>(v, n, 0), n), 1);
    }
    return {two[0].total + two[1].total, two[0].sum + two[1].sum, two[0].square + two[1].square};
  }

  // The same of exactly Few vectors. The last may overlap the one before: `fresh` is 0 there.
  template <int Few>
  SOFTSCOPE_INLINE Sums sums(const S* p, const S* v, size_t n, V fresh) const {
    Sums all = {};
    for (size_t k = 0; k < Few; ++k) {
      const size_t i = k + 1 < Few ? k * N : n - N;
      V here = s.of(load<S, N>(p + i)), beside = load<S, N>(v + i);
      if (k + 1 == Few) {
        here = fresh != 0 ? here : V{};
        beside = fresh != 0 ? beside : V{};
      }
      const V term = here * beside;
      all.total += here;
      all.sum += term;
      all.square += term * beside;
    }
    return all;
  }

  // Lanes of Σ s·(v − centre)/2.
  SOFTSCOPE_INLINE V second(const S* p, const S* v, size_t n, C centre) const {
    const C half = centre / 2;
    V sums[2] = {};
    size_t i = 0;
    for (; i + 2 * N <= n; i += 2 * N) {
      sums[0] += s.of(load<S, N>(p + i)) * (load<S, N>(v + i) * C(0.5) - half);
      sums[1] += s.of(load<S, N>(p + i + N)) * (load<S, N>(v + i + N) * C(0.5) - half);
    }
    if (i + N <= n) sums[0] += s.of(load<S, N>(p + i)) * (load<S, N>(v + i) * C(0.5) - half);
    if (n % N != 0) {
      sums[1] += uncovered<C, N>(s.of(load_last<S, N>(p, n, 0)), n) *
                 (uncovered<C, N>(load_last<S, N>(v, n, 0), n) * C(0.5) - half);
    }
    return sums[0] + sums[1];
  }

  // Lanes of the largest s.
  SOFTSCOPE_INLINE V top(const S* p, size_t n) const {
    V top = s.of(load_last<S, N>(p, n, 0));
    for (size_t i = 0; i + N <= n; i += N) top = max(s.of(load<S, N>(p + i)), top);
    return top;
  }

  // v at the largest weight.
  C at_top(const S* p, const S* v, size_t n) const {
    V top = load_last<S, N>(p, n, -1), there = load_last<S, N>(v, n, 0);
    for (size_t i = 0; i + N <= n; i += N) {
      const V here = load<S, N>(p + i);
      there = here > top ? load<S, N>(v + i) : there;
      top = max(here, top);
    }
    int best = 0;
    for (int l = 1; l < N; ++l) best = top[l] > top[best] ? l : best;
    return there[best];
  }

  // The mean; false if v may not be counted from 0. Vectors are added in fours before the careful
  // sum takes over.
  bool quick(const S* p, const S* v, size_t n, C& mean) const {
    Sum<C, N> total, sum;
    V square[4] = {};
    size_t i = 0;
    for (; i + 4 * N <= n; i += 4 * N) {
      V here[4], term[4];
      for (size_t k = 0; k < 4; ++k) {
        const V beside = load<S, N>(v + i + k * N);
        here[k] = s.of(load<S, N>(p + i + k * N));
        term[k] = here[k] * beside;
        square[k] += term[k] * beside;
      }
      total.add((here[0] + here[1]) + (here[2] + here[3]));
      sum.add((term[0] + term[1]) + (term[2] + term[3]));
    }
    const Sums rest = sums(p + i, v + i, n - i);
    total.add(rest.total);
    sum.add(rest.sum);
    const double all = total.value(), found = sum.value();
    const V squares = ((square[0] + square[1]) + (square[2] + square[3])) + rest.square;
    mean = static_cast<C>(found / (all == 0 ? 1 : all));
    return near_zero(all, found, static_cast<double>(sum_lanes<C, N>(squares)));
  }

  // The moments of as many entries as the first-level cache holds.
  Moments stretch(const S* p, const S* v, size_t n) const {
    Sum<C, N> total, product;
    V sum = {}, top = {};
    size_t i = 0;
    for (; i + N <= n; i += N) {
      const V here = s.of(load<S, N>(p + i));
      total.add(here);
      sum += here * load<S, N>(v + i);
      top = max(here, top);
    }
    if (i < n) {
      const V here = uncovered<C, N>(s.of(load_last<S, N>(p, n, 0)), n);
      total.add(here);
      sum += here * uncovered<C, N>(load_last<S, N>(v, n, 0), n);
      top = max(here, top);
    }
    Moments m = {.top = static_cast<double>(max_lane<C, N>(top)),
                 .centre = 0,
                 .total = total.value(),
                 .product = 0};
    m.centre = static_cast<double>(sum_lanes<C, N>(sum)) / (m.total == 0 ? 1 : m.total);
    const bool known = m.centre - m.centre == 0 && m.top <= kDominant<double> * m.total;
    const C centre = known ? static_cast<C>(m.centre) : at_top(p, v, n);
    m.centre = static_cast<double>(centre);

    const C half = origin(centre) / 2;
    const auto term = [&](size_t k) __attribute__((always_inline)) {
      return s.of(load<S, N>(p + k)) * (load<S, N>(v + k) * C(0.5) - half);
    };
    for (i = 0; i + 4 * N <= n; i += 4 * N) {
      product.add((term(i) + term(i + N)) + (term(i + 2 * N) + term(i + 3 * N)));
    }
    product.add(second(p + i, v + i, n - i, origin(centre)));
    m.product = product.value();
    if constexpr (sizeof(C) == 8) {
      m.product = or_infinite(m.product, sum_lanes<double, N>(product.total));
    }
    return m;
  }

  // The moments of a row of any length, in stretches, so that memory is read once.
  Moments moments(const S* p, const S* v, size_t n) const {
    constexpr size_t many = kStretchBytes / 4 / sizeof(S);
    Moments total = kNoMoments;
    for (size_t i = 0; i < n; i += many) {
      total = merged(total, stretch(p + i, v + i, n - i < many ? n - i : many));
    }
    return total;
  }

  // Quick: the mean has no lower part. Few: the number of vectors, or 0 for any.
  template <bool Quick, int Few = 0>
  SOFTSCOPE_INLINE void map(const S* p, const S* v, S* out, size_t n, HalfMean<C> mean,
                            Scale<C> scale) const {
    const auto one = [&](V weights, V beside) __attribute__((always_inline)) {
      V d = beside * C(0.5) - mean.upper;
      if constexpr (!Quick) d -= mean.lower;
      return ((s.of(weights) * scale.before) * d) * scale.after;
    };
    // Before out, which may be p or v, is written.
    const V tail = one(load_last<S, N>(p, n, 0), load_last<S, N>(v, n, 0));
    if constexpr (Few != 0) {
      for (size_t i = 0; i + N < Few * N; i += N) {
        store<S, N>(out + i, one(load<S, N>(p + i), load<S, N>(v + i)));
      }
      store<S, N>(out + n - N, tail);
      return;
    }
    for (size_t i = 0; i + N <= n; i += N) {
      store<S, N>(out + i, one(load<S, N>(p + i), load<S, N>(v + i)));
    }
    if (n % N != 0) store_last<S, N>(out, n, tail);
  }
};

// Calls back with the RowProduct for this α.
template <class S, int N, class Function>
SOFTSCOPE_INLINE void with_sensitivity(double alpha, Function&& function) {
  if (alpha == 1) {
    function(RowProduct<S, N, true>{});
  } else {
    RowProduct<S, N, false> product;
    for (int l = 0; l < N; ++l) product.s.set(l, 2 - alpha);
    function(product);
  }
}

}  // namespace
}  // namespace softscope
