// softmax, log_softmax, logsumexp and state: what is computed of a row, and of rows side by side.
// The logarithms and states of float64 are in float64_logs.h.
#pragma once

#include "rows/walk_block.h"
#include "simd/log.h"

namespace softscope {
namespace {

// Up to this size a row of exponentials waits in a cache for its division.
constexpr size_t kWaitingBytes = size_t{1} << 20;

// c is 1 but for ties, where the subtraction is exact and nothing small is left to lose.
SOFTSCOPE_INLINE double log_z(const State& s) { return ::log1p((s.c - 1) + s.r); }

// The same for many states. In float32's service a vector of logarithms is exact enough.
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

// How many units of float32's roundoff fit into one of the result's.
template <class S>
constexpr double kRoom = __is_same(S, Brain)  ? 0x1p16
                         : __is_same(S, Half) ? 0x1p13
                                              : 1;

// Whether log z from float32 exponentials could miss the 2 ulp of `larger`, the larger of result
// and maximum, with half an ulp left for the last rounding. The error is at most u·(mean distance +
// 2), where the mean distance is at most log n − log z and counts three roundings at a temperature.
// So it is where the maximum nearly cancels log z or is near 0, and rarely else.
template <class S>
SOFTSCOPE_INLINE bool too_coarse(const State& s, double log, size_t n, double larger,
                                 double temperature) {
  if (s.count == 0 || s.c != s.c || s.m == kInfinity<double>) {
    return false;
  }
  uint64_t bits;
  __builtin_memcpy(&bits, &larger, sizeof bits);
  bits &= 0x7ff0000000000000;
  double power;  // of two, at most `larger`: half its ulp is u times that
  __builtin_memcpy(&power, &bits, sizeof power);
  const double allowed = 3 * power * kRoom<S>;
  const double roundings = temperature == 1 ? 1 : 3;
  // First with a bound of log n: a logarithm for each row would be felt.
  const double digits = 0.6932 * (64 - __builtin_clzll(n));
  if ((digits - log) * roundings + 2 < allowed) return false;
  return (::log(static_cast<double>(n)) - log) * roundings + 2 >= allowed;
}

// The state of a row whose entries lie `step` apart, in float64.
template <class S, int N, bool Full>
State wide_state(const S* x, size_t n, ptrdiff_t step, double temperature) {
  constexpr size_t kMany = 1024;
  double wide[kMany];
  State total = kNothing;
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
  State s = {sums.seen[g][l], sums.c[g][l], sums.m[g][l], sums.r[g][l],
             sums.u[g][l],    sums.t[g][l], sums.w[g][l]};
  if (s.c != s.c) mend<float, N>(entries + j, kWidth<N>, n, s);
  return s;
}

template <class S, int N>
struct Softmax {
  using C = Compute<S>;
  static constexpr bool kWide = false;

  static void rows(const Block& b, size_t first, size_t count) {
    for (size_t r = first; r < first + count; ++r) {
      row(at<S>(b.x, r, b.x_row), at<S>(b.out, r, b.out_row), b.n, temperature_of(b, r), b.scratch);
    }
  }
  SOFTSCOPE_INLINE static void row(const S* x, S* out, size_t n, double temperature,
                                   void* scratch) {
    const C inverse = static_cast<C>(1.0 / temperature);
    // exp(d) waits in `out` where that holds it exactly, else in scratch.
    constexpr bool in_place = sizeof(S) == sizeof(C);
    if (n * sizeof(C) <= kWaitingBytes) {
      const Shift<C> shift = {segment_max<S, N>(x, n), inverse};
      C* e = in_place ? reinterpret_cast<C*>(out) : static_cast<C*>(scratch);
      Vec<C, N> tail;
      const double z = segment_exp<S, N, true>(x, e, n, shift, tail);
      segment_divide<S, N>(e, tail, out, n, static_cast<C>(z));
    } else {
      const State s = row_state<S, N, false>(x, n, temperature);
      segment_exp_divide<S, N>(x, out, n, {static_cast<C>(s.m), inverse},
                               static_cast<C>(s.c + s.r));
    }
  }
  template <class A, int M>  // A: S, or the type that computes in a transposed tile
  static void columns(Columns<A> in, A* out, ptrdiff_t out_step, const Compute<A>*,
                      const Compute<A>* inverse) {
    columns_softmax<A, M, kGroups>(in, out, out_step, inverse);
  }
};

template <class S, int N>
struct LogSoftmax {
  using C = Compute<S>;
  static constexpr bool kWide = true;  // side by side it computes in float64

  // Logarithms are taken several at a time, as long as the rows stay in the first-level cache.
  static void rows(const Block& b, size_t first, size_t count) {
    const size_t many = b.n * sizeof(S) <= 2048 ? kWidth<N> : 1;
    State states[kWidth<N>];
    double logs[kWidth<N>];
    for (size_t i = 0; i < count; i += many) {
      const size_t some = count - i < many ? count - i : many;
      for (size_t j = 0; j < some; ++j) {
        const size_t r = first + i + j;
        states[j] = row_state<S, N, false>(at<S>(b.x, r, b.x_row), b.n, temperature_of(b, r));
      }
      logs_of<N>(states, some, logs);
      for (size_t j = 0; j < some; ++j) {
        const size_t r = first + i + j;
        const double temperature = temperature_of(b, r);
        const double top = ::fabs(states[j].m / temperature);
        const S* x = at<S>(b.x, r, b.x_row);
        if (too_coarse<S>(states[j], logs[j], b.n, top > logs[j] ? top : logs[j], temperature)) {
          states[j] = wide_state<S, N, false>(x, b.n, 1, temperature);
          logs[j] = log_z(states[j]);
        }
        segment_log<S, N>(x, at<S>(b.out, r, b.out_row), b.n, states[j].m, temperature, logs[j]);
      }
    }
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

  static void finish(const State* states, const Block& b, size_t first, size_t count) {
    double logs[kWidth<N>];
    logs_of<N>(states, count, logs);
    for (size_t j = 0; j < count; ++j) {
      const double temperature = temperature_of(b, first + j);
      State s = states[j];
      double lse = lse_of(s, logs[j], temperature);
      const double top = ::fabs(s.m / temperature), result = ::fabs(lse);
      if (too_coarse<S>(s, logs[j], b.n, top > result ? top : result, temperature)) {
        s = wide_state<S, N, false>(at<S>(b.x, first + j, b.x_row), b.n, b.x_step, temperature);
        lse = lse_of(s, log_z(s), temperature);
      }
      put(b, first + j, lse);
    }
  }

  static void tile(const TileSums<N>& sums, const float* entries, const Block& b, size_t first,
                   size_t count) {
    using Sums = TileSums<N>;
    double lse[kWidth<N>], c[kWidth<N>];
    for (int g = 0; g < Sums::kVectors; ++g) {
      store_raw<double, Sums::H>(lse + g * Sums::H, sums.m[g] * sums.inverse[g] + sums.log_z(g));
      store_raw<double, Sums::H>(c + g * Sums::H, sums.c[g]);
    }
    for (size_t j = 0; j < count; ++j) {
      if (c[j] != c[j]) {  // nothing but −inf, +inf, or NaN
        lse[j] = lse_of(tile_state<N>(sums, entries, b.n, j), c[j], temperature_of(b, first + j));
      }
      put(b, first + j, lse[j]);
    }
  }

 private:
  SOFTSCOPE_INLINE static void put(const Block& b, size_t row, double lse) {
    S* out = at<S>(b.out, row, b.out_row);
    if constexpr (sizeof(S) == 4) {
      *out = static_cast<float>(lse);
    } else {
      store_first<S, N>(out, 1, fill<C, N>(static_cast<C>(lse)));
    }
  }
};

// Whether readings from float32 sums would be too coarse: the logsumexp, as above, or all of them,
// when the row is so near one-hot, or so near even, that float32's terms underflow and float64's do
// not. Entropy, trace and variance are what these add up to.
bool readings_too_coarse(const State& s, size_t n, double temperature) {
  if (s.count > s.c && (s.r < 1e-25 || s.t < 1e-25)) return true;
  const double log = log_z(s);
  const double top = ::fabs(s.m / temperature), lse = ::fabs(s.m / temperature + log);
  return too_coarse<float>(s, log, n, top > lse ? top : lse, temperature);
}

template <class S, int N>
struct WholeState {
  static constexpr bool kFull = true;

  static void finish(const State* states, const Block& b, size_t first, size_t count) {
    for (size_t j = 0; j < count; ++j) {
      State s = states[j];
      if (sizeof(Compute<S>) == 4 && readings_too_coarse(s, b.n, temperature_of(b, first + j))) {
        s = wide_state<S, N, true>(at<S>(b.x, first + j, b.x_row), b.n, b.x_step,
                                   temperature_of(b, first + j));
      }
      *at<State>(b.out, first + j, b.out_row) = s;
    }
  }

  static void tile(const TileSums<N>& sums, const float* entries, const Block& b, size_t first,
                   size_t count) {
    for (size_t j = 0; j < count; ++j) {
      *at<State>(b.out, first + j, b.out_row) = tile_state<N>(sums, entries, b.n, j);
    }
  }
};

// A row too long for one thread is cut into parts; their states merge, and then each is mapped.
template <class S, int N>
void part_state(const Part& p, double* state) {
  const State s = row_state<S, N, true>(static_cast<const S*>(p.x), p.n, p.temperature);
  __builtin_memcpy(state, &s, sizeof s);
}

template <class S, int N>
void part_sums(const Part& p, double* state) {
  const State s = row_state<S, N, false>(static_cast<const S*>(p.x), p.n, p.temperature);
  __builtin_memcpy(state, &s, sizeof s);
}

template <class S, int N>
void part_softmax(const Part& p) {
  using C = Compute<S>;
  segment_exp_divide<S, N>(static_cast<const S*>(p.x), static_cast<S*>(p.out), p.n,
                           {static_cast<C>(p.maximum), static_cast<C>(1.0 / p.temperature)},
                           static_cast<C>(p.z));
}

template <class S, int N>
void part_log_softmax(const Part& p) {
  segment_log<S, N>(static_cast<const S*>(p.x), static_cast<S*>(p.out), p.n, p.maximum,
                    p.temperature, p.log_z);
}

// The same question for the merged parts of a long row, of float32 or less; `full` for all
// readings, else for log z alone.
bool merged_too_coarse(const double* state, size_t n, double temperature, bool full) {
  State s;
  __builtin_memcpy(&s, state, sizeof s);
  if (full) return readings_too_coarse(s, n, temperature);
  const double log = log_z(s), top = ::fabs(s.m / temperature);
  return too_coarse<float>(s, log, n, top > log ? top : log, temperature);
}

void merge_states(double* into, const double* from, double temperature) {
  State a, b;
  __builtin_memcpy(&a, into, sizeof a);
  __builtin_memcpy(&b, from, sizeof b);
  a = merged(a, b, 1.0 / temperature);
  __builtin_memcpy(into, &a, sizeof a);
}

}  // namespace
}  // namespace softscope
