// What kernels do with one contiguous stretch of a row, N lanes at a time. A row is one such
// stretch, or many: their maxima and sums merge.
#pragma once

#include "exp.h"
#include "storage.h"
#include "sum.h"

namespace softscope {
namespace {

constexpr size_t kChains = 4;  // running maxima, to hide the latency of one

// Vectors added up as a tree before the careful sum takes over. A long chain drifts: small terms
// after a large one all round the same way, up to 1 u each. Two roundings cost 2 u, one would cost
// a tenth of the speed, none a fifth.
constexpr size_t kSumBlock = 4;

// How far logits are from the maximum, as the exponential sees it: (x − m)·(1/T).
template <class C>
struct Shift {
  C maximum;
  C inverse_temperature;
};

template <class C, int N>
SOFTSCOPE_INLINE Vec<C, N> distance(Vec<C, N> x, Shift<C> shift) {
  return (x - shift.maximum) * shift.inverse_temperature;
}

// The last N entries of n ≥ N, or all n < N and `rest` behind them; and which lanes of these the
// whole vectors before do not cover. Overlapping costs nothing, where moving single entries costs
// as much as several vectors.
template <class S, int N>
SOFTSCOPE_INLINE Vec<Compute<S>, N> load_last(const S* x, size_t n, Compute<S> rest) {
  return n >= N ? load<S, N>(x + n - N) : load_first<S, N>(x, n, rest);
}

template <class S, int N>
SOFTSCOPE_INLINE void store_last(S* out, size_t n, Vec<Compute<S>, N> v) {
  if (n >= N) {
    store<S, N>(out + n - N, v);
  } else {
    store_first<S, N>(out, n, v);
  }
}

template <class C, int N>
SOFTSCOPE_INLINE Vec<C, N> uncovered(Vec<C, N> v, size_t n) {
  // Lane l of the last vector is entry n − N + l, covered if below n − n mod N.
  if (n < N) return v;
  Vec<C, N> lane;
  for (int l = 0; l < N; ++l) lane[l] = static_cast<C>(l);
  return lane >= static_cast<C>(N - n % N) ? v : Vec<C, N>{};
}

// The maximum of n entries, −inf for none. NaN may get lost: it comes back in the sum.
template <class S, int N>
Compute<S> segment_max(const S* x, size_t n) {
  using C = Compute<S>;
  const Vec<C, N> tail = load_last<S, N>(x, n, -kInfinity<C>);
  Vec<C, N> m[kChains] = {tail, tail, tail, tail};
  size_t i = 0;
  for (; i + kChains * N <= n; i += kChains * N) {
    for (size_t c = 0; c < kChains; ++c) m[c] = max(load<S, N>(x + i + c * N), m[c]);
  }
  for (; i + N <= n; i += N) m[0] = max(load<S, N>(x + i), m[0]);
  return max_lane<C, N>(max(max(m[0], m[1]), max(m[2], m[3])));
}

// e = exp(d) for `Count` vectors, a power of two; returns their sum, added up as a tree.
template <class S, int N, size_t Count, bool Store>
SOFTSCOPE_INLINE Vec<Compute<S>, N> exp_block(const S* x, Compute<S>* e, Shift<Compute<S>> shift) {
  using C = Compute<S>;
  if constexpr (Count == 1) {
    const Vec<C, N> v = exp_nonpositive<N>(distance<C, N>(load<S, N>(x), shift));
    if constexpr (Store) store_raw<C, N>(e, v);
    return v;
  } else {
    constexpr size_t half = Count / 2;
    return exp_block<S, N, half, Store>(x, e, shift) +
           exp_block<S, N, half, Store>(x + half * N, e + (Store ? half * N : 0), shift);
  }
}

// Σ exp(d); with Store also e = exp(d), which may be where x is if both have the same type.
template <class S, int N, bool Store>
double segment_exp(const S* x, Compute<S>* e, size_t n, Shift<Compute<S>> shift) {
  using C = Compute<S>;
  Sum<C, N> sum;
  size_t i = 0;
  // Read before e, which may be where x is, is written.
  Vec<C, N> tail = load_last<S, N>(x, n, -kInfinity<C>);
  for (; i + kSumBlock * N <= n; i += kSumBlock * N) {
    sum.add(exp_block<S, N, kSumBlock, Store>(x + i, e + (Store ? i : 0), shift));
  }
  for (; i + N <= n; i += N) {
    sum.add(exp_block<S, N, 1, Store>(x + i, e + (Store ? i : 0), shift));
  }
  if (i < n) {
    // −inf behind the end has weight 0, unless the maximum is −inf itself, when all is NaN anyway.
    tail = exp_nonpositive<N>(distance<C, N>(tail, shift));
    if constexpr (Store) store_last<C, N>(e, n, tail);
    sum.add(uncovered<C, N>(tail, n));
  }
  return sum.value();
}

// e / z for many e. Where multiply and add are fused, the product with 1/z and one correction are
// as exact as a division and take a third of its time; else a division, which is a rounding better
// than the product alone.
template <class C, int N>
struct Divisor {
  Vec<C, N> z, inverse;

  SOFTSCOPE_INLINE explicit Divisor(C by) : z(fill<C, N>(by)), inverse(fill<C, N>(C(1) / by)) {}
  SOFTSCOPE_INLINE explicit Divisor(Vec<C, N> by) : z(by), inverse(C(1) / by) {}

  SOFTSCOPE_INLINE Vec<C, N> divide(Vec<C, N> e) const {
    if constexpr (kFusedMultiplyAdd) {
      const Vec<C, N> near = e * inverse;
      return near + (e - near * z) * inverse;
    } else {
      return e / z;
    }
  }
};

// out = e / z.
template <class S, int N>
void segment_divide(const Compute<S>* e, S* out, size_t n, Compute<S> z) {
  using C = Compute<S>;
  const Divisor<C, N> by(z);
  const Vec<C, N> tail =
      by.divide(load_last<C, N>(e, n, 0));  // before `out`, which may be e, is written
  for (size_t i = 0; i + N <= n; i += N) store<S, N>(out + i, by.divide(load_raw<C, N>(e + i)));
  if (n % N != 0) store_last<S, N>(out, n, tail);
}

// out = exp(d) / z without a place for exp(d): for rows that no cache holds, computing it twice
// costs less than writing it and reading it back.
template <class S, int N>
void segment_exp_divide(const S* x, S* out, size_t n, Shift<Compute<S>> shift, Compute<S> z) {
  using C = Compute<S>;
  const Divisor<C, N> by(z);
  const auto one = [&](Vec<C, N> v) __attribute__((always_inline)) {
    return by.divide(exp_nonpositive<N>(distance<C, N>(v, shift)));
  };
  const Vec<C, N> tail = load_last<S, N>(x, n, -kInfinity<C>);  // x may be where out is
  for (size_t i = 0; i + N <= n; i += N) store<S, N>(out + i, one(load<S, N>(x + i)));
  if (n % N != 0) store_last<S, N>(out, n, one(tail));
}

// out = (x − m)/T − log z, in float64: in float32 the subtraction and the division alone would use
// up the bound of 2 ulp. By halves, for x − m may pass the range of float64 where (x − m)/T does
// not.
template <class S, int N>
void segment_log(const S* x, S* out, size_t n, double m, double temperature, double log_z) {
  using C = Compute<S>;
  const auto one = [=](Vec<C, N> v) __attribute__((always_inline)) {
    if constexpr (sizeof(C) == 8) {
      return (v * 0.5 - 0.5 * m) / (0.5 * temperature) - log_z;
    } else {
      Vec<float, N> y;
      const double inverse = 1.0 / temperature;
      Vec<double, N / 2> lower, upper;
      for (int i = 0; i < N / 2; ++i) {
        lower[i] = v[i];
        upper[i] = v[i + N / 2];
      }
      lower = (lower - m) * inverse - log_z;
      upper = (upper - m) * inverse - log_z;
      for (int i = 0; i < N / 2; ++i) {
        y[i] = static_cast<float>(lower[i]);
        y[i + N / 2] = static_cast<float>(upper[i]);
      }
      return y;
    }
  };
  const Vec<C, N> tail = load_last<S, N>(x, n, 0);  // x may be where out is
  for (size_t i = 0; i + N <= n; i += N) store<S, N>(out + i, one(load<S, N>(x + i)));
  if (n % N != 0) store_last<S, N>(out, n, one(tail));
}

}  // namespace
}  // namespace softscope
