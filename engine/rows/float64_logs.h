// log_softmax, logsumexp and state of float64 rows, and of float64 rows side by side.
#pragma once

#include "rows/float64_log_weights.h"
#include "rows/softmax_family.h"

namespace softscope {
namespace {

// States of rows side by side. These are short, or along another axis: always careful.
template <int N, int K, bool Full, bool Unit>
void exact_columns(Columns<double> in, const double* temperature, const double* inverse,
                   ExactState* states) {
  Vec<double, N> m[K];
  columns_max<double, N, K>(in, m);
  for (int g = 0; g < K; ++g) {
    const Tempered<N> by = {m[g], load_raw<double, N>(temperature + g * N),
                            load_raw<double, N>(inverse + g * N)};
    CarefulSums<N, Full, Unit> sums;
    const double* x = in.x + g * N;
    for (size_t i = 0; i < in.n; ++i, x += in.step) sums.add(load_raw<double, N>(x), by);
    for (int l = 0; l < N; ++l) {
      ExactState& s = states[g * N + l];
      s = sums.lane(l, in.n, m[g][l]);
      if (m[g][l] == -kInfinity<double> || s.c != s.c) {
        State plain = {s.count, s.c, s.m, s.r, s.u, s.t, s.w};
        mend<double, N>(in.x + g * N + l, in.step, in.n, plain);
        s = {plain.count, plain.c, plain.m, plain.r, plain.u, plain.t, plain.w, 0, 0};
      }
    }
  }
}

template <int N, int K, bool Full>
void exact_columns(Columns<double> in, const double* temperature, const double* inverse,
                   ExactState* states) {
  bool unit = true;
  for (int i = 0; i < N * K; ++i) unit = unit && temperature[i] == 1;
  (unit ? exact_columns<N, K, Full, true> : exact_columns<N, K, Full, false>)(in, temperature,
                                                                              inverse, states);
}

template <int N>
struct LogSoftmax<double, N> {
  static constexpr bool kWide = true;

  static void rows(const Block& b, size_t first, size_t count) {
    for (size_t r = first; r < first + count; ++r) {
      row(at<double>(b.x, r, b.x_row), at<double>(b.out, r, b.out_row), b.n, temperature_of(b, r));
    }
  }
  static void row(const double* x, double* out, size_t n, double temperature) {
    ExactState s = exact_row<N, kPlain>(x, n, temperature);
    Pair<double> log = exact_log<N>(s);
    // Of all results that of the maximum is the smallest: log z.
    const double top = ::fabs(s.m / temperature);
    if (could_miss(s, log, top > log.high ? top : log.high)) {
      s = exact_row<N, kCareful>(x, n, temperature, s.m);
      log = exact_log<N>(s);
    }
    exact_log_row<N>(x, out, n, s.m, temperature, log);
  }

  template <class A, int M>
  static void columns(Columns<double> in, double* out, ptrdiff_t out_step,
                      const double* temperature, const double* inverse) {
    using V = Vec<double, M>;
    constexpr int K = kGroups;
    ExactState states[K * M];
    exact_columns<M, K, false>(in, temperature, inverse, states);
    for (int g = 0; g < K; ++g) {
      V m;
      bool huge = false;
      for (int l = 0; l < M; ++l) {
        m[l] = states[g * M + l].m;
        huge = huge || ::fabs(m[l] / temperature[g * M + l]) >= kHuge;
      }
      const Tempered<M> by = {m, load_raw<double, M>(temperature + g * M),
                              load_raw<double, M>(inverse + g * M)};
      const LogWeights<M, false> weights(by, exact_logs<M>(states + g * M, M));
      const V top = by.m / by.temperature;
      const double* x = in.x + g * M;
      double* to = out + g * M;
      for (size_t i = 0; i < in.n; ++i, x += in.step, to += out_step) {
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

  // rows: where the rows of states begin, if they lie in one piece; the others' states are careful.
  static void finish(const ExactState* states, const Block& b, size_t first, size_t count,
                     const double* const* rows) {
    using V = Vec<double, N>;
    for (size_t j = 0; j < count; j += N) {
      const size_t lanes = count - j < N ? count - j : N;
      V temperature{};
      for (size_t l = 0; l < N; ++l) {
        temperature[l] = temperature_of(b, first + j + (l < lanes ? l : 0));
      }
      const Pair<V> log = exact_logs<N>(states + j, lanes);
      const V lse = exact_lses<N>(states + j, lanes, temperature, log);
      for (size_t l = 0; l < lanes; ++l) {
        const ExactState& s = states[j + l];
        double result = lse[l];
        const double top = ::fabs(s.m / temperature[l]), size = ::fabs(result);
        if (could_miss(s, {log.high[l], log.low[l]}, top > size ? top : size)) {
          result = again(rows[j + l], b.n, temperature[l], s.m);
        }
        *at<double>(b.out, first + j + l, b.out_row) = result;
      }
    }
  }

 private:
  static double again(const double* x, size_t n, double temperature, double m) {
    const ExactState s = exact_row<N, kCareful>(x, n, temperature, m);
    return exact_lses<N>(&s, 1, fill<double, N>(temperature), exact_logs<N>(&s, 1))[0];
  }
};

template <int N>
struct WholeState<double, N> {
  static constexpr Way kWay = kAll;

  static void finish(const ExactState* states, const Block& b, size_t first, size_t count,
                     const double* const*) {
    for (size_t j = 0; j < count; ++j) {
      __builtin_memcpy(at<State>(b.out, first + j, b.out_row), &states[j], sizeof(State));
    }
  }
};

// reduce_block for exact states.
template <int N, class Op>
void exact_reduce(const Block& b) {
  constexpr bool full = Op::kWay == kAll;
  const bool along = b.x_step == 1, across = b.x_row == 1 && !along;
  Temperatures<double, N> t;
  ExactState states[kWidth<N>];
  size_t r = 0;
  if (b.n <= kShort<double>) {
    Tile<double, N> tile;
    for (; r < b.rows; r += kWidth<N>) {
      const size_t rows = b.rows - r < kWidth<N> ? b.rows - r : kWidth<N>;
      t.read(b, r, rows);
      tile.fill_from(b, r, rows);
      exact_columns<N, kGroups, full>({tile.entries, kWidth<N>, b.n}, t.value, t.inverse, states);
      Op::finish(states, b, r, rows, nullptr);
    }
    return;
  }
  for (; across && r + kWidth<N> <= b.rows; r += kWidth<N>) {
    t.read(b, r, kWidth<N>);
    exact_columns<N, kGroups, full>({at<double>(b.x, r, 1), b.x_step, b.n}, t.value, t.inverse,
                                    states);
    Op::finish(states, b, r, kWidth<N>, nullptr);
  }
  // Rows with gaps one by one, for there is one copy; others by the vector, for their logarithms.
  const size_t many = along ? N : 1;
  for (; r < b.rows; r += many) {
    const double* rows[N];
    const size_t count = b.rows - r < many ? b.rows - r : many;
    for (size_t j = 0; j < count; ++j) {
      rows[j] = at<double>(b.x, r + j, b.x_row);
      if (!along) {
        gather<double>(b, r);
        rows[j] = static_cast<const double*>(b.scratch);
      }
      states[j] = exact_row<N, Op::kWay>(rows[j], b.n, temperature_of(b, r + j));
    }
    Op::finish(states, b, r, count, rows);
  }
}

// Parts of a row too long for one thread.
template <int N>
void exact_part_state(const Part& p, double* state) {
  const ExactState s = exact_row<N, kAll>(static_cast<const double*>(p.x), p.n, p.temperature);
  __builtin_memcpy(state, &s, sizeof s);
}

template <int N>
void exact_part_sums(const Part& p, double* state) {
  const double* x = static_cast<const double*>(p.x);
  const ExactState s = p.careful ? exact_row<N, kCareful>(x, p.n, p.temperature, p.maximum)
                                 : exact_row<N, kPlain>(x, p.n, p.temperature);
  __builtin_memcpy(state, &s, sizeof s);
}

template <int N>
void exact_part_log_softmax(const Part& p) {
  exact_log_row<N>(static_cast<const double*>(p.x), static_cast<double*>(p.out), p.n, p.maximum,
                   p.temperature, {p.log_z, p.log_z_low});
}

void merge_exactly(double* into, const double* from, double temperature) {
  ExactState a, b;
  __builtin_memcpy(&a, into, sizeof a);
  __builtin_memcpy(&b, from, sizeof b);
  a = merged_exactly(a, b, temperature);
  __builtin_memcpy(into, &a, sizeof a);
}

template <int N>
bool exact_log_z(const double* state, double temperature, double* log_z) {
  ExactState s;
  __builtin_memcpy(&s, state, sizeof s);
  const Pair<double> log = exact_log<N>(s);
  log_z[0] = log.high;
  log_z[1] = log.low;
  const double top = ::fabs(s.m / temperature);
  return !could_miss(s, log, top > log.high ? top : log.high);
}

}  // namespace
}  // namespace softscope
