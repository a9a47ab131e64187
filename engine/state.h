// The state of a row, as in the definition: n, c, m, r, u, t, w; and how two merge.
#pragma once

#include <cmath>

#include "segment.h"

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
  struct Terms {
    V c, r, u, t, w, seen;
  };
  const auto terms = [&](V v) __attribute__((always_inline)) {
    V d = distance<C, N>(v, shift);
    const V e = exp_nonpositive<N>(d);
    const auto below = d < C(0);  // false for NaN, which so reaches c and every reading
    const V others = below ? e : V{};
    // Where exp underflows d may be −inf, and 0·(−inf) is NaN.
    d = max(d, fill<C, N>(-1e3f));
    const V first = others * d;
    return Terms{below ? V{} : e, others,          first,
                 first * d,       others * others, v != -kInfinity<C> ? fill<C, N>(1) : V{}};
  };
  Sum<C, N> c, r, u, t, w, seen;
  const auto add = [&](const Terms& a) __attribute__((always_inline)) {
    c.add(a.c);
    r.add(a.r);
    if constexpr (Full) {
      u.add(a.u);
      t.add(a.t);
      w.add(a.w);
      seen.add(a.seen);
    }
  };
  const auto both = [](const Terms& a, const Terms& b) __attribute__((always_inline)) {
    return Terms{a.c + b.c, a.r + b.r, a.u + b.u, a.t + b.t, a.w + b.w, a.seen + b.seen};
  };
  size_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    add(both(both(terms(load<S, N>(x + i)), terms(load<S, N>(x + i + N))),
             both(terms(load<S, N>(x + i + 2 * N)), terms(load<S, N>(x + i + 3 * N)))));
  }
  for (; i + N <= n; i += N) add(terms(load<S, N>(x + i)));
  if (i < n) add(terms(load_first<S, N>(x + i, n - i, -kInfinity<C>)));
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
    const double z = segment_exp<S, N, false>(x, nullptr, n, shift);
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
