// The same passes with the lanes across rows: one row per lane, one entry of each row at a time.
//
// For rows along another axis than the last, where neighbours in memory belong to other rows; and
// for rows shorter than a vector or two, once they are transposed. Lanes never mix, so every row
// computes as if it were alone.
#pragma once

#include "rows/contiguous_state.h"

namespace softscope {
namespace {

// K·N rows of n entries: entry i of the row in lane l of group g is at x + i·step + g·N + l.
template <class S>
struct Columns {
  const S* x;
  ptrdiff_t step;
  size_t n;
};
// Where as many rows are written.
template <class S>
struct ColumnsOut {
  S* x;
  ptrdiff_t step;
};

template <class S, int N, int K>
SOFTSCOPE_INLINE void columns_max(Columns<S> in, Vec<Compute<S>, N> (&m)[K]) {
  for (auto& v : m) v = fill<Compute<S>, N>(-kInfinity<Compute<S>>);
  const S* x = in.x;
  for (size_t i = 0; i < in.n; ++i, x += in.step) {
    for (int g = 0; g < K; ++g) m[g] = max(load<S, N>(x + g * N), m[g]);
  }
}

// put(i, g, exp(of(entry i of group g, g))), two entries at a time: K vectors are too few to hide
// exp's latency.
template <class S, int N, int K, class Of, class Put>
SOFTSCOPE_INLINE void columns_exp(Columns<S> in, Of of, Put put) {
  using C = Compute<S>;
  const S* x = in.x;
  size_t i = 0;
  for (; i + 2 <= in.n; i += 2, x += 2 * in.step) {
    Vec<C, N> e[2 * K];
    for (int g = 0; g < K; ++g) {
      e[g] = of(load<S, N>(x + g * N), g);
      e[K + g] = of(load<S, N>(x + in.step + g * N), g);
    }
    exp_nonpositive<N, 2 * K>(e);
    for (int g = 0; g < K; ++g) put(i, g, e[g]);
    for (int g = 0; g < K; ++g) put(i + 1, g, e[K + g]);
  }
  if (i == in.n) return;
  Vec<C, N> e[K];
  for (int g = 0; g < K; ++g) e[g] = of(load<S, N>(x + g * N), g);
  exp_nonpositive<N, K>(e);
  for (int g = 0; g < K; ++g) put(i, g, e[g]);
}

// `inverse`: 1/T of each lane.
template <class S, int N, int K>
void columns_softmax(Columns<S> in, ColumnsOut<S> out, const Compute<S>* inverse) {
  using C = Compute<S>;
  // exp(d) waits in `out` for its division if `out` holds it exactly; else it is computed again.
  constexpr bool waits = sizeof(S) == sizeof(C);
  Vec<C, N> m[K], t[K];
  LaneSum<C, N> sum[K];
  columns_max<S, N, K>(in, m);
  for (int g = 0; g < K; ++g) t[g] = load_raw<C, N>(inverse + g * N);
  // Two entries at a time, as in columns_exp.
  const auto exps = [&](const S* x, Vec<C, N>(&e)[2 * K], ptrdiff_t next)
                        __attribute__((always_inline)) {
                          for (int g = 0; g < K; ++g) {
                            e[g] = (load<S, N>(x + g * N) - m[g]) * t[g];
                            e[K + g] = (load<S, N>(x + next + g * N) - m[g]) * t[g];
                          }
                          exp_nonpositive<N, 2 * K>(e);
                        };
  const S* x = in.x;
  S* to = out.x;
  Vec<C, N> e[2 * K];
  size_t i = 0;
  for (; i + 2 <= in.n; i += 2, x += 2 * in.step, to += 2 * out.step) {
    exps(x, e, in.step);
    for (int g = 0; g < K; ++g) {
      if constexpr (waits) {
        store<S, N>(to + g * N, e[g]);
        store<S, N>(to + out.step + g * N, e[K + g]);
      }
      sum[g].add(e[g] + e[K + g]);
    }
  }
  if (i < in.n) {
    exps(x, e, 0);
    for (int g = 0; g < K; ++g) {
      if constexpr (waits) store<S, N>(to + g * N, e[g]);
      sum[g].add(e[g]);
    }
  }
  for (int g = 0; g < K; ++g) {
    const Divisor<C, N> by(sum[g].value());
    x = in.x + g * N;
    to = out.x + g * N;
    for (i = 0; i < in.n; ++i, x += in.step, to += out.step) {
      if constexpr (waits) {
        store<S, N>(to, by.divide(load<S, N>(to)));
      } else {
        store<S, N>(to, by.divide(exp_nonpositive<N>((load<S, N>(x) - m[g]) * t[g])));
      }
    }
  }
}

// Corrects the state of a row with NaN, with +inf, or with nothing but −inf. A NaN goes back into
// the maximum, which passed it over; nothing but −inf is no entries at all.
template <class S, int N>
void mend(Columns<S> row, State& s) {
  bool lost = false;
  for (size_t i = 0; i < row.n; ++i, row.x += row.step) {
    const Compute<S> v = load_first<S, N>(row.x, 1, 0)[0];
    lost = lost || v != v;
  }
  if (lost) {
    s.m = s.c;
  } else if (s.m == -kInfinity<double>) {
    s = kNoEntries;
  }
}

// The state of each lane's row. Full: all of it; else only m, c and r.
template <class S, int N, int K, bool Full>
void columns_state(Columns<S> in, const Compute<S>* inverse, State* states) {
  using C = Compute<S>;
  using V = Vec<C, N>;
  V m[K], scale[K];
  LaneSum<C, N> c[K], r[K], u[K], t[K], w[K], seen[K];
  columns_max<S, N, K>(in, m);
  for (int g = 0; g < K; ++g) scale[g] = load_raw<C, N>(inverse + g * N);
  const S* x = in.x;
  for (size_t i = 0; i < in.n; ++i, x += in.step) {
    for (int g = 0; g < K; ++g) {
      const V v = load<S, N>(x + g * N);
      V d = (v - m[g]) * scale[g];
      const V e = exp_nonpositive<N>(d);
      const auto below = d < C(0);  // false for NaN, which thus reaches c
      const V others = below ? e : V{};
      c[g].add(below ? V{} : e);
      r[g].add(others);
      if constexpr (Full) {
        d = max(d, fill<C, N>(-1e3f));  // where exp underflows, d may be −inf, and 0·(−inf) is NaN
        u[g].add(others * d);
        t[g].add(others * d * d);
        w[g].add(others * others);
        seen[g].add(v != -kInfinity<C> ? fill<C, N>(1) : V{});
      }
    }
  }
  for (int g = 0; g < K; ++g) {
    for (int l = 0; l < N; ++l) {
      State& s = states[g * N + l];
      s = {.count = Full ? seen[g].lane(l) : static_cast<double>(in.n),
           .c = c[g].lane(l),
           .m = static_cast<double>(m[g][l]),
           .r = r[g].lane(l),
           .u = u[g].lane(l),
           .t = t[g].lane(l),
           .w = w[g].lane(l)};
      if (m[g][l] == -kInfinity<C> || m[g][l] == kInfinity<C> || s.c != s.c) {
        mend<S, N>({.x = in.x + g * N + l, .step = in.step, .n = in.n}, s);
      }
    }
  }
}

}  // namespace
}  // namespace softscope
