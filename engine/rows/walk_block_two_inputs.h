// How a block is walked for products and backward passes: as in walk_block.h, but with a second row
// beside the first, and several numbers for each.
#pragma once

#include "rows/walk_block.h"

namespace softscope {
namespace {

SOFTSCOPE_INLINE const double* numbers_of(const Block& b, size_t row) {
  return at<double>(b.numbers, row, b.numbers_row);
}

// The block with its second rows in the place of the first.
SOFTSCOPE_INLINE Block second(const Block& b) {
  Block other = b;
  other.x = b.y;
  other.x_row = b.y_row;
  other.x_step = b.y_step;
  return other;
}

template <class S, class Op>
SOFTSCOPE_INLINE void each_row(const Block& b, size_t first) {
  for (size_t r = first; r < b.rows; ++r) {
    Op::row(at<S>(b.x, r, b.x_row), at<S>(b.y, r, b.y_row), at<S>(b.out, r, b.out_row), b.n,
            numbers_of(b, r));
  }
}

// Op::row(x, y, out, n, numbers) computes one contiguous row, Op::rows(block, first) all that are
// left of a block, and Op::columns(x, y, out, out_step, lanes) kWidth<N> rows side by side, whose
// numbers Op::Lanes holds; rows shorter than Op::kTile are transposed for it. out may be x or y.
template <class S, int N, class Op>
void pair_block(const Block& b) {
  const bool along = b.x_step == 1 && b.out_step == 1 && (!Op::kTwo || b.y_step == 1);
  const bool across = b.x_row == 1 && b.out_row == 1 && (!Op::kTwo || b.y_row == 1);
  typename Op::Lanes lanes;
  size_t r = 0;
  if (b.n < Op::kTile) {
    using C = Compute<S>;
    Tile<S, N> x, y;
    for (; r < b.rows; r += kWidth<N>) {
      const size_t rows = b.rows - r < kWidth<N> ? b.rows - r : kWidth<N>;
      if (r == 0 || b.numbers_row != 0) lanes.read(b, r, rows);
      x.fill_from(b, r, rows);
      if constexpr (Op::kTwo) y.fill_from(second(b), r, rows);
      Op::template columns<C>({x.entries, kWidth<N>, b.n}, {y.entries, kWidth<N>, b.n}, x.entries,
                              kWidth<N>, lanes);
      x.give_to(b, r, rows);
    }
    return;
  }
  if (across && !along) {
    for (; r + kWidth<N> <= b.rows; r += kWidth<N>) {
      if (r == 0 || b.numbers_row != 0) lanes.read(b, r, kWidth<N>);
      Op::template columns<S>({at<S>(b.x, r, 1), b.x_step, b.n}, {at<S>(b.y, r, 1), b.y_step, b.n},
                              at<S>(b.out, r, 1), b.out_step, lanes);
    }
  }
  if (along) {
    Op::rows(b, 0);
    return;
  }
  for (; r < b.rows; ++r) {
    // Behind the copy of x there is as much again, and more where S computes in a wider type.
    Block other = second(b);
    other.scratch = gather<S>(b, r);
    if constexpr (Op::kTwo) gather<S>(other, r);
    S* copy = static_cast<S*>(b.scratch);
    Op::row(copy, static_cast<const S*>(other.scratch), copy, b.n, numbers_of(b, r));
    S* out = at<S>(b.out, r, b.out_row);
    for (size_t i = 0; i < b.n; ++i) *at<S>(out, i, b.out_step) = copy[i];
  }
}

}  // namespace
}  // namespace softscope
