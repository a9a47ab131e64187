// How a block of rows is walked: along contiguous rows, across neighbouring ones, or through a
// copy.
//
// An operation gives two ways to compute: `row`, on one contiguous row, and `columns`, on
// kWidth<N> rows side by side. Which one fits depends on the strides and the length alone, so a row
// computes the same whoever computes it.
#pragma once

#include "across.h"
#include "kernels.h"
#include "transpose.h"

namespace softscope {
namespace {

constexpr int kGroups = 2;  // vectors side by side: 16 floats are one line of cache
template <int N>
constexpr size_t kWidth = kGroups * N;

// Rows of at most this many entries are transposed, so that lanes are not left empty.
constexpr size_t kShort = 24;

template <class T>
SOFTSCOPE_INLINE const T* at(const void* base, size_t i, ptrdiff_t stride) {
  return static_cast<const T*>(base) + static_cast<ptrdiff_t>(i) * stride;
}
template <class T>
SOFTSCOPE_INLINE T* at(void* base, size_t i, ptrdiff_t stride) {
  return static_cast<T*>(base) + static_cast<ptrdiff_t>(i) * stride;
}

SOFTSCOPE_INLINE double temperature_of(const Block& b, size_t row) {
  return *at<double>(b.numbers, row, b.numbers_row);
}

// Short rows transposed, in the type that computes: entry i of row r at entries[i·kWidth<N> + r].
template <class S, int N, size_t Longest = kShort>
struct Tile {
  using C = Compute<S>;
  static constexpr size_t kRounded = (Longest + N - 1) / N * N;
  C entries[kRounded * kWidth<N>];

  // Rows past the last repeat it, so that no lane is left undefined.
  SOFTSCOPE_INLINE void fill_from(const Block& b, size_t first, size_t rows) {
    for (size_t g = 0; g < kWidth<N>; g += N) {
      for (size_t i = 0; i < b.n; i += N) {
        Vec<C, N> square[N];
        for (size_t r = 0; r < N; ++r) {
          const size_t row = g + r < rows ? g + r : rows - 1;
          square[r] = part(at<S>(b.x, first + row, b.x_row), i, b);
        }
        transpose<C, N>(square);
        for (size_t k = 0; k < N; ++k) {
          store_raw<C, N>(entries + (i + k) * kWidth<N> + g, square[k]);
        }
      }
    }
  }
  SOFTSCOPE_INLINE void give_to(const Block& b, size_t first, size_t rows) const {
    for (size_t g = 0; g < rows; g += N) {
      for (size_t i = 0; i < b.n; i += N) {
        Vec<C, N> square[N];
        for (size_t k = 0; k < N; ++k) {
          square[k] = load_raw<C, N>(entries + (i + k) * kWidth<N> + g);
        }
        transpose<C, N>(square);
        for (size_t r = 0; r < N && g + r < rows; ++r) {
          S* out = at<S>(b.out, first + g + r, b.out_row);
          const size_t count = b.n - i < N ? b.n - i : N;
          if (b.out_step == 1 && count == N) {
            store<S, N>(out + i, square[r]);
          } else if (b.out_step == 1) {
            store_first<S, N>(out + i, count, square[r]);
          } else {
            for (size_t k = 0; k < count; ++k) {
              store_first<S, N>(at<S>(out, i + k, b.out_step), 1, fill<C, N>(square[r][k]));
            }
          }
        }
      }
    }
  }

 private:
  // Entries i … i + N of a row.
  SOFTSCOPE_INLINE static Vec<C, N> part(const S* x, size_t i, const Block& b) {
    const size_t count = b.n - i < N ? b.n - i : N;
    if (b.x_step == 1) {
      return count == N ? load<S, N>(x + i) : load_first<S, N>(x + i, count, -kInfinity<C>);
    }
    Vec<C, N> v{};
    for (size_t k = 0; k < count; ++k) {
      v[k] = load_first<S, N>(at<S>(x, i + k, b.x_step), 1, 0)[0];
    }
    return v;
  }
};

// T and 1/T of kWidth<N> rows; those past the last repeat the first.
template <class W, int N>
struct Temperatures {
  W value[kWidth<N>], inverse[kWidth<N>];

  SOFTSCOPE_INLINE void read(const Block& b, size_t first, size_t rows) {
    if (b.numbers_row == 0 && first != 0) return;  // the same for all, and read already
    for (size_t r = 0; r < kWidth<N>; ++r) {
      const double t = temperature_of(b, first + (r < rows ? r : 0));
      value[r] = static_cast<W>(t);
      inverse[r] = static_cast<W>(1.0 / t);
    }
  }
};

// A row with gaps, as a contiguous copy in scratch; returns what is left of that.
template <class S>
SOFTSCOPE_INLINE void* gather(const Block& b, size_t row) {
  const S* x = at<S>(b.x, row, b.x_row);
  S* copy = static_cast<S*>(b.scratch);
  for (size_t i = 0; i < b.n; ++i) copy[i] = *at<S>(x, i, b.x_step);
  return copy + (b.n + 63) / 64 * 64;
}

// What computes side by side: the compute type, or float64 for what float32 cannot hold exactly
// enough; then there are half as many lanes in twice as many vectors.
template <class S, int N, bool Wide>
struct Lanes {
  using W = Compute<S>;
  static constexpr int kLanes = N, kVectors = kGroups;
};
template <class S, int N>
  requires(sizeof(Compute<S>) == 4)
struct Lanes<S, N, true> {
  using W = double;
  static constexpr int kLanes = N / 2, kVectors = 2 * kGroups;
};

template <class From, class To, size_t Count>
SOFTSCOPE_INLINE void convert(const From* from, To* to, size_t rows) {
  if constexpr (__is_same(From, To)) {
    __builtin_memcpy(to, from, rows * Count * sizeof(To));
  } else {
    for (size_t i = 0; i < rows * Count; ++i) to[i] = static_cast<To>(from[i]);
  }
}

// For operations that give a row back: Op::row(x, out, n, temperature, scratch) and
// Op::columns(in, out, out_step, temperatures, their inverses).
template <class S, int N, class Op>
void map_block(const Block& b) {
  using L = Lanes<S, N, Op::kWide>;
  using W = typename L::W;
  const bool along = b.x_step == 1 && b.out_step == 1;
  // Across in S itself, unless that would have to be wider.
  const bool across = b.x_row == 1 && b.out_row == 1 && __is_same(W, Compute<S>);
  Temperatures<W, N> t;
  size_t r = 0;
  if (b.n <= kShort) {
    Tile<S, N> tile;
    W wide[Tile<S, N>::kRounded * kWidth<N>];
    for (; r < b.rows; r += kWidth<N>) {
      const size_t rows = b.rows - r < kWidth<N> ? b.rows - r : kWidth<N>;
      t.read(b, r, rows);
      tile.fill_from(b, r, rows);
      convert<Compute<S>, W, kWidth<N>>(tile.entries, wide, b.n);
      Op::template columns<W, L::kLanes, L::kVectors>({wide, kWidth<N>, b.n}, wide, kWidth<N>,
                                                      t.value, t.inverse);
      convert<W, Compute<S>, kWidth<N>>(wide, tile.entries, b.n);
      tile.give_to(b, r, rows);
    }
    return;
  }
  if constexpr (__is_same(W, Compute<S>)) {
    if (across && !along) {
      for (; r + kWidth<N> <= b.rows; r += kWidth<N>) {
        t.read(b, r, kWidth<N>);
        Op::template columns<S, L::kLanes, L::kVectors>(
            {at<S>(b.x, r, 1), b.x_step, b.n}, at<S>(b.out, r, 1), b.out_step, t.value, t.inverse);
      }
    }
  }
  for (; r < b.rows; ++r) {
    S* out = at<S>(b.out, r, b.out_row);
    if (along) {
      Op::row(at<S>(b.x, r, b.x_row), out, b.n, temperature_of(b, r), b.scratch);
    } else {
      S* copy = static_cast<S*>(b.scratch);
      Op::row(copy, copy, b.n, temperature_of(b, r), gather<S>(b, r));
      for (size_t i = 0; i < b.n; ++i) *at<S>(out, i, b.out_step) = copy[i];
    }
  }
}

// For operations that give one thing for a row: Op::finish(states, block, first, count) makes it
// from the rows' states.
template <class S, int N, class Op>
void reduce_block(const Block& b) {
  using L = Lanes<S, N, Op::kWide>;
  using W = typename L::W;
  const bool along = b.x_step == 1;
  Temperatures<W, N> t;
  State states[kWidth<N>];
  size_t r = 0;
  if (b.n <= kShort) {
    Tile<S, N> tile;
    W wide[Tile<S, N>::kRounded * kWidth<N>];
    for (; r < b.rows; r += kWidth<N>) {
      const size_t rows = b.rows - r < kWidth<N> ? b.rows - r : kWidth<N>;
      t.read(b, r, rows);
      tile.fill_from(b, r, rows);
      convert<Compute<S>, W, kWidth<N>>(tile.entries, wide, b.n);
      columns_state<W, L::kLanes, L::kVectors, Op::kFull, !__is_same(W, Compute<S>)>(
          {wide, kWidth<N>, b.n}, t.inverse, states);
      Op::finish(states, b, r, rows);
    }
    return;
  }
  if (b.x_row == 1 && !along) {
    Temperatures<Compute<S>, N> narrow;
    for (; r + kWidth<N> <= b.rows; r += kWidth<N>) {
      narrow.read(b, r, kWidth<N>);
      columns_state<S, N, kGroups, Op::kFull>({at<S>(b.x, r, 1), b.x_step, b.n}, narrow.inverse,
                                              states);
      Op::finish(states, b, r, kWidth<N>);
    }
  }
  for (; r < b.rows; ++r) {
    const S* x = at<S>(b.x, r, b.x_row);
    if (!along) {
      gather<S>(b, r);
      x = static_cast<const S*>(b.scratch);
    }
    const State state = row_state<S, N, Op::kFull>(x, b.n, temperature_of(b, r));
    Op::finish(&state, b, r, 1);
  }
}

}  // namespace
}  // namespace softscope
