// The state of a row, as in the definition: n, c, m, r, u, t, w; and how two merge.
#pragma once

#include <cmath>

#include "rows/contiguous.h"

namespace softscope {

// With d = (x − m)/T, and Σ' over the entries below the maximum:
// count, c = how many at it, r = Σ' e^d, u = Σ' e^d·d, t = Σ' e^d·d², w = Σ' e^2d.
struct State {
  double count, c, m, r, u, t, w;
};

namespace {

// The state of the entries of one part as seen from a maximum that lies `delta` (tempered) above.
SOFTSCOPE_INLINE State moved(State s, double delta) {
  const double shrink = ::exp(delta);
  if (shrink == 0) delta = 0;  // else 0·(−inf)
  const double z = s.c + s.r;
  return {s.count,
          0,
          s.m,
          shrink * z,
          shrink * (s.u + delta * z),
          shrink * (s.t + 2 * delta * s.u + delta * delta * z),
          shrink * shrink * (s.w + s.c)};
}

SOFTSCOPE_INLINE State merged(State a, State b, double inverse_temperature) {
  if (b.count == 0) return a;
  if (a.count == 0) return b;
  // A NaN in a maximum has to win; comparisons with it are false.
  const bool b_higher = !(b.m <= a.m);
  const double m = b.m != b.m || b_higher ? b.m : a.m;
  if (a.m < m) a = moved(a, (a.m - m) * inverse_temperature);
  if (b.m < m) b = moved(b, (b.m - m) * inverse_temperature);
  return {a.count + b.count, a.c + b.c, a.m != a.m ? a.m : m, a.r + b.r, a.u + b.u,
          a.t + b.t,         a.w + b.w};
}

// Whether a NaN is among n entries: asked only where the maximum is infinite.
template <class S, int N>
bool any_nan(const S* x, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const Compute<S> v = load_first<S, N>(x + i, 1, 0)[0];
    if (v != v) return true;
  }
  return false;
}

// The sums of all entries below the maximum apart from those at it, in blocks: added up as a tree
// before the careful sum takes over.
template <class S, int N, bool Full>
State careful_state(const S* x, size_t n, Shift<Compute<S>> shift) {
  using C = Compute<S>;
  using V = Vec<C, N>;
  Sum<C, N> c, r, u, t, w, seen;
  const auto tree = [](const V(&v)[4])
                        __attribute__((always_inline)) { return (v[0] + v[1]) + (v[2] + v[3]); };
  const auto add = [&](V(&x4)[4]) __attribute__((always_inline)) {
    V d[4], e[4], at[4], first[4];
    if constexpr (Full) {
      for (int k = 0; k < 4; ++k) at[k] = x4[k] != -kInfinity<C> ? fill<C, N>(1) : V{};
      seen.add(tree(at));
    }
    for (int k = 0; k < 4; ++k) e[k] = d[k] = distance<C, N>(x4[k], shift);
    exp_nonpositive<N, 4>(e);
    for (int k = 0; k < 4; ++k) {
      const auto below = d[k] < C(0);  // false for NaN, which so reaches c and every reading
      at[k] = below ? V{} : e[k];
      e[k] = below ? e[k] : V{};
    }
    c.add(tree(at));
    r.add(tree(e));
    if constexpr (Full) {
      // Where exp underflows d may be −inf, and 0·(−inf) is NaN.
      for (int k = 0; k < 4; ++k) d[k] = max(d[k], fill<C, N>(-1e3f));
      for (int k = 0; k < 4; ++k) first[k] = e[k] * d[k];
      u.add(tree(first));
      for (int k = 0; k < 4; ++k) first[k] *= d[k];
      t.add(tree(first));
      for (int k = 0; k < 4; ++k) e[k] *= e[k];
      w.add(tree(e));
    }
  };
  V v[4];
  size_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    for (size_t k = 0; k < 4; ++k) v[k] = load<S, N>(x + i + k * N);
    add(v);
  }
  if (i < n) {
    for (size_t k = 0; k < 4; ++k, i += N) {
      v[k] = fill<C, N>(-kInfinity<C>);
      if (i + N <= n) {
        v[k] = load<S, N>(x + i);
      } else if (i < n) {
        v[k] = load_first<S, N>(x + i, n - i, -kInfinity<C>);
      }
    }
    add(v);
  }
  return {Full ? seen.value() : static_cast<double>(n),
          c.value(),
          static_cast<double>(shift.maximum),
          r.value(),
          u.value(),
          t.value(),
          w.value()};
}

// The state of n contiguous entries that some cache holds: one pass for the maximum, one for the
// sums. With Full all of it, else only what logsumexp needs: m and z = c + r.
template <class S, int N, bool Full>
State segment_state(const S* x, size_t n, Compute<S> inverse_temperature) {
  using C = Compute<S>;
  const C m = segment_max<S, N>(x, n);
  const Shift<C> shift = {m, inverse_temperature};
  if (m == -kInfinity<C> && !any_nan<S, N>(x, n)) return {0, 0, m, 0, 0, 0, 0};
  State s;
  if constexpr (!Full) {
    // One sum over all is quicker, and exact enough unless the row is so near one-hot that the 1
    // would swallow the others.
    Vec<C, N> tail;
    const double z = segment_exp<S, N, false>(x, nullptr, n, shift, tail);
    if (z >= 1.5) return {static_cast<double>(n), 1, static_cast<double>(m), z - 1, 0, 0, 0};
  }
  s = careful_state<S, N, Full>(x, n, shift);
  // A NaN that the maximum passed over; +inf makes one by itself.
  if (s.c != s.c && (m != kInfinity<C> || any_nan<S, N>(x, n))) s.m = s.c;
  return s;
}

constexpr State kNothing = {0, 0, -kInfinity<double>, 0, 0, 0, 0};

// A row that is read more than once should lie in a cache: longer ones are cut into stretches of
// this size, each in the first-level cache when its sums are taken, so that memory is read once.
constexpr size_t kStretchBytes = size_t{1} << 15;

template <class S, int N, bool Full>
State row_state(const S* x, size_t n, double temperature) {
  constexpr size_t stretch = kStretchBytes / sizeof(S);
  const double inverse = 1.0 / temperature;
  if (n <= stretch) return segment_state<S, N, Full>(x, n, static_cast<Compute<S>>(inverse));
  State total = kNothing;
  for (size_t i = 0; i < n; i += stretch) {
    const size_t count = n - i < stretch ? n - i : stretch;
    total = merged(total, segment_state<S, N, Full>(x + i, count, static_cast<Compute<S>>(inverse)),
                   inverse);
  }
  return total;
}

}  // namespace
}  // namespace softscope
