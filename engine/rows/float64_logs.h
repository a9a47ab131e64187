// log_softmax, logsumexp and state of float64 rows. (Of narrower ones: float32_logs.h.)
#pragma once

#include "rows/float32_logs.h"
#include "rows/float64_log_weights.h"

namespace softscope {
namespace {

// States of rows side by side, always the careful way: such rows are short, or along another axis.
template <int N, int K, bool Full, bool Unit>
void precise_columns(Columns<double> in, const Temperatures<double, N>& t, PreciseState* states) {
  Vec<double, N> m[K];
  columns_max<double, N, K>(in, m);
  for (int g = 0; g < K; ++g) {
    const Tempered<N> by = {.m = m[g],
                            .temperature = load_raw<double, N>(t.value + g * N),
                            .inverse = load_raw<double, N>(t.inverse + g * N)};
    CarefulSums<N, Full, Unit> sums;
    const double* x = in.x + g * N;
    for (size_t i = 0; i < in.n; ++i, x += in.step) sums.add(load_raw<double, N>(x), by);
    for (int l = 0; l < N; ++l) {
      PreciseState& s = states[g * N + l];
      s = sums.lane(l, in.n, m[g][l]);
      if (m[g][l] == -kInfinity<double> || s.c != s.c) {
        mend<double, N>({.x = in.x + g * N + l, .step = in.step, .n = in.n}, s);
        s.r_low = 0;
      }
    }
  }
}

template <int N, int K, bool Full>
void precise_columns(Columns<double> in, const Temperatures<double, N>& t, PreciseState* states) {
  bool unit = true;
  for (int i = 0; i < N * K; ++i) unit = unit && t.value[i] == 1;
  (unit ? precise_columns<N, K, Full, true> : precise_columns<N, K, Full, false>)(in, t, states);
}

template <int N>
struct LogSoftmax<double, N> {
  static constexpr bool kWide = true;
  static constexpr size_t kLongest = kShort<double>;

  static void rows(const Block& b, RowRange rows) {
    for (size_t r = rows.first; r < rows.first + rows.count; ++r) {
      row(row_at<double>(b.x, r), row_at<double>(b.out, r), b.n, temperature_of(b, r));
    }
  }
  static void row(const double* x, double* out, size_t n, double temperature) {
    PreciseState s = precise_row<N, kPlain>(x, n, temperature);
    DoubleDouble<double> log = precise_log<N>(s);
    // The smallest of all results is log z, that of the maximum.
    const double top = ::fabs(s.m / temperature);
    if (could_miss(s, log, top > log.high ? top : log.high)) {
      s = precise_row<N, kCareful>(x, n, temperature, s.m);
      log = precise_log<N>(s);
    }
    precise_log_row<N>(x, out, n, s.m, temperature, log);
  }

  template <class A, int M>
  static void columns(Columns<double> in, ColumnsOut<double> out,
                      const Temperatures<double, M>& t) {
    using V = Vec<double, M>;
    constexpr int K = kGroups;
    PreciseState states[K * M];
    precise_columns<M, K, false>(in, t, states);
    for (int g = 0; g < K; ++g) {
      V m;
      bool huge = false;
      for (int l = 0; l < M; ++l) {
        m[l] = states[g * M + l].m;
        huge = huge || ::fabs(m[l] / t.value[g * M + l]) >= kHuge;
      }
      const Tempered<M> by = {.m = m,
                              .temperature = load_raw<double, M>(t.value + g * M),
                              .inverse = load_raw<double, M>(t.inverse + g * M)};
      const LogWeights<M, false> weights(by, precise_logs<M>(states + g * M, M));
      const V top = by.m / by.temperature;
      const double* x = in.x + g * M;
      double* to = out.x + g * M;
      for (size_t i = 0; i < in.n; ++i, x += in.step, to += out.step) {
        const V v = load_raw<double, M>(x);
        V result = weights.of(v);
        if (huge) result = max(top, -top) >= kHuge ? weights.of_huge(v) : result;
        store_raw<double, M>(to, result);
      }
    }
  }
};

template <int N>
struct LogSumExp<double, N> {
  static constexpr Way kWay = kPlain;

  // `begins`: where the rows begin, if they are contiguous. States of other rows are careful
  // already.
  static void finish(const PreciseState* states, const Block& b, RowRange rows,
                     const double* const* begins) {
    using V = Vec<double, N>;
    for (size_t j = 0; j < rows.count; j += N) {
      const size_t lanes = rows.count - j < N ? rows.count - j : N;
      V temperature{};
      for (size_t l = 0; l < N; ++l) {
        temperature[l] = temperature_of(b, rows.first + j + (l < lanes ? l : 0));
      }
      const DoubleDouble<V> log = precise_logs<N>(states + j, lanes);
      const V lse = precise_lses<N>(states + j, lanes, temperature, log);
      for (size_t l = 0; l < lanes; ++l) {
        const PreciseState& s = states[j + l];
        double result = lse[l];
        const double top = ::fabs(s.m / temperature[l]), size = ::fabs(result);
        if (could_miss(s, {log.high[l], log.low[l]}, top > size ? top : size)) {
          result = again(begins[j + l], b.n, temperature[l], s.m);
        }
        *row_at<double>(b.out, rows.first + j + l) = result;
      }
    }
  }

 private:
  static double again(const double* x, size_t n, double temperature, double m) {
    const PreciseState s = precise_row<N, kCareful>(x, n, temperature, m);
    return precise_lses<N>(&s, 1, fill<double, N>(temperature), precise_logs<N>(&s, 1))[0];
  }
};

template <int N>
struct WholeState<double, N> {
  static constexpr Way kWay = kAll;

  static void finish(const PreciseState* states, const Block& b, RowRange rows,
                     const double* const*) {
    for (size_t j = 0; j < rows.count; ++j) *row_at<State>(b.out, rows.first + j) = states[j];
  }
};

// What reduce_block is for narrower types.
template <int N, class Op>
void precise_reduce_block(const Block& b) {
  constexpr bool full = Op::kWay == kAll;
  const bool along = b.x.step == 1, across = b.x.row == 1 && !along;
  Temperatures<double, N> t;
  PreciseState states[kWidth<N>];
  size_t r = 0;
  if constexpr (kTransposes<double, N>) {
    if (b.n <= kShort<double>) {
      Tile<double, N> tile;
      for (; r < b.rows; r += kWidth<N>) {
        const RowRange rows = rows_from<N>(b, r);
        t.read(b, rows);
        tile.fill_from(b, rows);
        precise_columns<N, kGroups, full>({.x = tile.entries, .step = kWidth<N>, .n = b.n}, t,
                                          states);
        Op::finish(states, b, rows, nullptr);
      }
      return;
    }
  }
  for (; across && r + kWidth<N> <= b.rows; r += kWidth<N>) {
    const RowRange rows = rows_from<N>(b, r);
    t.read(b, rows);
    precise_columns<N, kGroups, full>({.x = at<double>(b.x.data, r, 1), .step = b.x.step, .n = b.n},
                                      t, states);
    Op::finish(states, b, rows, nullptr);
  }
  // Rows with gaps one by one, since there is room for one copy; others N at a time, for their
  // logarithms.
  const size_t many = along ? N : 1;
  for (; r < b.rows; r += many) {
    const double* begins[N];
    const RowRange rows = {.first = r, .count = b.rows - r < many ? b.rows - r : many};
    for (size_t j = 0; j < rows.count; ++j) {
      begins[j] = row_at<double>(b.x, r + j);
      if (!along) {
        gather<double>(b, r);
        begins[j] = static_cast<const double*>(b.scratch);
      }
      states[j] = precise_row<N, Op::kWay>(begins[j], b.n, temperature_of(b, r + j));
    }
    Op::finish(states, b, rows, begins);
  }
}

}  // namespace
}  // namespace softscope
