// J·v of rows side by side, one row per lane. See jacobian_product.h.
#pragma once

#include "jacobian/moments.h"
#include "jacobian/sensitivity.h"
#include "rows/side_by_side.h"
#include "rows/walk_block_two_inputs.h"

namespace softscope {
namespace {

// What the rows bring with them: temperature and α.
template <class C, int N>
struct ProductLanes {
  C before[kWidth<N>], after[kWidth<N>];
  double exponents[kWidth<N>];
  bool plain;

  void read(const Block& b, RowRange rows) {
    plain = true;
    for (size_t r = 0; r < kWidth<N>; ++r) {
      const double* numbers = numbers_of(b, rows.first + (r < rows.count ? r : 0));
      const Scale<C> scale(numbers[kTemperature]);
      before[r] = scale.before;
      after[r] = scale.after;
      exponents[r] = 2 - numbers[kAlpha];
      plain = plain && exponents[r] == 1;
    }
  }
};

template <class C, int N>
struct ColumnsProduct {
  using V = Vec<C, N>;
  using Lanes = ProductLanes<C, N>;

  template <class A>
  SOFTSCOPE_INLINE static void run(Columns<A> p, Columns<A> v, ColumnsOut<A> out,
                                   const Lanes& lanes) {
    if (p.n > kShort<C>) {
      side_by_side<A, false, LaneSum<C, N>>(p, v, out, lanes);
    } else if (lanes.plain) {
      side_by_side<A, true, ShortSum>(p, v, out, lanes);
    } else {
      side_by_side<A, false, ShortSum>(p, v, out, lanes);
    }
  }

 private:
  template <class A>
  SOFTSCOPE_INLINE static V entry(Columns<A> in, size_t i, int g) {
    return load<A, N>(in.x + static_cast<ptrdiff_t>(i) * in.step + g * N);
  }

  using ShortSum = PlainLaneSum<C, N>;  // a few entries need no care

  // Inlined, as a call for each tile would make rows of 7 take a quarter longer.
  template <class A, bool Plain, class LanesSum>
  SOFTSCOPE_INLINE static void side_by_side(Columns<A> p, Columns<A> v, ColumnsOut<A> out,
                                            const Lanes& lanes) {
    constexpr int K = kGroups;
    Sensitivity<C, N, Plain> s[K];
    LanesSum totals[K], sums[K];
    V squares[K] = {}, total[K], upper[K], lower[K], doubts[K];
    for (int l = 0; l < K * N; ++l) s[l / N].set(l % N, lanes.exponents[l]);
    for (size_t i = 0; i < p.n; ++i) {
      for (int g = 0; g < K; ++g) {
        const V here = s[g].of(entry(p, i, g)), beside = entry(v, i, g), term = here * beside;
        totals[g].add(here);
        sums[g].add(term);
        squares[g] += term * beside;
      }
    }
    V doubt = {};
    for (int g = 0; g < K; ++g) {
      total[g] = totals[g].value();
      const V sum = sums[g].value();
      upper[g] = sum / (total[g] == 0 ? fill<C, N>(1) : total[g]) * C(0.5);
      lower[g] = V{};
      doubts[g] = near_zero(total[g], sum, squares[g]) ? V{} : fill<C, N>(1);
      doubt += doubts[g];
    }
    if (sum_lanes<C, N>(doubt) != 0) {
      HalfMean<V> mean[K];
      mean_carefully<LanesSum>(p, v, s, total, upper, mean);
      for (int g = 0; g < K; ++g) {
        upper[g] = doubts[g] == 0 ? upper[g] : mean[g].upper;
        lower[g] = doubts[g] == 0 ? lower[g] : mean[g].lower;
      }
    }
    for (size_t i = 0; i < p.n; ++i, out.x += out.step) {
      for (int g = 0; g < K; ++g) {
        const V here = s[g].of(entry(p, i, g)) * load_raw<C, N>(lanes.before + g * N);
        const V d = (entry(v, i, g) * C(0.5) - upper[g]) - lower[g];
        store<A, N>(out.x + g * N, (here * d) * load_raw<C, N>(lanes.after + g * N));
      }
    }
  }

  // The means in a second pass, counted from those of the first, whose halves are given, or from v
  // at the largest weight.
  template <class LanesSum, class A, bool Plain>
  static void mean_carefully(Columns<A> p, Columns<A> v,
                             const Sensitivity<C, N, Plain> (&s)[kGroups],
                             const V (&total)[kGroups], const V (&halves)[kGroups],
                             HalfMean<V> (&mean)[kGroups]) {
    V tops[kGroups] = {};
    for (size_t i = 0; i < p.n; ++i) {
      for (int g = 0; g < kGroups; ++g) tops[g] = max(s[g].of(entry(p, i, g)), tops[g]);
    }
    for (int g = 0; g < kGroups; ++g) {
      C centres[N];
      const V doubt = tops[g] <= kDominant<C> * total[g] ? halves[g] - halves[g] : fill<C, N>(1);
      store_raw<C, N>(centres, halves[g] * C(2));
      for (int l = 0; l < N; ++l) {
        if (doubt[l] != 0) centres[l] = at_top(p, v, g * N + l);
      }
      const V centre = load_raw<C, N>(centres), half = origin(centre) / 2;
      LanesSum products;
      for (size_t i = 0; i < p.n; ++i) {
        products.add(s[g].of(entry(p, i, g)) * (entry(v, i, g) * C(0.5) - half));
      }
      V product = products.value();
      if constexpr (sizeof(C) == 8) product = or_infinite(product, products.total);
      mean[g] = half_mean(centre, total[g], product);
    }
  }

  template <class A>
  static C at_top(Columns<A> p, Columns<A> v, int lane) {
    C top = -1, there = 0;
    for (size_t i = 0; i < p.n; ++i, p.x += p.step, v.x += v.step) {
      const C here = load_first<A, N>(p.x + lane, 1, 0)[0];
      if (here > top) {
        top = here;
        there = load_first<A, N>(v.x + lane, 1, 0)[0];
      }
    }
    return there;
  }
};

}  // namespace
}  // namespace softscope
