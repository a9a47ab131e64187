// Passes over one contiguous segment, N lanes at a time: maximum, Σ exp, division, logarithm. A row
// is one segment, or several whose maxima and sums merge.
#pragma once

#include "simd/exp.h"
#include "simd/storage.h"
#include "simd/sum.h"

namespace softscope {
namespace {

constexpr size_t kChains = 4;  // maxima at a time, to hide the latency of each

// How many vectors are added as a tree before the careful sum takes over. A long plain chain
// drifts: small terms after a large one all round the same way, by up to 1 u each. The tree's two
// roundings cost 2 u; one rounding would cost a tenth of the speed, none a fifth.
constexpr size_t kSumBlock = 4;

// What turns a logit into the argument of exp: (x − m)·(1/T).
template <class C>
struct Shift {
  C maximum;
  C inverse_temperature;
};

template <class C, int N>
SOFTSCOPE_INLINE Vec<C, N> distance(Vec<C, N> x, Shift<C> shift) {
  return (x - shift.maximum) * shift.inverse_temperature;
}

// The last N of n entries, which overlap the whole vectors before them; or, if n < N, all n entries
// and `rest` behind them. Overlapping costs nothing, while moving single entries costs as much as
// several vectors.
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

// Zeroes the lanes of that last vector which the whole vectors cover already.
template <class C, int N>
SOFTSCOPE_INLINE Vec<C, N> uncovered(Vec<C, N> v, size_t n) {
  // Lane l is entry n − N + l, and covered if that is below n − n mod N.
  if (n < N) return v;
  Vec<C, N> lane;
  for (int l = 0; l < N; ++l) lane[l] = static_cast<C>(l);
  return lane >= static_cast<C>(N - n % N) ? v : Vec<C, N>{};
}

// The maximum of n entries, −inf for none. It may lose a NaN, which comes back in the sum.
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

// The last `left` of n entries in K vectors, filled up with −inf, whose weight is 0 (unless the
// maximum is −inf too, but then everything is NaN anyway).
template <class S, int N, int K, bool Store>
SOFTSCOPE_INLINE Vec<Compute<S>, N> last_exps(const S* x, Compute<S>* e, size_t left,
                                              Shift<Compute<S>> shift, size_t n,
                                              Vec<Compute<S>, N>& tail) {
  using C = Compute<S>;
  Vec<C, N> v[K];
  const size_t whole = left / N;
  const bool ragged = left % N != 0;
  for (size_t c = 0; c < K; ++c) {
    const Vec<C, N> at = c < whole ? load<S, N>(x + c * N) : fill<C, N>(-kInfinity<C>);
    v[c] = distance<C, N>(ragged && c == whole ? tail : at, shift);
  }
  exp_nonpositive<N, K>(v);
  for (size_t c = 0; c < K; ++c) {
    if (Store && c < whole) store_raw<C, N>(e + c * N, v[c]);
    if (ragged && c == whole) {
      tail = v[c];
      v[c] = uncovered<C, N>(v[c], n);
    }
  }
  if constexpr (K == 1) return v[0];
  if constexpr (K == 2) return v[0] + v[1];
  if constexpr (K == 4) return (v[0] + v[1]) + (v[2] + v[3]);
}

// Σ exp(d). With Store it also writes e = exp(d), whole vectors only; e may be x if both have the
// same type. The rest is left in `tail`, in the layout of load_last: it is not stored, because
// reading back a vector that overlaps two stores is slow.
template <class S, int N, bool Store>
SOFTSCOPE_INLINE Sum<Compute<S>, N> segment_exp(const S* x, Compute<S>* e, size_t n,
                                                Shift<Compute<S>> shift, Vec<Compute<S>, N>& tail) {
  using C = Compute<S>;
  Sum<C, N> sum;
  // Read before e, which may be x, is written.
  tail = load_last<S, N>(x, n, -kInfinity<C>);
  size_t i = 0;
  for (; i + kSumBlock * N <= n; i += kSumBlock * N) {
    Vec<C, N> v[kSumBlock];
    for (size_t c = 0; c < kSumBlock; ++c) v[c] = distance<C, N>(load<S, N>(x + i + c * N), shift);
    exp_nonpositive<N, kSumBlock>(v);
    if constexpr (Store) {
      for (size_t c = 0; c < kSumBlock; ++c) store_raw<C, N>(e + i + c * N, v[c]);
    }
    sum.add((v[0] + v[1]) + (v[2] + v[3]));
  }
  if (i == n) return sum;
  // One to four vectors are left, the last of which may be the tail.
  if (n - i <= N) {
    sum.add(last_exps<S, N, 1, Store>(x + i, e + (Store ? i : 0), n - i, shift, n, tail));
  } else if (n - i <= 2 * N) {
    sum.add(last_exps<S, N, 2, Store>(x + i, e + (Store ? i : 0), n - i, shift, n, tail));
  } else {
    sum.add(last_exps<S, N, 4, Store>(x + i, e + (Store ? i : 0), n - i, shift, n, tail));
  }
  return sum;
}

// e / z for many e. With fused multiply-add, 1/z in two parts is as exact as a division and takes a
// third of its time. Without, a division, which is one rounding better than a product.
template <class C, int N>
struct Divisor {
  Vec<C, N> z, inverse, rest;

  SOFTSCOPE_INLINE explicit Divisor(C by) : Divisor(fill<C, N>(by)) {}
  SOFTSCOPE_INLINE explicit Divisor(Vec<C, N> by) : z(by), inverse(C(1) / by) {
    rest = (C(1) - inverse * z) * inverse;
  }

  // One that is known already: 1/z in two parts, or z itself without fused multiply-add.
  SOFTSCOPE_INLINE Divisor(Vec<C, N> known, Vec<C, N> lower)
      : z(known), inverse(known), rest(lower) {}

  SOFTSCOPE_INLINE Vec<C, N> divide(Vec<C, N> e) const {
    if constexpr (kFusedMultiplyAdd) {
      return e * inverse + e * rest;
    } else {
      return e / z;
    }
  }
};

// out = e / z for the e and tail of segment_exp; e may be out.
template <class S, int N>
SOFTSCOPE_INLINE void segment_divide(const Compute<S>* e, Vec<Compute<S>, N> tail, S* out, size_t n,
                                     const Divisor<Compute<S>, N>& by) {
  using C = Compute<S>;
  for (size_t i = 0; i + N <= n; i += N) store<S, N>(out + i, by.divide(load_raw<C, N>(e + i)));
  if (n % N != 0) store_last<S, N>(out, n, by.divide(tail));
}

// put(i, exp(of(i))) for the whole vectors of n entries, several at a time.
template <class C, int N, class Of, class Put>
SOFTSCOPE_INLINE void each_exp(size_t n, Of of, Put put) {
  size_t i = 0;
  for (; i + kSumBlock * N <= n; i += kSumBlock * N) {
    Vec<C, N> v[kSumBlock];
    for (size_t c = 0; c < kSumBlock; ++c) v[c] = of(i + c * N);
    exp_nonpositive<N, kSumBlock>(v);
    for (size_t c = 0; c < kSumBlock; ++c) put(i + c * N, v[c]);
  }
  for (; i + N <= n; i += N) put(i, exp_nonpositive<N>(of(i)));
}

// out = exp(d) / z without storing exp(d) in between: for rows that no cache holds, computing it
// twice is cheaper than writing it and reading it back.
template <class S, int N>
void segment_exp_divide(const S* x, S* out, size_t n, Shift<Compute<S>> shift, Compute<S> z) {
  using C = Compute<S>;
  const Divisor<C, N> by(z);
  const Vec<C, N> tail = load_last<S, N>(x, n, -kInfinity<C>);  // before out, which may be x
  each_exp<C, N>(
      n,
      [&](size_t i)
          __attribute__((always_inline)) { return distance<C, N>(load<S, N>(x + i), shift); },
      [&](size_t i, Vec<C, N> e)
          __attribute__((always_inline)) { store<S, N>(out + i, by.divide(e)); });
  if (n % N == 0) return;
  store_last<S, N>(out, n, by.divide(exp_nonpositive<N>(distance<C, N>(tail, shift))));
}

// out = (x − m)/T − log z, computed in float64: in float32, subtraction and division alone would
// use up the bound of 2 ulp.
template <class S, int N>
void segment_log(const S* x, S* out, size_t n, double m, double temperature, double log_z) {
  using C = Compute<S>;
  const double inverse = 1.0 / temperature;
  const auto one = [=](Vec<C, N> v) __attribute__((always_inline)) {
    const auto half = [=](Vec<float, N / 2> x4) __attribute__((always_inline)) {
      return narrowed<N / 2>((widened<N / 2>(x4) - m) * inverse - log_z);
    };
    return joined<float, N>(half(lower_half<float, N>(v)), half(upper_half<float, N>(v)));
  };
  const Vec<C, N> tail = one(load_last<S, N>(x, n, 0));  // before out, which may be x
  for (size_t i = 0; i + N <= n; i += N) store<S, N>(out + i, one(load<S, N>(x + i)));
  if (n % N != 0) store_last<S, N>(out, n, tail);
}

}  // namespace
}  // namespace softscope
