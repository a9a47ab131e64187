// Short rows, several at a time, transposed into one row per lane: no lane stays empty, and lanes
// never mix.
//
// Logarithms of float32 and narrower are computed in float64 here. In float32, short rows often
// miss the bound of 2 ulp, and taking them again would cost more.
#pragma once

#include "rows/block.h"
#include "rows/side_by_side.h"
#include "simd/log.h"
#include "simd/transpose.h"

namespace softscope {
namespace {

constexpr int kGroups = 2;  // vectors side by side: 16 floats are one cache line
template <int N>
constexpr size_t kWidth = kGroups * N;

// Rows of at most this many entries may be transposed: along a row of 64 floats, a kernel spends as
// much time on the ends as on the entries. Each operation has a limit of its own below it: the tile
// reads and writes short pieces of many rows, which the processor does not see coming.
template <class C>
constexpr size_t kShort = sizeof(C) == 4 ? 64 : 24;
template <class C, size_t Floats>
constexpr size_t kLimit = sizeof(C) == 4 ? Floats : kShort<C>;

// Vectors of 512 bits are too wide for that: 32 rows at a time overflow the first-level cache, and
// half the lanes are quicker from 28 entries on. Their unit has kernels of 256 bits for short rows.
template <class C, int N>
constexpr bool kTransposes = N * sizeof(C) <= 32;

template <class T>
SOFTSCOPE_INLINE const T* at(const void* base, size_t i, ptrdiff_t stride) {
  return static_cast<const T*>(base) + static_cast<ptrdiff_t>(i) * stride;
}
template <class T>
SOFTSCOPE_INLINE T* at(void* base, size_t i, ptrdiff_t stride) {
  return static_cast<T*>(base) + static_cast<ptrdiff_t>(i) * stride;
}

template <class T>
SOFTSCOPE_INLINE const T* row_at(const RowsIn& rows, size_t i) {
  return at<T>(rows.data, i, rows.row);
}
template <class T>
SOFTSCOPE_INLINE T* row_at(const RowsOut& rows, size_t i) {
  return at<T>(rows.data, i, rows.row);
}

// What a row brings with it; see RowNumber.
SOFTSCOPE_INLINE const double* numbers_of(const Block& b, size_t row) {
  return at<double>(b.numbers, row, b.numbers_row);
}
SOFTSCOPE_INLINE double temperature_of(const Block& b, size_t row) {
  return numbers_of(b, row)[kTemperature];
}

// Some rows of a block.
struct RowRange {
  size_t first, count;
};

// As many rows from `first` on as lanes take at a time.
template <int N>
SOFTSCOPE_INLINE RowRange rows_from(const Block& b, size_t first) {
  return {.first = first, .count = b.rows - first < kWidth<N> ? b.rows - first : kWidth<N>};
}

// kWidth<N> short rows, transposed, in the type that computes: entry i of row r is at
// entries[i·kWidth<N> + r].
template <class S, int N, size_t Longest = kShort<Compute<S>>>
struct Tile {
  using C = Compute<S>;
  static constexpr size_t kRounded = (Longest + N - 1) / N * N;
  C entries[kRounded * kWidth<N>];

  // Lanes past the last row repeat it, so that none is undefined.
  SOFTSCOPE_INLINE void fill_from(const Block& b, RowRange rows) {
    // A row shorter than a vector may be read as a whole vector if enough rows follow it.
    const bool inside = b.x.row == static_cast<ptrdiff_t>(b.n) &&
                        (b.rows - rows.first - rows.count + 1) * b.n >= static_cast<size_t>(N);
    if (rows.count == kWidth<N> && b.x.step == 1 && (b.n >= N || inside)) {
      const S* x = row_at<S>(b.x, rows.first);
      squares(b.n, [&](size_t r, size_t i) __attribute__((always_inline)) {
        return load<S, N>(at<S>(x, r, b.x.row) + i);
      });
    } else {
      squares(b.n, [&](size_t r, size_t i) __attribute__((always_inline)) {
        return part(b, rows.first + (r < rows.count ? r : rows.count - 1), i);
      });
    }
  }

  // Rows shorter than a vector that lie one behind the other are written as whole vectors, in their
  // order: each covers what the one before it wrote too much. Only the last ones must not.
  SOFTSCOPE_INLINE void give_to(const Block& b, RowRange rows) const {
    const bool whole = rows.count == kWidth<N> && b.out.step == 1 && b.n >= N;
    const size_t entries_given = rows.count * b.n;
    const bool dense = b.out.step == 1 && b.out.row == static_cast<ptrdiff_t>(b.n) && b.n < N;
    const size_t covered = dense && entries_given >= N ? (entries_given - N) / b.n + 1 : 0;
    for (size_t g = 0; g < rows.count; g += N) {
      for (size_t i = 0; i < b.n; i += N) {
        const size_t start = start_of(i, b.n);
        Vec<C, N> square[N];
        for (size_t k = 0; k < N; ++k) {
          square[k] = load_raw<C, N>(entries + (start + k) * kWidth<N> + g);
        }
        transpose<C, N>(square);
        S* out = at<S>(row_at<S>(b.out, rows.first + g), start, b.out.step);
        if (whole || g + N <= covered) {
          for (size_t r = 0; r < N; ++r) store<S, N>(at<S>(out, r, b.out.row), square[r]);
          continue;
        }
        const size_t count = b.n < N ? b.n : N;
        for (size_t r = 0; r < N && g + r < rows.count; ++r, out += b.out.row) {
          if (g + r < covered) {
            store<S, N>(out, square[r]);
            continue;
          }
          if (b.out.step == 1) {
            store_first<S, N>(out, count, square[r]);
            continue;
          }
          for (size_t k = 0; k < count; ++k) {
            store_first<S, N>(at<S>(out, k, b.out.step), 1, fill<C, N>(square[r][k]));
          }
        }
      }
    }
  }

 private:
  // The last square of a row overlaps the one before it.
  SOFTSCOPE_INLINE static size_t start_of(size_t i, size_t n) {
    return i + N > n && n > N ? n - N : i;
  }

  template <class Get>
  SOFTSCOPE_INLINE void squares(size_t n, Get get) {
    for (size_t g = 0; g < kWidth<N>; g += N) {
      for (size_t i = 0; i < n; i += N) {
        const size_t start = start_of(i, n);
        Vec<C, N> square[N];
        for (size_t r = 0; r < N; ++r) square[r] = get(g + r, start);
        transpose<C, N>(square);
        for (size_t k = 0; k < N; ++k) {
          store_raw<C, N>(entries + (start + k) * kWidth<N> + g, square[k]);
        }
      }
    }
  }

  // Entries i … i + N of a row, or as many as it has.
  SOFTSCOPE_INLINE static Vec<C, N> part(const Block& b, size_t row, size_t i) {
    const S* x = row_at<S>(b.x, row);
    const size_t count = b.n < N ? b.n : N;
    if (b.x.step == 1) {
      return count == N ? load<S, N>(x + i) : load_first<S, N>(x + i, count, 0);
    }
    Vec<C, N> v{};
    for (size_t k = 0; k < count; ++k) {
      v[k] = load_first<S, N>(at<S>(x, i + k, b.x.step), 1, 0)[0];
    }
    return v;
  }
};

// T and 1/T of kWidth<N> rows; lanes past the last row repeat the first.
template <class W, int N>
struct Temperatures {
  W value[kWidth<N>], inverse[kWidth<N>];

  SOFTSCOPE_INLINE void read(const Block& b, RowRange rows) {
    if (b.numbers_row == 0 && rows.first != 0) return;  // shared by all rows, and read already
    for (size_t r = 0; r < kWidth<N>; ++r) {
      const double t = temperature_of(b, rows.first + (r < rows.count ? r : 0));
      value[r] = static_cast<W>(t);
      inverse[r] = static_cast<W>(1.0 / t);
    }
  }
};

// The sums of a tile of float32 rows, in float64. Its vectors have half the lanes, so there are
// four of them side by side.
template <int N>
struct TileSums {
  static constexpr int H = N / 2, kVectors = 2 * kGroups;
  using V = Vec<double, H>;
  V m[kVectors], inverse[kVectors], c[kVectors], r[kVectors];
  V u[kVectors], t[kVectors], w[kVectors], seen[kVectors];

  SOFTSCOPE_INLINE static void widen(const float* from, V (&to)[kVectors]) {
    for (int g = 0; g < kVectors; ++g) to[g] = widened<H>(load_raw<float, H>(from + g * H));
  }

  // Full: all sums; else only m, c and r. For a row with NaN, with +inf, or with nothing but −inf,
  // c is NaN.
  template <bool Full>
  SOFTSCOPE_INLINE void take(const float* entries, size_t n, const double* inverses) {
    Vec<float, N> top[kGroups];
    columns_max<float, N, kGroups>({.x = entries, .step = kWidth<N>, .n = n}, top);
    float tops[kWidth<N>];
    for (int g = 0; g < kGroups; ++g) store_raw<float, N>(tops + g * N, top[g]);
    widen(tops, m);
    for (int g = 0; g < kVectors; ++g) {
      inverse[g] = load_raw<double, H>(inverses + g * H);
      c[g] = r[g] = u[g] = t[g] = w[g] = V{};
      seen[g] = fill<double, H>(Full ? 0.0 : static_cast<double>(n));
    }
    V plain[kVectors] = {};
    if constexpr (!Full) {
      if (take_plainly(entries, n, plain)) return;
    }
    for (size_t i = 0; i < n; ++i) {
      V d[kVectors], e[kVectors];
      widen(entries + i * kWidth<N>, d);
      for (int g = 0; Full && g < kVectors; ++g) {
        seen[g] += d[g] != -kInfinity<double> ? fill<double, H>(1) : V{};
      }
      for (int g = 0; g < kVectors; ++g) e[g] = d[g] = (d[g] - m[g]) * inverse[g];
      exp_for_float32<H, kVectors>(e);
      for (int g = 0; g < kVectors; ++g) {
        const auto below = d[g] < 0.0;  // false for NaN, which thus reaches c
        c[g] += below ? V{} : e[g];
        e[g] = below ? e[g] : V{};
        r[g] += e[g];
      }
      for (int g = 0; Full && g < kVectors; ++g) {
        d[g] =
            max(d[g], fill<double, H>(-1e3));  // where e is 0, d may be −inf, and 0·(−inf) is NaN
        const V first = e[g] * d[g];
        u[g] += first;
        t[g] += first * d[g];
        w[g] += e[g] * e[g];
      }
    }
    // Rows for which the plain sum will do keep it: else their bits would depend on their
    // neighbours.
    for (int g = 0; !Full && g < kVectors; ++g) {
      const auto enough = plain[g] > kEnough;
      c[g] = enough ? fill<double, H>(1) : c[g];
      r[g] = enough ? plain[g] - 1.0 : r[g];
    }
  }

  // One sum z over all entries is quicker, and exact enough unless a row is so near one-hot that
  // the 1 would swallow the others. Then this returns false and has done nothing else.
  static constexpr double kEnough = 1 + 1e-6;
  SOFTSCOPE_INLINE bool take_plainly(const float* entries, size_t n, V (&z)[kVectors]) {
    for (size_t i = 0; i < n; ++i) {
      V e[kVectors];
      widen(entries + i * kWidth<N>, e);
      for (int g = 0; g < kVectors; ++g) e[g] = (e[g] - m[g]) * inverse[g];
      exp_for_float32<H, kVectors>(e);
      for (int g = 0; g < kVectors; ++g) z[g] += e[g];
    }
    auto enough = z[0] > kEnough;  // false for NaN
    for (int g = 1; g < kVectors; ++g) enough &= z[g] > kEnough;
    for (int l = 0; l < H; ++l) {
      if (enough[l] == 0) return false;
    }
    for (int g = 0; g < kVectors; ++g) {
      c[g] = fill<double, H>(1);
      r[g] = z[g] - 1.0;
    }
    return true;
  }

  SOFTSCOPE_INLINE V log_z(int g) const { return log1p_nonnegative<H>((c[g] - 1.0) + r[g]); }
};

}  // namespace
}  // namespace softscope
