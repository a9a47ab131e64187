// Short contiguous rows, N at a time: each is walked along, but their maxima and their sums are
// folded all at once, one lane for each row. One row at a time would spend most of its time waiting
// for its own lanes to be added up, and a transposed tile on transposing.
//
// What is computed for a row does not depend on the others, nor on how many there are.
#pragma once

#include "rows/contiguous.h"
#include "rows/transposed_tile.h"
#include "simd/fold.h"

namespace softscope {
namespace {

// Rows of up to this many entries: their exponentials wait in the first-level cache.
template <int N>
constexpr size_t kTogether = 16 * N;

// The largest entry of each of N rows; lanes past the last row hold 0.
template <class S, int N>
SOFTSCOPE_INLINE Vec<Compute<S>, N> maxima_of(const Block& b, RowRange rows) {
  using C = Compute<S>;
  using V = Vec<C, N>;
  V tops[N];
  for (size_t r = 0; r < N; ++r) {
    tops[r] = V{};
    if (r >= rows.count) continue;
    const S* x = row_at<S>(b.x, rows.first + r);
    V top = load_last<S, N>(x, b.n, -kInfinity<C>);
    for (size_t i = 0; i + N <= b.n; i += N) top = max(load<S, N>(x + i), top);
    tops[r] = top;
  }
  return fold<C, N>(tops, [](V a, V c) { return max(a, c); });
}

// The sum of each of N rows, from the lanes of theirs; of floats, in float64.
template <int N>
SOFTSCOPE_INLINE void sums_of_each(const Sum<float, N> (&sums)[N], Vec<double, N / 2> (&out)[2]) {
  constexpr int H = N / 2;
  for (int half = 0; half < 2; ++half) {
    Vec<double, H> lanes[H];
    for (int r = 0; r < H; ++r) lanes[r] = sums[half * H + r].total;
    out[half] = fold<double, H>(lanes, [](auto a, auto c) { return a + c; });
  }
}

// Where the k-th of Few vectors of a row begins. The last one overlaps the one before it.
template <int N, int Few>
SOFTSCOPE_INLINE size_t vector_at(size_t k, size_t n) {
  return k + 1 < Few ? k * N : n - N;
}

// The next rows of x and out, into the cache: while a few rows are computed, the processor does not
// see by itself which ones come next.
template <class S>
SOFTSCOPE_INLINE void prefetch_row(const Block& b, size_t row) {
  const char* x = reinterpret_cast<const char*>(row_at<S>(b.x, row));
  const char* out = reinterpret_cast<const char*>(row_at<S>(b.out, row));
  for (size_t at = 0; at < b.n * sizeof(S); at += 64) {
    __builtin_prefetch(x + at, 0);
    __builtin_prefetch(out + at, 1);
  }
}

// Exponentials of some rows, and their sums. Few: how many vectors a row has, 0 for any number.
template <class S, int N, int Few>
struct RowExps {
  using V = Vec<float, N>;
  static constexpr size_t kRow = Few == 0 ? kTogether<N> : Few * N;
  alignas(64) float e[N * kRow];
  Sum<float, N> sums[N];
  V tails[N];

  void take(const Block& b, RowRange rows, const float* maximum) {
    const float shared = static_cast<float>(1.0 / temperature_of(b, rows.first));
    const auto shift = [&](size_t r) __attribute__((always_inline)) {
      const float own =
          b.numbers_row == 0 ? shared : static_cast<float>(1.0 / temperature_of(b, rows.first + r));
      return Shift<float>{.maximum = maximum[r], .inverse_temperature = own};
    };
    if constexpr (Few == 0) {
      for (size_t r = 0; r < rows.count; ++r) {
        prefetch_row<S>(b, rows.first + r + N);
        sums[r] = segment_exp<S, N, true>(row_at<S>(b.x, rows.first + r), e + r * kRow, b.n,
                                          shift(r), tails[r]);
      }
      return;
    }
    constexpr size_t kAtOnce = Few == 2 ? 2 : 1;  // rows, to hide exp's latency
    const V fresh = b.n % N == 0 ? fill<float, N>(1) : uncovered<float, N>(fill<float, N>(1), b.n);
    for (size_t r = 0; r < rows.count; r += kAtOnce) {
      V v[kAtOnce * (Few == 0 ? 1 : Few)];
      for (size_t a = 0; a < kAtOnce; ++a) {
        const size_t at = r + a < rows.count ? r + a : r;
        prefetch_row<S>(b, rows.first + at + N);
        const S* x = row_at<S>(b.x, rows.first + at);
        for (size_t k = 0; k < Few; ++k) {
          v[a * Few + k] = distance<float, N>(load<S, N>(x + vector_at<N, Few>(k, b.n)), shift(at));
        }
      }
      exp_nonpositive<N, kAtOnce*(Few == 0 ? 1 : Few)>(v);
      for (size_t a = 0; a < kAtOnce && r + a < rows.count; ++a) {
        for (size_t k = 0; k < Few; ++k) {
          store_raw<float, N>(e + (r + a) * kRow + k * N, v[a * Few + k]);
        }
        v[a * Few + Few - 1] = fresh != 0.0f ? v[a * Few + Few - 1] : V{};
        V sum = v[a * Few];
        for (size_t k = 1; k < Few; ++k) sum += v[a * Few + k];
        sums[r + a] = {};
        sums[r + a].add(sum);
      }
    }
  }

  void divide(const Block& b, RowRange rows, const Divisor<float, N>& by) const {
    float inverse[N], rest[N];
    store_raw<float, N>(inverse, kFusedMultiplyAdd ? by.inverse : by.z);
    store_raw<float, N>(rest, by.rest);
    for (size_t r = 0; r < rows.count; ++r) {
      const Divisor<float, N> own(fill<float, N>(inverse[r]), fill<float, N>(rest[r]));
      S* out = row_at<S>(b.out, rows.first + r);
      if constexpr (Few == 0) {
        segment_divide<S, N>(e + r * kRow, tails[r], out, b.n, own);
      } else {
        for (size_t k = 0; k < Few; ++k) {
          store<S, N>(out + vector_at<N, Few>(k, b.n),
                      own.divide(load_raw<float, N>(e + r * kRow + k * N)));
        }
      }
    }
  }
};

template <class S, int N, int Few>
void softmax_of_rows(const Block& b, RowRange rows) {
  float maximum[N];
  RowExps<S, N, Few> exps;
  store_raw<float, N>(maximum, maxima_of<S, N>(b, rows));
  exps.take(b, rows, maximum);
  Vec<double, N / 2> z[2];
  sums_of_each<N>(exps.sums, z);
  exps.divide(b, rows,
              Divisor<float, N>(joined<float, N>(narrowed<N / 2>(z[0]), narrowed<N / 2>(z[1]))));
}

// softmax of up to N rows of more than N and at most kTogether<N> entries, of float32 or narrower;
// shorter ones are transposed.
template <class S, int N>
void softmax_together(const Block& b, RowRange rows) {
  if (b.n <= 2 * N) return softmax_of_rows<S, N, 2>(b, rows);
  if (b.n <= 3 * N) return softmax_of_rows<S, N, 3>(b, rows);
  if (b.n <= 4 * N) return softmax_of_rows<S, N, 4>(b, rows);
  softmax_of_rows<S, N, 0>(b, rows);
}

}  // namespace
}  // namespace softscope
