// Softmax over contiguous float32 rows, N lanes at a time: max, then exp and sum, then divide.
//
// With u = 2^-24 and m the row's maximum, a weight that is a normal number is relatively within
// u·(5 + |x − m|) of the exact one; |x − m| is the rounding of the subtraction, seen through exp.
// The sum contains these roundings of all terms: they cancel, unless very many logits are equal
// (a million, 12 below the maximum: 8 u in the largest weight).
// NaN, +inf or nothing but −inf in a row makes all of that row NaN, and no other.
#pragma once

#include "exp.h"
#include "vec.h"

namespace softscope {
namespace {

constexpr size_t kMaxChains = 4;  // running maxima, to hide the latency of one

// Vectors added up in float32, as a tree, before float64 takes over. A long chain drifts: small
// terms after a large one all round the same way, up to 1 u each. Two roundings cost 2 u, one would
// cost a tenth of the speed, none a fifth.
constexpr size_t kSumBlock = 4;

// The maximum of x's whole vectors and of `tail`. NaN may get lost: it comes back in the sum.
template <int N>
[[gnu::always_inline]] inline float row_max(const float* x, size_t whole, Vec<float, N> tail) {
  Vec<float, N> m[kMaxChains] = {tail, tail, tail, tail};
  size_t i = 0;
  for (; i + kMaxChains * N <= whole; i += kMaxChains * N) {
    for (size_t c = 0; c < kMaxChains; ++c) m[c] = max<N>(load<N>(x + i + c * N), m[c]);
  }
  for (; i < whole; i += N) m[0] = max<N>(load<N>(x + i), m[0]);
  return max_lane<N>(max<N>(max<N>(m[0], m[1]), max<N>(m[2], m[3])));
}

// out = exp(x − m) for `Count` vectors, a power of two; returns their sum, added up as a tree.
template <int N, size_t Count>
[[gnu::always_inline]] inline Vec<float, N> exp_block(const float* x, float* out, float m) {
  if constexpr (Count == 1) {
    const Vec<float, N> e = exp_nonpositive<N>(load<N>(x) - m);
    store<N>(out, e);
    return e;
  } else {
    constexpr size_t half = Count / 2;
    return exp_block<N, half>(x, out, m) + exp_block<N, half>(x + half * N, out + half * N, m);
  }
}

// out = exp(x − m) over whole vectors; returns the sum.
template <int N>
[[gnu::always_inline]] inline Vec<double, N / 2> row_exp(const float* x, float* out, size_t whole,
                                                         float m) {
  Vec<double, N / 2> z{};
  size_t i = 0;
  for (; i + kSumBlock * N <= whole; i += kSumBlock * N) {
    add_widened<N>(z, exp_block<N, kSumBlock>(x + i, out + i, m));
  }
  for (; i < whole; i += N) add_widened<N>(z, exp_block<N, 1>(x + i, out + i, m));
  return z;
}

template <int N>
[[gnu::always_inline]] inline void softmax_row(const float* x, float* out, size_t n) {
  const size_t whole = n - n % N;
  const size_t rest = n - whole;
  // The last n mod N elements stay in a register from the first pass to the last, padded with −inf,
  // whose weight is 0.
  Vec<float, N> tail = load_first<N>(x + whole, rest, -kInfinity);
  const float m = row_max<N>(x, whole, tail);

  // x − m is NaN for x = NaN, for x = m = +inf and for x = m = −inf; one such term spoils the sum,
  // and the sum divides the whole row. That is the rule for special values, at no cost.
  Vec<double, N / 2> sum = row_exp<N>(x, out, whole, m);
  if (rest != 0) {
    tail = exp_nonpositive<N>(tail - m);
    add_widened<N>(sum, tail);
  }

  // Divided, not multiplied by 1/z: one rounding less, for 5% more time on data from memory, 7 to
  // 14% in cache.
  const float z = static_cast<float>(sum_lanes<N / 2>(sum));
  for (size_t i = 0; i < whole; i += N) store<N>(out + i, load<N>(out + i) / z);
  store_first<N>(out + whole, rest, tail / z);
}

template <int N>
void softmax_f32(const float* x, float* out, size_t rows, size_t columns) {
  for (size_t i = 0; i < rows; ++i) softmax_row<N>(x + i * columns, out + i * columns, columns);
}

}  // namespace
}  // namespace softscope
