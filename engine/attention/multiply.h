// Products of small matrices in registers: the inner loops of attention.
#pragma once

#include "simd/vec.h"

namespace softscope {
namespace {

// Rows at a time, each two vectors wide. With AVX2 these twelve sums, two vectors of b and a
// broadcast fill the sixteen registers, and twelve sums hide the latency of a multiply-add.
constexpr int kStrip = 6;

// Rows in memory, `row` entries apart.
template <class C>
struct Strided {
  C* data;
  size_t row;

  SOFTSCOPE_INLINE C* operator[](size_t i) const { return data + i * row; }
};

// The same with a distance that the compiler knows.
template <class C, size_t Row>
struct Buffer {
  C* data;

  SOFTSCOPE_INLINE C* operator[](size_t i) const { return data + i * Row; }
  SOFTSCOPE_INLINE operator Strided<C>() const { return {data, Row}; }
  SOFTSCOPE_INLINE operator Strided<const C>() const { return {data, Row}; }
};

// sum[r] += Σ_k a[r][k]·b[k], with 2N numbers to each b[k].
template <class C, int N, int R>
SOFTSCOPE_INLINE void multiply(const C* const (&a)[R], const C* b, size_t depth,
                               Vec<C, N> (&sum)[R][2]) {
  for (size_t k = 0; k < depth; ++k, b += 2 * N) {
    const Vec<C, N> b0 = load_raw<C, N>(b), b1 = load_raw<C, N>(b + N);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const Vec<C, N> x = fill<C, N>(a[r][k]);
      sum[r][0] += x * b0;
      sum[r][1] += x * b1;
    }
  }
}

// The same with a transposed: sum[r] += Σ_k a[k][r]·b[k].
template <class C, int N, int R>
SOFTSCOPE_INLINE void multiply_transposed(Strided<const C> a, Strided<const C> b, size_t depth,
                                          Vec<C, N> (&sum)[R][2]) {
  for (size_t k = 0; k < depth; ++k, a.data += a.row, b.data += b.row) {
    const Vec<C, N> b0 = load_raw<C, N>(b.data), b1 = load_raw<C, N>(b.data + N);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const Vec<C, N> x = fill<C, N>(a.data[r]);
      sum[r][0] += x * b0;
      sum[r][1] += x * b1;
    }
  }
}

// to[r] += sum[r].
template <class V, int R, class C>
SOFTSCOPE_INLINE void add_tile(const V (&sum)[R][2], Strided<C> to) {
  constexpr int N = sizeof(V) / sizeof(C);
  for (size_t r = 0; r < R; ++r) {
    C* at = to[r];
    store_raw<C, N>(at, load_raw<C, N>(at) + sum[r][0]);
    store_raw<C, N>(at + N, load_raw<C, N>(at + N) + sum[r][1]);
  }
}

// Calls f.template operator()<R>() with R = rows, at most kStrip.
template <class Function>
SOFTSCOPE_INLINE void with_rows(size_t rows, Function&& f) {
  switch (rows) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    case 4:
      return f.template operator()<4>();
    case 5:
      return f.template operator()<5>();
    default:
      return f.template operator()<6>();
  }
}

}  // namespace
}  // namespace softscope
