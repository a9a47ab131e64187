// Walks a block of rows: along contiguous rows, across rows that lie side by side, or through a
// copy of each.
//
// An operation knows two ways to compute: on contiguous rows, and on kWidth<N> rows side by side.
// Which way is taken depends on strides and length alone, so the number of threads changes no bit.
#pragma once

#include "rows/transposed_tile.h"

namespace softscope {
namespace {

// Copies a row with gaps into the scratch, contiguously. Returns the rest of the scratch.
template <class S>
SOFTSCOPE_INLINE void* gather(const Block& b, size_t row) {
  const S* x = row_at<S>(b.x, row);
  S* copy = static_cast<S*>(b.scratch);
  for (size_t i = 0; i < b.n; ++i) copy[i] = *at<S>(x, i, b.x.step);
  return copy + (b.n + 63) / 64 * 64;
}

// The type that a tile of C is computed in.
template <class C, bool Wide>
struct TileType {
  using type = C;
};
template <class C>
struct TileType<C, true> {
  using type = double;
};

// For operations whose result is a row. They have Op::rows(block, rows) for contiguous rows, at
// most kWidth<N> at a time. For kWidth<N> rows side by side they have Op::columns(in, out,
// temperatures), or, if kWide, Op::tile(entries, n, 1/T), which computes in float64.
template <class S, int N, class Op>
void map_short(const Block& b) {
  using C = Compute<S>;
  constexpr bool wide = Op::kWide && sizeof(C) == 4;
  Temperatures<typename TileType<C, wide>::type, N> t;
  Tile<S, N> tile;
  for (size_t r = 0; r < b.rows; r += kWidth<N>) {
    const RowRange rows = rows_from<N>(b, r);
    t.read(b, rows);
    tile.fill_from(b, rows);
    if constexpr (wide) {
      Op::tile(tile.entries, b.n, t.inverse);
    } else {
      Op::template columns<C, N>({.x = tile.entries, .step = kWidth<N>, .n = b.n},
                                 {.x = tile.entries, .step = kWidth<N>}, t);
    }
    tile.give_to(b, rows);
  }
}

template <class S, int N, class Op>
void map_block(const Block& b) {
  using C = Compute<S>;
  constexpr bool wide = Op::kWide && sizeof(C) == 4;
  const bool along = b.x.step == 1 && b.out.step == 1;
  size_t r = 0;
  if constexpr (kTransposes<C, N>) {
    if (b.n <= Op::kLongest) return map_short<S, N, Op>(b);
  }
  if constexpr (!wide) {
    if (b.x.row == 1 && b.out.row == 1 && !along) {
      Temperatures<C, N> t;
      for (; r + kWidth<N> <= b.rows; r += kWidth<N>) {
        t.read(b, rows_from<N>(b, r));
        Op::template columns<S, N>({.x = at<S>(b.x.data, r, 1), .step = b.x.step, .n = b.n},
                                   {.x = at<S>(b.out.data, r, 1), .step = b.out.step}, t);
      }
    }
  }
  if (along) {
    for (; r < b.rows; r += kWidth<N>) Op::rows(b, rows_from<N>(b, r));
  }
  for (; r < b.rows; ++r) {
    S* out = row_at<S>(b.out, r);
    S* copy = static_cast<S*>(b.scratch);
    Block one = b;
    one.scratch = gather<S>(b, r);
    one.x = {.data = copy, .row = 0, .step = 1};
    one.out = {.data = copy, .row = 0, .step = 1};
    one.numbers = numbers_of(b, r);
    Op::rows(one, {.first = 0, .count = 1});
    for (size_t i = 0; i < b.n; ++i) *at<S>(out, i, b.out.step) = copy[i];
  }
}

// For operations with one result per row, of float32 or narrower. Op::finish(states, block, rows)
// makes the results from the rows' states, Op::tile(sums, entries, block, rows) from the sums of a
// tile.
template <class S, int N, class Op>
void reduce_short(const Block& b) {
  Tile<S, N> tile;
  Temperatures<double, N> t;
  for (size_t r = 0; r < b.rows; r += kWidth<N>) {
    const RowRange rows = rows_from<N>(b, r);
    t.read(b, rows);
    tile.fill_from(b, rows);
    TileSums<N> sums;
    sums.template take<Op::kFull>(tile.entries, b.n, t.inverse);
    Op::tile(sums, tile.entries, b, rows);
  }
}

template <class S, int N, class Op>
void reduce_block(const Block& b) {
  using C = Compute<S>;
  const bool along = b.x.step == 1;
  State states[kWidth<N>];
  size_t r = 0;
  if constexpr (kTransposes<C, N>) {
    if (b.n <= Op::kLongest) return reduce_short<S, N, Op>(b);
  }
  if (b.x.row == 1 && !along) {
    Temperatures<C, N> t;
    for (; r + kWidth<N> <= b.rows; r += kWidth<N>) {
      const RowRange rows = rows_from<N>(b, r);
      t.read(b, rows);
      columns_state<S, N, kGroups, Op::kFull>(
          {.x = at<S>(b.x.data, r, 1), .step = b.x.step, .n = b.n}, t.inverse, states);
      Op::finish(states, b, rows);
    }
  }
  // As many rows at a time as their logarithms are computed in one go.
  for (; r < b.rows; r += kWidth<N>) {
    const RowRange rows = rows_from<N>(b, r);
    for (size_t j = 0; j < rows.count; ++j) {
      const S* x = row_at<S>(b.x, r + j);
      if (!along) {
        gather<S>(b, r + j);
        x = static_cast<const S*>(b.scratch);
      }
      states[j] = row_state<S, N, Op::kFull>(x, b.n, temperature_of(b, r + j));
    }
    Op::finish(states, b, rows);
  }
}

}  // namespace
}  // namespace softscope
