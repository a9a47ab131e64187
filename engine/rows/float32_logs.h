// log_softmax, logsumexp and state of float32 and narrower rows. (Of float64: float64_logs.h.)
//
// Their sums are taken in float32, and where these could miss the bound, again in float64.
#pragma once

#include "rows/log_softmax_together.h"
#include "rows/walk_block.h"
#include "simd/log.h"

namespace softscope {
namespace {

// c is 1 except in ties, and then the subtraction is exact and there is nothing small to lose.
SOFTSCOPE_INLINE double log_z(const State& s) { return ::log1p((s.c - 1) + s.r); }

// The same for many states, by vectors: on behalf of float32 that is exact enough.
template <int N>
SOFTSCOPE_INLINE void logs_of(const State* states, size_t count, double* logs) {
  constexpr int D = N / 2;
  for (size_t j = 0; j < count; j += D) {
    Vec<double, D> r{};
    for (size_t l = 0; l < D && j + l < count; ++l) r[l] = (states[j + l].c - 1) + states[j + l].r;
    const Vec<double, D> log = log1p_nonnegative<D>(max(Vec<double, D>{}, r));
    for (size_t l = 0; l < D && j + l < count; ++l) logs[j + l] = log[l];
  }
}

SOFTSCOPE_INLINE double lse_of(const State& s, double log, double temperature) {
  if (s.count == 0) return -kInfinity<double>;
  if (s.m == kInfinity<double> && temperature == temperature) return s.m;
  return s.m / temperature + log;
}

// Whether log z from float32 exponentials could miss the bound: 2 ulp of `larger`, the larger of
// result and maximum, of which half an ulp is left for the last rounding. The error is at most
// u·(mean distance + 2); the mean distance is at most log n − log z, and counts three times with a
// temperature, for its three roundings. So this is true where the maximum is near 0 or nearly
// cancels log z, and rarely elsewhere.
template <class S>
SOFTSCOPE_INLINE bool too_coarse(const State& s, double log, size_t n, double larger,
                                 double temperature) {
  if (s.count == 0 || s.c != s.c || s.m == kInfinity<double>) return false;
  const double allowed = 3 * power_of_two(larger) * kRoom<S>;
  const double roundings = temperature == 1 ? 1 : 3;
  // First with an upper bound of log n, because a logarithm for each row would be felt.
  const double digits = 0.6932 * (64 - __builtin_clzll(n));
  if ((digits - log) * roundings + 2 < allowed) return false;
  return (::log(static_cast<double>(n)) - log) * roundings + 2 >= allowed;
}

// The state of a row whose entries lie `step` apart, in float64.
template <class S, int N, bool Full>
State wide_state(const S* x, size_t n, ptrdiff_t step, double temperature) {
  constexpr size_t kMany = 1024;
  double wide[kMany];
  State total = kNoEntries;
  for (size_t i = 0; i < n; i += kMany) {
    const size_t count = n - i < kMany ? n - i : kMany;
    size_t j = 0;
    if (step == 1) {
      for (; j + N <= count; j += N) {
        const Vec<Compute<S>, N> v = load<S, N>(x + i + j);
        for (size_t l = 0; l < N; ++l) wide[j + l] = static_cast<double>(v[l]);
      }
    }
    for (; j < count; ++j) {
      wide[j] = static_cast<double>(load_first<S, N>(at<S>(x, i + j, step), 1, 0)[0]);
    }
    total = merged(total, segment_state<double, N / 2, Full>(wide, count, 1.0 / temperature),
                   1.0 / temperature);
  }
  return total;
}

// The state of row j of a tile.
template <int N>
SOFTSCOPE_INLINE State tile_state(const TileSums<N>& sums, const float* entries, size_t n,
                                  size_t j) {
  const size_t g = j / sums.H, l = j % sums.H;
  State s = {.count = sums.seen[g][l],
             .c = sums.c[g][l],
             .m = sums.m[g][l],
             .r = sums.r[g][l],
             .u = sums.u[g][l],
             .t = sums.t[g][l],
             .w = sums.w[g][l]};
  if (s.c != s.c) mend<float, N>({.x = entries + j, .step = kWidth<N>, .n = n}, s);
  return s;
}

template <class S, int N>
struct LogSoftmax {
  using C = Compute<S>;
  static constexpr bool kWide = true;  // side by side, it computes in float64
  static constexpr size_t kLongest = kLimit<C, 44>;

  static void rows(const Block& b, RowRange rows) {
    if (b.n <= kLogsTogether<N>) {
      const double log_n = ::log(static_cast<double>(b.n));
      const auto again = [&](size_t row) { one(b, row); };
      for (size_t r = 0; r < rows.count; r += N) {
        const size_t some = rows.count - r < N ? rows.count - r : N;
        const RowRange group = {.first = rows.first + r, .count = some};
        if (b.n < kExact<N>) {
          log_softmax_together<S, N, true>(b, group, log_n, again);
        } else {
          log_softmax_together<S, N, false>(b, group, log_n, again);
        }
      }
      return;
    }
    for (size_t r = rows.first; r < rows.first + rows.count; ++r) one(b, r);
  }

  static void one(const Block& b, size_t row) {
    const double temperature = temperature_of(b, row);
    const S* x = row_at<S>(b.x, row);
    State s = row_state<S, N, false>(x, b.n, temperature);
    double log;
    logs_of<N>(&s, 1, &log);
    const double top = ::fabs(s.m / temperature);
    if (too_coarse<S>(s, log, b.n, top > log ? top : log, temperature) &&
        !exact_log_z<S, N>(x, b.n, s.m, temperature, log)) {
      s = wide_state<S, N, false>(x, b.n, 1, temperature);
      log = log_z(s);
    }
    segment_log<S, N>(x, row_at<S>(b.out, row), b.n, s.m, temperature, log);
  }

  static void tile(float* entries, size_t n, const double* inverse) {
    using Sums = TileSums<N>;
    Sums sums;
    sums.template take<false>(entries, n, inverse);
    typename Sums::V log[Sums::kVectors];
    for (int g = 0; g < Sums::kVectors; ++g) log[g] = sums.log_z(g);
    for (size_t i = 0; i < n; ++i, entries += kWidth<N>) {
      typename Sums::V x[Sums::kVectors];
      Sums::widen(entries, x);
      for (int g = 0; g < Sums::kVectors; ++g) x[g] = (x[g] - sums.m[g]) * sums.inverse[g] - log[g];
      for (int g = 0; g < Sums::kVectors; ++g) {
        store_raw<float, Sums::H>(entries + g * Sums::H, narrowed<Sums::H>(x[g]));
      }
    }
  }
};

template <class S, int N>
struct LogSumExp {
  using C = Compute<S>;
  static constexpr bool kFull = false;
  static constexpr size_t kLongest = kLimit<C, 56>;

  static void finish(const State* states, const Block& b, RowRange rows) {
    double logs[kWidth<N>];
    logs_of<N>(states, rows.count, logs);
    for (size_t j = 0; j < rows.count; ++j) {
      const double temperature = temperature_of(b, rows.first + j);
      State s = states[j];
      double lse = lse_of(s, logs[j], temperature);
      const double top = ::fabs(s.m / temperature), result = ::fabs(lse);
      if (too_coarse<S>(s, logs[j], b.n, top > result ? top : result, temperature)) {
        s = wide_state<S, N, false>(row_at<S>(b.x, rows.first + j), b.n, b.x.step, temperature);
        lse = lse_of(s, log_z(s), temperature);
      }
      put(b, rows.first + j, lse);
    }
  }

  static void tile(const TileSums<N>& sums, const float* entries, const Block& b, RowRange rows) {
    using Sums = TileSums<N>;
    double lse[kWidth<N>], c[kWidth<N>];
    for (int g = 0; g < Sums::kVectors; ++g) {
      store_raw<double, Sums::H>(lse + g * Sums::H, sums.m[g] * sums.inverse[g] + sums.log_z(g));
      store_raw<double, Sums::H>(c + g * Sums::H, sums.c[g]);
    }
    for (size_t j = 0; j < rows.count; ++j) {
      if (c[j] != c[j]) {  // NaN, +inf, or nothing but −inf
        lse[j] =
            lse_of(tile_state<N>(sums, entries, b.n, j), c[j], temperature_of(b, rows.first + j));
      }
      put(b, rows.first + j, lse[j]);
    }
  }

 private:
  SOFTSCOPE_INLINE static void put(const Block& b, size_t row, double lse) {
    S* out = row_at<S>(b.out, row);
    if constexpr (sizeof(S) == 4) {
      *out = static_cast<float>(lse);
    } else {
      store_first<S, N>(out, 1, fill<C, N>(static_cast<C>(lse)));
    }
  }
};

// Whether readings from float32 sums would be too coarse: the logsumexp, as above; or all of them,
// if the row is so near one-hot, or so near uniform, that terms underflow in float32 and not in
// float64. Entropy, trace and variance are made of such terms.
bool readings_too_coarse(const State& s, size_t n, double temperature) {
  if (s.count > s.c && (s.r < 1e-25 || s.t < 1e-25)) return true;
  const double log = log_z(s);
  const double top = ::fabs(s.m / temperature), lse = ::fabs(s.m / temperature + log);
  return too_coarse<float>(s, log, n, top > lse ? top : lse, temperature);
}

template <class S, int N>
struct WholeState {
  static constexpr bool kFull = true;
  static constexpr size_t kLongest = kLimit<Compute<S>, 56>;

  static void finish(const State* states, const Block& b, RowRange rows) {
    for (size_t j = 0; j < rows.count; ++j) {
      State s = states[j];
      const double temperature = temperature_of(b, rows.first + j);
      if (readings_too_coarse(s, b.n, temperature)) {
        s = wide_state<S, N, true>(row_at<S>(b.x, rows.first + j), b.n, b.x.step, temperature);
      }
      *row_at<State>(b.out, rows.first + j) = s;
    }
  }

  static void tile(const TileSums<N>& sums, const float* entries, const Block& b, RowRange rows) {
    for (size_t j = 0; j < rows.count; ++j) {
      *row_at<State>(b.out, rows.first + j) = tile_state<N>(sums, entries, b.n, j);
    }
  }
};

}  // namespace
}  // namespace softscope
