// How a block of rows becomes sparse weights: several rows side by side where they are short or lie
// across, and their alpha is 1.5 or 2; else row by row.
#pragma once

#include "entmax/entmax_row.h"

namespace softscope {
namespace {

// Rows of at most this many entries are transposed: one row alone would wait for its divisions.
constexpr size_t kSparseShort = 64;

SOFTSCOPE_INLINE double alpha_of(const Block& b, size_t row) {
  return at<double>(b.numbers, row, b.numbers_row)[1];
}

// Through memory: of single lanes the compiler makes single instructions.
template <int M>
SOFTSCOPE_INLINE Vec<double, M> square_root(Vec<double, M> v) {
  alignas(sizeof v) double lanes[M];
  store_raw<double, M>(lanes, v);
  for (double& lane : lanes) lane = __builtin_sqrt(lane);
  return load_raw<double, M>(lanes);
}

// K·M rows side by side, in float64. What the lanes hold is theirs alone, so a row computes as if
// it were the only one.
template <int M, int K>
struct SideBySide {
  using V = Vec<double, M>;
  static constexpr size_t kRows = K * M;
  V scale[K] = {}, squared[K] = {}, keep[K] = {}, s[K] = {}, total[K] = {}, maximum[K] = {};
  bool alone[kRows] = {};  // alpha is neither 1.5 nor 2: a row for entmax_row
  bool any_alone = false, all_alone = false;

  // Rows past the last repeat it.
  SOFTSCOPE_INLINE void read(const Block& b, size_t first) {
    any_alone = false;
    all_alone = true;
    for (size_t r = 0; r < kRows; ++r) {
      const size_t row = first + r < b.rows ? first + r : b.rows - 1;
      const double alpha = alpha_of(b, row);
      alone[r] = alpha != 2 && alpha != 1.5;
      any_alone |= alone[r];
      all_alone &= alone[r];
      scale[r / M][r % M] = (alpha - 1) / temperature_of(b, row);
      squared[r / M][r % M] = alpha == 1.5 ? 1 : 0;
      keep[r / M][r % M] = alone[r] ? 1 : 0;
    }
  }

  template <class A>
  SOFTSCOPE_INLINE static V wide(const A* x) {
    const Vec<Compute<A>, M> narrow = load<A, M>(x);
    V v;
    for (int l = 0; l < M; ++l) v[l] = static_cast<double>(narrow[l]);
    return v;
  }

  template <class A>
  SOFTSCOPE_INLINE void find_maximum(Columns<A> in) {
    for (auto& m : maximum) m = fill<double, M>(-kInfinity<double>);
    const A* x = in.x;
    for (size_t i = 0; i < in.n; ++i, x += in.step) {
      for (int k = 0; k < K; ++k) maximum[k] = max(wide(x + k * M), maximum[k]);
    }
  }

  // e = β·(x − max)/T, and −2 for all below, which have no weight either: 0·(−inf) is NaN. A NaN
  // stays: the maximum may lose it, this brings it back into every sum of its row.
  SOFTSCOPE_INLINE V e_of(V x, int k) const {
    return max(fill<double, M>(-2), (x - maximum[k]) * scale[k]);
  }

  // Newton's steps of newton.h, for every lane until the last is there; more change nothing. With
  // Ready x is e already. Plain: see LaneSum.
  template <class A, bool Ready, bool Plain>
  void solve(Columns<A> in) {
    for (auto& v : s) v = fill<double, M>(1);
    for (int step = 0;; ++step) {
      LaneSum<double, M, Plain> f[K];
      V g[K] = {}, h[K] = {};
      const A* x = in.x;
      for (size_t i = 0; i < in.n; ++i, x += in.step) {
        for (int k = 0; k < K; ++k) {
          const V v = wide(x + k * M);
          const V e = Ready ? v : e_of(v, k);
          const V w = max(V{}, e + s[k]);
          const V one = w > 0.0 ? fill<double, M>(1) : V{};
          const V u = squared[k] > 0.0 ? w : one;
          f[k].add(u * w);
          g[k] += u;
          h[k] -= u * e;
        }
      }
      Vec<int64_t, M> moved = {};
      for (int k = 0; k < K; ++k) {
        total[k] = f[k].value();
        const V root = squared[k] > 0.0 ? square_root<M>(total[k]) : fill<double, M>(1);
        const V next = (root + h[k]) / g[k];
        const auto lower = (next < s[k] * (1 - kNear)) & (keep[k] == 0.0);
        s[k] = lower ? next : s[k];
        moved |= lower;
      }
      int64_t any = 0;
      for (int l = 0; l < M; ++l) any |= moved[l];
      if (any == 0 || step == kMostSteps) return;
    }
  }

  // The weights; rows that are alone stay as they are, for out may be x.
  template <class A, bool Ready>
  void write(Columns<A> in, A* out, ptrdiff_t out_step) const {
    V inverse[K];
    for (int k = 0; k < K; ++k) inverse[k] = 1.0 / total[k];
    const A* x = in.x;
    for (size_t i = 0; i < in.n; ++i, x += in.step, out += out_step) {
      for (int k = 0; k < K; ++k) {
        const V v = wide(x + k * M);
        const V w = max(V{}, (Ready ? v : e_of(v, k)) + s[k]);
        V p = (squared[k] > 0.0 ? w * w : w) * inverse[k];
        p = keep[k] > 0.0 ? v : p;
        Vec<Compute<A>, M> narrow;
        for (int l = 0; l < M; ++l) narrow[l] = static_cast<Compute<A>>(p[l]);
        store<A, M>(out + k * M, narrow);
      }
    }
  }

  // Of a copy in float64, in place.
  template <bool Plain>
  void replace(double* x, ptrdiff_t step, size_t n) {
    find_maximum<double>({x, step, n});
    for (size_t i = 0; i < n; ++i) {
      double* from = x + static_cast<ptrdiff_t>(i) * step;
      for (int k = 0; k < K; ++k) {
        store_raw<double, M>(from + k * M, e_of(load_raw<double, M>(from + k * M), k));
      }
    }
    solve<double, true, Plain>({x, step, n});
    write<double, true>({x, step, n}, x, step);
  }
};

template <class From, class To, size_t Count>
SOFTSCOPE_INLINE void convert(const From* from, To* to, size_t rows) {
  for (size_t i = 0; i < rows * Count; ++i) to[i] = static_cast<To>(from[i]);
}

// A row that is alone, out of a tile: computed in a line of its own.
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
  using Side = SideBySide<sizeof(C) == 8 ? N : N / 2, 2>;
  Tile<S, N, kSparseShort> tile;
  double wide[tile.kRounded * kWidth<N>];
  Side side;
  for (size_t r = 0; r < b.rows; r += kWidth<N>) {
    const size_t rows = b.rows - r < kWidth<N> ? b.rows - r : kWidth<N>;
    tile.fill_from(b, r, rows);
    convert<C, double, kWidth<N>>(tile.entries, wide, b.n);
    for (size_t c = 0; c < rows; c += Side::kRows) {
      if (b.numbers_row != 0 || r + c == 0) side.read(b, r + c);
      if (!side.all_alone) side.template replace<sizeof(C) == 4>(wide + c, kWidth<N>, b.n);
      if (!side.any_alone) continue;
      for (size_t j = 0; j < Side::kRows && c + j < rows; ++j) {
        if (side.alone[j]) alone_in_tile<S, N>(b, r + c + j, tile.entries + c + j, wide + c + j);
      }
    }
    convert<double, C, kWidth<N>>(wide, tile.entries, b.n);
    tile.give_to(b, r, rows);
  }
}

// A row whose entries do not lie together.
template <class S, int N>
void entmax_gathered(const Block& b, size_t r) {
  S* copy = static_cast<S*>(b.scratch);
  entmax_row<S, N>(copy, copy, b.n, temperature_of(b, r), alpha_of(b, r), gather<S>(b, r));
  S* out = at<S>(b.out, r, b.out_row);
  for (size_t i = 0; i < b.n; ++i) *at<S>(out, i, b.out_step) = copy[i];
}

template <class S, int N>
void entmax_block(const Block& b) {
  using C = Compute<S>;
  if (b.n <= kSparseShort) {
    entmax_short<S, N>(b);
    return;
  }
  size_t r = 0;
  if (b.x_step == 1 && b.out_step == 1) {
    for (; r < b.rows; ++r) {
      entmax_row<S, N>(at<S>(b.x, r, b.x_row), at<S>(b.out, r, b.out_row), b.n,
                       temperature_of(b, r), alpha_of(b, r), b.scratch);
    }
    return;
  }
  if (b.x_row == 1 && b.out_row == 1) {
    using Side = SideBySide<sizeof(C) == 8 ? N : N / 2, 2>;
    Side side;
    for (; r + Side::kRows <= b.rows; r += Side::kRows) {
      if (b.numbers_row != 0 || r == 0) side.read(b, r);
      const Columns<S> in = {at<S>(b.x, r, 1), b.x_step, b.n};
      if (!side.all_alone) {
        side.template find_maximum<S>(in);
        side.template solve<S, false, sizeof(C) == 4>(in);
        side.template write<S, false>(in, at<S>(b.out, r, 1), b.out_step);
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
