// What is known of a row of attention so far, and what a stretch of its logits adds to that.
#pragma once

#include "simd/exp.h"
#include "simd/transpose.h"

namespace softscope {
namespace {

template <class C>
constexpr C kFarBelow = sizeof(C) == 4 ? C(-88) : C(-709);  // where exp is 0

struct RowState {
  double n = 0, c = 0, m = -kInfinity<double>, r = 0, u = 0, t = 0, w = 0;
  double highest = -kInfinity<double>;
  bool nan = false;

  double z() const { return c + r; }

  // The same row over more keys; both must have moved to the same maximum.
  void join(const RowState& other) {
    n += other.n;
    c += other.c;
    r += other.r;
    u += other.u;
    t += other.t;
    w += other.w;
    if (other.highest > highest) highest = other.highest;
    nan |= other.nan;
  }

  // To a larger maximum: what was at the old one joins the others. Returns what weights shrink by.
  double move(double maximum) {
    const double delta = m - maximum, z = c + r;
    m = maximum;
    if (z == 0) return 0;
    const double shrink = exp_nonpositive<2>(fill<double, 2>(delta))[0];
    t = shrink * (t + 2 * delta * u + delta * delta * z);
    u = shrink * (u + delta * z);
    w = shrink * shrink * (w + c);
    r = shrink * z;
    c = 0;
    return shrink;
  }
};

// x ← exp(x − m) for a row of scores, and what its state gains. Without statistics only c and r:
// both, so that the output is the same whether they are asked for or not.
template <class C, int N, int K, bool Statistics>
struct RowSums {
  using V = Vec<C, N>;
  using I = Vec<typename IndexOf<C>::type, N>;
  V r = {}, u = {}, t = {}, w = {};
  I top = {}, visible = {};

  SOFTSCOPE_INLINE void step(C* x, V m) {
    V d[K], e[K];
    for (int k = 0; k < K; ++k) {
      const V logit = load_raw<C, N>(x + k * N);
      if constexpr (Statistics) visible += logit != -kInfinity<C>;
      // In this order NaN stays NaN.
      d[k] = max(fill<C, N>(kFarBelow<C>), logit - m);
      e[k] = d[k];
    }
    exp_nonpositive<N, K>(e);
    for (int k = 0; k < K; ++k) {
      store_raw<C, N>(x + k * N, e[k]);
      const V below = d[k] >= C(0) ? V{} : e[k];  // NaN stays
      r += below;
      top += d[k] >= C(0);
      if constexpr (Statistics) {
        const V ud = below * d[k];
        u += ud;
        t += ud * d[k];
        w += below * below;
      }
    }
  }

  SOFTSCOPE_INLINE void add_to(RowState& s) const {
    s.r += static_cast<double>(sum_lanes<C, N>(r));
    s.c -= static_cast<double>(sum_lanes<typename IndexOf<C>::type, N>(top));
    if constexpr (Statistics) {
      s.u += static_cast<double>(sum_lanes<C, N>(u));
      s.t += static_cast<double>(sum_lanes<C, N>(t));
      s.w += static_cast<double>(sum_lanes<C, N>(w));
      s.n -= static_cast<double>(sum_lanes<typename IndexOf<C>::type, N>(visible));
    }
  }
};

}  // namespace
}  // namespace softscope
