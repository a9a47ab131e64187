// Walks a block for backward operations: as walk_block.h does, but with a second input beside the
// first, and with several numbers for each row.
#pragma once

#include "rows/walk_block.h"

namespace softscope {
namespace {

// The block with its second input in place of the first.
SOFTSCOPE_INLINE Block second_input(const Block& b) {
  Block other = b;
  other.x = b.y;
  return other;
}

template <class S, class Op>
SOFTSCOPE_INLINE void each_row(const Block& b, size_t first) {
  for (size_t r = first; r < b.rows; ++r) {
    Op::row(row_at<S>(b.x, r), row_at<S>(b.y, r), row_at<S>(b.out, r), b.n, numbers_of(b, r));
  }
}

// Op::row(x, y, out, n, numbers) computes one contiguous row; Op::rows(block, first) computes all
// rows of a block from `first` on; Op::columns(x, y, out, lanes) computes kWidth<N> rows
// side by side, whose numbers Op::Lanes has read. Rows shorter than Op::kTile are transposed for
// the latter. `out` may be x or y. Op::kTwo: there is a y.
template <class S, int N, class Op>
void map_short_two_inputs(const Block& b) {
  using C = Compute<S>;
  typename Op::Lanes lanes;
  Tile<S, N> x, y;
  for (size_t r = 0; r < b.rows; r += kWidth<N>) {
    const RowRange rows = rows_from<N>(b, r);
    if (r == 0 || b.numbers_row != 0) lanes.read(b, rows);
    x.fill_from(b, rows);
    if constexpr (Op::kTwo) y.fill_from(second_input(b), rows);
    Op::template columns<C>({.x = x.entries, .step = kWidth<N>, .n = b.n},
                            {.x = y.entries, .step = kWidth<N>, .n = b.n},
                            {.x = x.entries, .step = kWidth<N>}, lanes);
    x.give_to(b, rows);
  }
}

template <class S, int N, class Op>
void map_block_two_inputs(const Block& b) {
  const bool along = b.x.step == 1 && b.out.step == 1 && (!Op::kTwo || b.y.step == 1);
  const bool across = b.x.row == 1 && b.out.row == 1 && (!Op::kTwo || b.y.row == 1);
  typename Op::Lanes lanes;
  size_t r = 0;
  if constexpr (kTransposes<Compute<S>, N>) {
    if (b.n < Op::kTile) return map_short_two_inputs<S, N, Op>(b);
  }
  if (across && !along) {
    for (; r + kWidth<N> <= b.rows; r += kWidth<N>) {
      if (r == 0 || b.numbers_row != 0) lanes.read(b, rows_from<N>(b, r));
      Op::template columns<S>({.x = at<S>(b.x.data, r, 1), .step = b.x.step, .n = b.n},
                              {.x = at<S>(b.y.data, r, 1), .step = b.y.step, .n = b.n},
                              {.x = at<S>(b.out.data, r, 1), .step = b.out.step}, lanes);
    }
  }
  if (along) {
    Op::rows(b, 0);
    return;
  }
  for (; r < b.rows; ++r) {
    // The scratch has room for a second copy behind the first.
    Block other = second_input(b);
    other.scratch = gather<S>(b, r);
    if constexpr (Op::kTwo) gather<S>(other, r);
    S* copy = static_cast<S*>(b.scratch);
    Op::row(copy, static_cast<const S*>(other.scratch), copy, b.n, numbers_of(b, r));
    S* out = row_at<S>(b.out, r);
    for (size_t i = 0; i < b.n; ++i) *at<S>(out, i, b.out.step) = copy[i];
  }
}

}  // namespace
}  // namespace softscope
