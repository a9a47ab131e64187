// sparsemax and α-entmax of a block of rows: several rows side by side if they are short or lie
// side by side in memory, and their alpha is 1.5 or 2; else row by row.
#pragma once

#include "entmax/entmax_row.h"
#include "entmax/side_by_side.h"

namespace softscope {
namespace {

// Rows of at most this many entries are transposed: a single row would wait for its divisions.
constexpr size_t kSparseShort = 160;

// Rows of C side by side: on behalf of float32, plain sums will do.
template <class C, int N>
struct EntmaxSide {
  using Rows = EntmaxColumns<N / 2, 2>;
  using Summed = PlainLaneSum<double, N / 2>;
};
template <int N>
struct EntmaxSide<double, N> {
  using Rows = EntmaxColumns<N, 2>;
  using Summed = LaneSum<double, N>;
};

template <class From, class To, size_t Count>
SOFTSCOPE_INLINE void convert(const From* from, To* to, size_t rows) {
  for (size_t i = 0; i < rows * Count; ++i) to[i] = static_cast<To>(from[i]);
}

// A row of a tile that is alone: computed in a line of its own.
template <class S, int N>
SOFTSCOPE_INLINE void alone_in_tile(const Block& b, size_t row, const Compute<S>* from,
                                    double* to) {
  using C = Compute<S>;
  C line[kSparseShort];
  for (size_t i = 0; i < b.n; ++i) line[i] = from[i * kWidth<N>];
  entmax_row<C, N>(line, line, b.n, temperature_of(b, row), alpha_of(b, row), b.scratch);
  for (size_t i = 0; i < b.n; ++i) to[i * kWidth<N>] = static_cast<double>(line[i]);
}

template <class S, int N>
void entmax_short(const Block& b) {
  using C = Compute<S>;
  using Side = typename EntmaxSide<C, N>::Rows;
  using Summed = typename EntmaxSide<C, N>::Summed;
  Tile<S, N, kSparseShort> tile;
  double wide[tile.kRounded * kWidth<N>];
  Side side;
  for (size_t r = 0; r < b.rows; r += kWidth<N>) {
    const RowRange rows = rows_from<N>(b, r);
    tile.fill_from(b, rows);
    convert<C, double, kWidth<N>>(tile.entries, wide, b.n);
    for (size_t c = 0; c < rows.count; c += Side::kRows) {
      if (b.numbers_row != 0 || r + c == 0) side.read(b, r + c);
      if (!side.all_alone) side.template replace<Summed>(wide + c, kWidth<N>, b.n);
      if (!side.any_alone) continue;
      for (size_t j = 0; j < Side::kRows && c + j < rows.count; ++j) {
        if (side.alone[j]) alone_in_tile<S, N>(b, r + c + j, tile.entries + c + j, wide + c + j);
      }
    }
    convert<double, C, kWidth<N>>(wide, tile.entries, b.n);
    tile.give_to(b, rows);
  }
}

// A row whose entries are not contiguous.
template <class S, int N>
void entmax_gathered(const Block& b, size_t r) {
  S* copy = static_cast<S*>(b.scratch);
  entmax_row<S, N>(copy, copy, b.n, temperature_of(b, r), alpha_of(b, r), gather<S>(b, r));
  S* out = row_at<S>(b.out, r);
  for (size_t i = 0; i < b.n; ++i) *at<S>(out, i, b.out.step) = copy[i];
}

template <class S, int N>
void entmax_block(const Block& b) {
  using C = Compute<S>;
  if constexpr (kTransposes<C, N>) {
    if (b.n <= kSparseShort) return entmax_short<S, N>(b);
  }
  size_t r = 0;
  if (b.x.step == 1 && b.out.step == 1) {
    for (; r < b.rows; ++r) {
      entmax_row<S, N>(row_at<S>(b.x, r), row_at<S>(b.out, r), b.n, temperature_of(b, r),
                       alpha_of(b, r), b.scratch);
    }
    return;
  }
  if (b.x.row == 1 && b.out.row == 1) {
    using Side = typename EntmaxSide<C, N>::Rows;
    using Summed = typename EntmaxSide<C, N>::Summed;
    Side side;
    for (; r + Side::kRows <= b.rows; r += Side::kRows) {
      if (b.numbers_row != 0 || r == 0) side.read(b, r);
      const Columns<S> in = {.x = at<S>(b.x.data, r, 1), .step = b.x.step, .n = b.n};
      if (!side.all_alone) {
        side.template find_maximum<S>(in);
        side.template solve<S, false, Summed>(in);
        side.template write<S, false>(in, {.x = at<S>(b.out.data, r, 1), .step = b.out.step});
      }
      for (size_t j = 0; side.any_alone && j < Side::kRows; ++j) {
        if (side.alone[j]) entmax_gathered<S, N>(b, r + j);
      }
    }
  }
  for (; r < b.rows; ++r) entmax_gathered<S, N>(b, r);
}

}  // namespace
}  // namespace softscope
