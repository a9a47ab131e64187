// How a block of rows is walked: along contiguous rows, across neighbouring ones, or through a
// copy.
//
// An operation gives two ways to compute: `row`, on one contiguous row, and `columns`, on
// kWidth<N> rows side by side. Which one fits depends on the strides and the length alone, so a row
// computes the same whoever computes it.
#pragma once

#include "rows/transposed_tile.h"

namespace softscope {
namespace {

// A row with gaps, as a contiguous copy in scratch; returns what is left of that.
template <class S>
SOFTSCOPE_INLINE void* gather(const Block& b, size_t row) {
  const S* x = at<S>(b.x, row, b.x_row);
  S* copy = static_cast<S*>(b.scratch);
  for (size_t i = 0; i < b.n; ++i) copy[i] = *at<S>(x, i, b.x_step);
  return copy + (b.n + 63) / 64 * 64;
}

// What a tile of C is computed in.
template <class C, bool Wide>
struct TileType {
  using type = C;
};
template <class C>
struct TileType<C, true> {
  using type = double;
};

// For operations that give a row back: Op::rows(block, first, count) for contiguous rows, at most
// kWidth<N> at a time; and for as many side by side Op::columns(in, out, out_step, temperatures,
// their inverses) or, where kWide, Op::tile(entries, n, temperatures).
template <class S, int N, class Op>
void map_block(const Block& b) {
  using C = Compute<S>;
  constexpr bool wide = Op::kWide && sizeof(C) == 4;
  const bool along = b.x_step == 1 && b.out_step == 1;
  size_t r = 0;
  if (b.n <= kShort<C>) {
    Temperatures<typename TileType<C, wide>::type, N> t;
    Tile<S, N> tile;
    for (; r < b.rows; r += kWidth<N>) {
      const size_t rows = b.rows - r < kWidth<N> ? b.rows - r : kWidth<N>;
      t.read(b, r, rows);
      tile.fill_from(b, r, rows);
      if constexpr (wide) {
        Op::tile(tile.entries, b.n, t.inverse);
      } else {
        Op::template columns<C, N>({tile.entries, kWidth<N>, b.n}, tile.entries, kWidth<N>, t.value,
                                   t.inverse);
      }
      tile.give_to(b, r, rows);
    }
    return;
  }
  if constexpr (!wide) {
    if (b.x_row == 1 && b.out_row == 1 && !along) {
      Temperatures<C, N> t;
      for (; r + kWidth<N> <= b.rows; r += kWidth<N>) {
        t.read(b, r, kWidth<N>);
        Op::template columns<S, N>({at<S>(b.x, r, 1), b.x_step, b.n}, at<S>(b.out, r, 1),
                                   b.out_step, t.value, t.inverse);
      }
    }
  }
  if (along) {
    for (; r < b.rows; r += kWidth<N>) {
      Op::rows(b, r, b.rows - r < kWidth<N> ? b.rows - r : kWidth<N>);
    }
  }
  for (; r < b.rows; ++r) {
    S* out = at<S>(b.out, r, b.out_row);
    S* copy = static_cast<S*>(b.scratch);
    Block one = b;
    one.scratch = gather<S>(b, r);
    one.x = one.out = copy;
    one.x_step = one.out_step = 1;
    one.numbers = at<double>(b.numbers, r, b.numbers_row);
    Op::rows(one, 0, 1);
    for (size_t i = 0; i < b.n; ++i) *at<S>(out, i, b.out_step) = copy[i];
  }
}

// For operations that give one thing for a row of float32 or narrower: Op::finish(states, block,
// first, count) makes it from the rows' states, Op::tile(sums, tile, block, first, count) from
// those of a tile.
template <class S, int N, class Op>
void reduce_block(const Block& b) {
  using C = Compute<S>;
  const bool along = b.x_step == 1;
  State states[kWidth<N>];
  size_t r = 0;
  if (b.n <= kShort<C>) {
    Tile<S, N> tile;
    Temperatures<double, N> t;
    for (; r < b.rows; r += kWidth<N>) {
      const size_t rows = b.rows - r < kWidth<N> ? b.rows - r : kWidth<N>;
      t.read(b, r, rows);
      tile.fill_from(b, r, rows);
      TileSums<N> sums;
      sums.template take<Op::kFull>(tile.entries, b.n, t.inverse);
      Op::tile(sums, tile.entries, b, r, rows);
    }
    return;
  }
  if (b.x_row == 1 && !along) {
    Temperatures<C, N> t;
    for (; r + kWidth<N> <= b.rows; r += kWidth<N>) {
      t.read(b, r, kWidth<N>);
      columns_state<S, N, kGroups, Op::kFull>({at<S>(b.x, r, 1), b.x_step, b.n}, t.inverse, states);
      Op::finish(states, b, r, kWidth<N>);
    }
  }
  // As many rows as logarithms are taken at a time.
  for (; r < b.rows; r += kWidth<N>) {
    const size_t rows = b.rows - r < kWidth<N> ? b.rows - r : kWidth<N>;
    for (size_t j = 0; j < rows; ++j) {
      const S* x = at<S>(b.x, r + j, b.x_row);
      if (!along) {
        gather<S>(b, r + j);
        x = static_cast<const S*>(b.scratch);
      }
      states[j] = row_state<S, N, Op::kFull>(x, b.n, temperature_of(b, r + j));
    }
    Op::finish(states, b, r, rows);
  }
}

}  // namespace
}  // namespace softscope
