// What a row of attention says of itself and of the gradient that reaches it: a dozen sums, taken
// while the row lies in the cache. The doctor makes its readings of them.
#pragma once

#include "attention/reading_rows.h"
#include "simd/exp.h"
#include "simd/storage.h"

namespace softscope {
namespace {

// Lanes are added up in the type that computes, over no more entries than this, and then in
// float64.
constexpr size_t kChunk = 1024;

// body(i, count) for every vector of [first, last); only the last may be shorter than N.
template <int N, class Body>
SOFTSCOPE_INLINE void along(size_t first, size_t last, Body body) {
  size_t i = first;
  for (; i + N <= last; i += N) body(i, static_cast<size_t>(N));
  if (i < last) body(i, last - i);
}

template <class C, int N>
SOFTSCOPE_INLINE Vec<C, N> load_some(const C* from, size_t count, C rest) {
  return count == N ? load_raw<C, N>(from) : load_first<C, N>(from, count, rest);
}
template <class C, int N>
SOFTSCOPE_INLINE void store_some(C* to, size_t count, Vec<C, N> v) {
  if (count == N) {
    store_raw<C, N>(to, v);
  } else {
    store_first<C, N>(to, count, v);
  }
}

// One row after the other; the order of the passes is that of their sums' needs.
template <class C, int N>
struct ReadRow {
  using V = Vec<C, N>;
  C* x;              // logits, −inf where hidden; in the end the weights
  const C* grad;     // of the weights, or null
  const C* lengths;  // 1/|k| of each key
  C* e;              // scratch: exponentials
  size_t keys;
  double count;  // how many of them are seen
  double numbers[kReadings] = {};

  SOFTSCOPE_INLINE void run() {
    look();
    add_up();
    if (grad != nullptr) centre();
    finish();
  }

  // Found on the way.
  C top = 0, mean = 0, at_top = 0, away = 0;

  SOFTSCOPE_INLINE static V if_seen(V logit, V v) { return logit == -kInfinity<C> ? V{} : v; }

  // body(i, count) along the row, and after each chunk flush().
  template <class Body, class Flush>
  SOFTSCOPE_INLINE void in_chunks(Body body, Flush flush) {
    for (size_t first = 0; first < keys; first += kChunk) {
      along<N>(first, first + kChunk < keys ? first + kChunk : keys, body);
      flush();
    }
  }

  SOFTSCOPE_INLINE void move(V& lanes, Reading to) {
    numbers[to] += static_cast<double>(sum_lanes<C, N>(lanes));
    lanes = V{};
  }

  SOFTSCOPE_INLINE V logits(size_t i, size_t n) const {
    return load_some<C, N>(x + i, n, -kInfinity<C>);
  }
  SOFTSCOPE_INLINE V centred(size_t i, size_t n, V logit) const {
    return if_seen(logit, load_some<C, N>(grad + i, n, 0) - mean);
  }

  // The largest logit, and Σ |x|/|k|.
  SOFTSCOPE_INLINE void look() {
    V highest = fill<C, N>(-kInfinity<C>), aligned{};
    in_chunks(
        [&](size_t i, size_t n) {
          const V v = logits(i, n);
          highest = max(highest, v);
          aligned += if_seen(v, (v < 0 ? -v : v) * load_some<C, N>(lengths + i, n, 0));
        },
        [&] { move(aligned, kAligned); });
    top = max_lane<C, N>(highest);
    numbers[kTop] = static_cast<double>(top);
    if (top == -kInfinity<C>) top = 0;
  }

  // exp and its sums, with d = x − top: Σe, Σ e·d, Σe², Σd, Σd²; and the gradient's mean.
  SOFTSCOPE_INLINE void add_up() {
    V z{}, product{}, squares{}, below{}, below_squares{}, g{};
    in_chunks(
        [&](size_t i, size_t n) {
          const V v = logits(i, n);
          const V exponential = exp_nonpositive<N>(v - top);
          const V d = if_seen(v, v - top);
          z += exponential;
          product += exponential * d;
          squares += exponential * exponential;
          below += d;
          below_squares += d * d;
          store_some<C, N>(e + i, n, exponential);
          if (grad != nullptr) g += if_seen(v, load_some<C, N>(grad + i, n, 0));
        },
        [&] {
          move(z, kZ);
          move(product, kProduct);
          move(squares, kSquares);
          move(below, kBelow);
          move(below_squares, kSquaredBelow);
          move(g, kMean);
        });
    numbers[kMean] /= count;
    mean = static_cast<C>(numbers[kMean]);
    // max does not see a NaN among the logits.
    if (numbers[kZ] != numbers[kZ] && numbers[kTop] != kInfinity<double>)
      numbers[kTop] = numbers[kZ];
  }

  // What the gradient asks for, Σ (g − mean)², its lowest entry, and what the weights expect of it,
  // counted from the largest weight: near one-hot nothing cancels.
  SOFTSCOPE_INLINE void centre() {
    size_t largest = 0;
    while (largest + 1 < keys && x[largest] != top) ++largest;
    at_top = grad[largest] - mean;
    V squares{}, expected{}, depth{};
    in_chunks(
        [&](size_t i, size_t n) {
          const V c = centred(i, n, logits(i, n));
          squares += c * c;
          depth = max(depth, -c);
          expected += load_some<C, N>(e + i, n, 0) * (c - at_top);
        },
        [&] {
          move(squares, kDemand);
          move(expected, kExpected);
        });
    numbers[kDemand] = __builtin_sqrt(numbers[kDemand]);
    numbers[kLowest] = -static_cast<double>(max_lane<C, N>(depth));
    numbers[kExpected] /= numbers[kZ];
    away = static_cast<C>(numbers[kExpected]);
    numbers[kExpected] += static_cast<double>(at_top);
  }

  // The weights, and what of the gradient they let through: |J·c|.
  SOFTSCOPE_INLINE void finish() {
    const C inverse = numbers[kZ] == 0 ? C(0) : static_cast<C>(1 / numbers[kZ]);
    V squares{};
    in_chunks(
        [&](size_t i, size_t n) {
          const V p = load_some<C, N>(e + i, n, 0) * inverse;
          if (grad != nullptr) {
            const V v = logits(i, n);
            const V through = if_seen(v, p * ((centred(i, n, v) - at_top) - away));
            squares += through * through;
          }
          store_some<C, N>(x + i, n, p);
        },
        [&] { move(squares, kSupply); });
    numbers[kSupply] = __builtin_sqrt(numbers[kSupply]);
  }
};

template <class C, int N>
void read_rows(const ReadingRows& r, size_t first, size_t last, void* scratch) {
  for (size_t i = first; i < last; ++i) {
    const size_t start = i * r.keys;
    ReadRow<C, N> row{static_cast<C*>(r.x) + start,
                      r.grad == nullptr ? nullptr : static_cast<const C*>(r.grad) + start,
                      static_cast<const C*>(r.lengths) + i / r.rows * r.stride,
                      static_cast<C*>(scratch),
                      r.keys,
                      static_cast<double>(static_cast<const C*>(r.counts)[i])};
    row.run();
    for (int f = 0; f < kReadings; ++f) {
      static_cast<C*>(r.out)[static_cast<size_t>(f) * r.groups * r.rows + i] =
          static_cast<C>(row.numbers[f]);
    }
  }
}

}  // namespace
}  // namespace softscope
