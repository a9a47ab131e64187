// The state of contiguous entries. float64 rows need more than this; see float64_state.h. Here,
// float64 serves narrower rows whose own sums are too coarse, and softmax.
#pragma once

#include "rows/contiguous.h"
#include "rows/merge_states.h"

namespace softscope {
namespace {

// Whether a NaN is among n entries. Slow, but asked only where the maximum is infinite.
template <class S, int N>
bool any_nan(const S* x, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const Compute<S> v = load_first<S, N>(x + i, 1, 0)[0];
    if (v != v) return true;
  }
  return false;
}

// Sums the entries below the maximum apart from those at it. Four vectors at a time are added as a
// tree before the careful sum takes over; see kSumBlock.
template <class S, int N, bool Full>
[[gnu::noinline]] State careful_state(const S* x, size_t n, Shift<Compute<S>> shift) {
  using C = Compute<S>;
  using V = Vec<C, N>;
  Sum<C, N> c, r, u, t, w, seen;
  const auto tree = []<int K>(const V(&v)[K]) __attribute__((always_inline)) {
    if constexpr (K == 1) return v[0];
    if constexpr (K == 2) return v[0] + v[1];
    if constexpr (K == 4) return (v[0] + v[1]) + (v[2] + v[3]);
  };
  const auto add = [&]<int K>(V(&x4)[K]) __attribute__((always_inline)) {
    V d[K], e[K], at[K], first[K];
    if constexpr (Full) {
      for (int k = 0; k < K; ++k) at[k] = x4[k] != -kInfinity<C> ? fill<C, N>(1) : V{};
      seen.add(tree(at));
    }
    for (int k = 0; k < K; ++k) e[k] = d[k] = distance<C, N>(x4[k], shift);
    exp_nonpositive<N, K>(e);
    for (int k = 0; k < K; ++k) {
      const auto below = d[k] < C(0);  // false for NaN, which thus reaches c and every reading
      at[k] = below ? V{} : e[k];
      e[k] = below ? e[k] : V{};
    }
    c.add(tree(at));
    r.add(tree(e));
    if constexpr (Full) {
      // Where exp underflows, d may be −inf, and 0·(−inf) is NaN.
      for (int k = 0; k < K; ++k) d[k] = max(d[k], fill<C, N>(-1e3f));
      for (int k = 0; k < K; ++k) first[k] = e[k] * d[k];
      u.add(tree(first));
      for (int k = 0; k < K; ++k) first[k] *= d[k];
      t.add(tree(first));
      for (int k = 0; k < K; ++k) e[k] *= e[k];
      w.add(tree(e));
    }
  };
  size_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    V v[4];
    for (size_t k = 0; k < 4; ++k) v[k] = load<S, N>(x + i + k * N);
    add(v);
  }
  // Of one to four vectors that are left, the last one filled up.
  const auto add_rest = [&]<int K>() __attribute__((always_inline)) {
    V v[K];
    for (size_t k = 0; k < K; ++k, i += N) {
      v[k] = fill<C, N>(-kInfinity<C>);
      if (i + N <= n) {
        v[k] = load<S, N>(x + i);
      } else if (i < n) {
        v[k] = load_first<S, N>(x + i, n - i, -kInfinity<C>);
      }
    }
    add(v);
  };
  if (n > i + 2 * N) {
    add_rest.template operator()<4>();
  } else if (n > i + N) {
    add_rest.template operator()<2>();
  } else if (n > i) {
    add_rest.template operator()<1>();
  }
  return {.count = Full ? seen.value() : static_cast<double>(n),
          .c = c.value(),
          .m = static_cast<double>(shift.maximum),
          .r = r.value(),
          .u = u.value(),
          .t = t.value(),
          .w = w.value()};
}

// The state of n contiguous entries that fit some cache: one pass for the maximum, one for the
// sums. Full: all of it; else only what logsumexp needs, m and z = c + r.
template <class S, int N, bool Full>
State segment_state(const S* x, size_t n, Compute<S> inverse_temperature) {
  using C = Compute<S>;
  const C m = segment_max<S, N>(x, n);
  const Shift<C> shift = {.maximum = m, .inverse_temperature = inverse_temperature};
  if (m == -kInfinity<C> && !any_nan<S, N>(x, n)) return kNoEntries;
  if constexpr (!Full) {
    // One sum over all entries is quicker, and exact enough unless the row is so near one-hot that
    // the 1 would swallow the others.
    Vec<C, N> tail;
    const double z = segment_exp<S, N, false>(x, nullptr, n, shift, tail).value();
    if (z >= 1.5) {
      return {.count = static_cast<double>(n),
              .c = 1,
              .m = static_cast<double>(m),
              .r = z - 1,
              .u = 0,
              .t = 0,
              .w = 0};
    }
  }
  State s = careful_state<S, N, Full>(x, n, shift);
  // The maximum passes over a NaN, the sums do not. But +inf makes a NaN of its own.
  if (s.c != s.c && (m != kInfinity<C> || any_nan<S, N>(x, n))) s.m = s.c;
  return s;
}

// Both passes should find the row in a cache. So longer rows are taken in stretches of this size,
// which the first-level cache holds, and memory is read once.
constexpr size_t kStretchBytes = size_t{1} << 15;

template <class S, int N, bool Full>
State row_state(const S* x, size_t n, double temperature) {
  constexpr size_t stretch = kStretchBytes / sizeof(S);
  const double inverse = 1.0 / temperature;
  if (n <= stretch) return segment_state<S, N, Full>(x, n, static_cast<Compute<S>>(inverse));
  State total = kNoEntries;
  for (size_t i = 0; i < n; i += stretch) {
    const size_t count = n - i < stretch ? n - i : stretch;
    total = merged(total, segment_state<S, N, Full>(x + i, count, static_cast<Compute<S>>(inverse)),
                   inverse);
  }
  return total;
}

}  // namespace
}  // namespace softscope
