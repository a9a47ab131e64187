// The state of a row of attention so far, and what a stretch of its logits adds to that.
#pragma once

#include "rows/merge_states.h"
#include "simd/exp.h"
#include "simd/transpose.h"

namespace softscope {
namespace {

template <class C>
constexpr C kFarBelow = sizeof(C) == 4 ? C(-88) : C(-709);  // where exp is 0

struct RunningState : State {
  double highest;  // the largest visible score before cap and mask
  bool nan;        // whether a NaN was seen

  double z() const { return c + r; }

  // Adds the same row over other keys; both must count from the same maximum.
  void add(const RunningState& other) {
    add_entries(*this, other);
    if (other.highest > highest) highest = other.highest;
    nan |= other.nan;
  }

  // Adds keys of which none has weight. Their sums are 0, but adding that could turn a −0 into 0.
  void add_unweighed(const RunningState& other) {
    count += other.count;
    if (other.highest > highest) highest = other.highest;
    nan |= other.nan;
  }

  // Counts from a larger maximum. Returns what the output shrinks by.
  double raise(double maximum) {
    const double delta = m - maximum;
    if (z() == 0) {
      m = maximum;
      return 0;
    }
    const double shrink = exp_nonpositive<2>(fill<double, 2>(delta))[0];
    raise_maximum(*this, maximum, delta, shrink);
    return shrink;
  }
};

constexpr RunningState kNoKeys = {kNoEntries, -kInfinity<double>, false};

// x ← exp(x − m) for a stretch of logits, and the sums that its state gains. Without Statistics
// only c and r; both even then, so that the output is the same whether statistics are wanted or
// not.
template <class C, int N, bool Statistics>
struct RowSums {
  using V = Vec<C, N>;
  using I = Vec<typename IndexOf<C>::type, N>;
  V r = {}, u = {}, t = {}, w = {};
  I top = {}, visible = {};  // how many, negative: a true comparison is −1

  // K vectors. A hidden logit adds 0, so sums over more of them come out the same.
  template <int K>
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

  SOFTSCOPE_INLINE void add_to(RunningState& s) const {
    s.r += static_cast<double>(sum_lanes<C, N>(r));
    s.c -= static_cast<double>(sum_lanes<typename IndexOf<C>::type, N>(top));
    if constexpr (Statistics) {
      s.u += static_cast<double>(sum_lanes<C, N>(u));
      s.t += static_cast<double>(sum_lanes<C, N>(t));
      s.w += static_cast<double>(sum_lanes<C, N>(w));
      s.count -= static_cast<double>(sum_lanes<typename IndexOf<C>::type, N>(visible));
    }
  }
};

}  // namespace
}  // namespace softscope
