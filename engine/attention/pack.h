// Packs keys and values in the order in which `multiply` reads them, 2N side by side, in the type
// that computes.
#pragma once

#include "simd/storage.h"
#include "simd/transpose.h"

namespace softscope {
namespace {

// What to pack: `count` rows of `width` entries, `row` apart. Passed by value: through a reference,
// every store would make the compiler load the fields again.
template <class S>
struct Unpacked {
  const S* data;
  ptrdiff_t row;
  size_t count, width;
};

// to[group][column][2N rows]: rows become lanes. Missing rows of the last group are zeros.
template <class S, int N>
void pack_rows_as_lanes(Unpacked<S> from, Compute<S>* to) {
  using C = Compute<S>;
  const size_t count = from.count, width = from.width;
  for (size_t group = 0; group < count; group += 2 * N, to += width * 2 * N) {
    for (size_t half = 0; half < 2; ++half) {
      const size_t first = group + half * N;
      for (size_t column = 0; column < width; column += N) {
        Vec<C, N> v[N];
        const size_t left = width - column;
        for (size_t r = 0; r < N; ++r) {
          const S* at = from.data + static_cast<ptrdiff_t>(first + r) * from.row + column;
          if (first + r >= count) {
            v[r] = Vec<C, N>{};
          } else {
            v[r] = left >= N ? load<S, N>(at) : load_first<S, N>(at, left, 0);
          }
        }
        transpose<C, N>(v);
        C* at = to + column * 2 * N + half * N;
        for (size_t c = 0; c < N && c < left; ++c) store_raw<C, N>(at + c * 2 * N, v[c]);
      }
    }
  }
}

// to[group][row][2N columns]: columns become lanes. Missing columns of the last group are zeros. In
// `to`, groups are `stride` rows apart. False if a number is infinite or NaN.
template <class S, int N>
bool pack_columns_as_lanes(Unpacked<S> from, Compute<S>* to, size_t stride) {
  using C = Compute<S>;
  const size_t count = from.count, width = from.width;
  Vec<C, N> odd = {};
  for (size_t column = 0; column < width; column += N) {
    C* at = to + column / (2 * N) * stride * 2 * N + column % (2 * N);
    const size_t left = width - column;
    const S* source = from.data + column;
    for (size_t r = 0; r < count; ++r, source += from.row) {
      const Vec<C, N> v = left >= N ? load<S, N>(source) : load_first<S, N>(source, left, 0);
      odd += v - v;
      store_raw<C, N>(at + r * 2 * N, v);
    }
  }
  if (width % (2 * N) != 0 && width % (2 * N) <= N) {  // the last half was not touched
    C* at = to + width / (2 * N) * stride * 2 * N + N;
    for (size_t r = 0; r < count; ++r) store_raw<C, N>(at + r * 2 * N, Vec<C, N>{});
  }
  return sum_lanes<C, N>(odd) == 0;
}

}  // namespace
}  // namespace softscope
