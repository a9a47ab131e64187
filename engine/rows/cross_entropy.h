// Cross-entropy of rows. With the weight p_t of the target t among n classes, the smoothing ε and
// z = Σ exp((x − m)/T), the loss and, for a gradient g of it, the gradient of the logits are
//
//   (1−ε)·((m − x_t)/T + log z) + ε·((m − mean x)/T + log z)
//   g/T·(p − ε/n),  at the target  g/T·(ε − ε/n − (1 − p_t))
#pragma once

#include "rows/classes.h"
#include "rows/float64_logs.h"
#include "rows/log_softmax_backward.h"

namespace softscope {
namespace {

SOFTSCOPE_INLINE const Classes& classes_of(const Block& b) {
  return *static_cast<const Classes*>(b.y.data);
}

template <class S, int N>
SOFTSCOPE_INLINE double entry(const S* x) {
  if constexpr (sizeof(S) == sizeof(Compute<S>)) {
    return static_cast<double>(*x);
  } else {
    return static_cast<double>(load_first<S, N>(x, 1, 0)[0]);
  }
}

// The mean of entries `step` apart.
template <class S, int N>
double mean(const S* x, size_t n, ptrdiff_t step) {
  const auto count = static_cast<double>(n);
  if (step == 1) {
    const double total = segment_total<S, N>(x, n);
    if (total == total)
      return total / count;  // a compensated sum is NaN where the plain one is −inf
  }
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += entry<S, N>(at<S>(x, i, step));
  return sum / count;
}

// (m − x)/T from halves: the distance may overflow even if the quotient does not.
SOFTSCOPE_INLINE double tempered_distance(double m, double x, double temperature) {
  return temperature == 1 ? m - x : (0.5 * m - 0.5 * x) / (0.5 * temperature);
}

// Writes the loss of a row whose entries lie `step` apart in x.
template <class S, int N>
SOFTSCOPE_INLINE void put_loss(const Block& b, size_t row, const S* x, ptrdiff_t step,
                               LossSums sums, double log) {
  const Classes& classes = classes_of(b);
  const int64_t target = classes.targets[row];
  if (target == classes.ignored) {
    classes.losses[row] = 0;
    return;
  }
  const double temperature = temperature_of(b, row), epsilon = classes.smoothing;
  const double wanted = entry<S, N>(at<S>(x, static_cast<size_t>(target), step));
  double loss = tempered_distance(sums.m, wanted, temperature) + log;
  if (epsilon != 0) {
    const double even = tempered_distance(sums.m, mean<S, N>(x, b.n, step), temperature) + log;
    loss = (1 - epsilon) * loss + epsilon * even;
  }
  classes.losses[row] = loss;
  if (classes.sums != nullptr) classes.sums[row] = sums;
}

template <class S, int N>
struct RowLosses {
  static constexpr bool kFull = false;
  static constexpr size_t kLongest = kLimit<Compute<S>, 56>;

  static void finish(const State* states, const Block& b, RowRange rows) {
    double logs[kWidth<N>];
    logs_of<N>(states, rows.count, logs);
    for (size_t j = 0; j < rows.count; ++j) {
      const size_t row = rows.first + j;
      const S* x = row_at<S>(b.x, row);
      const double temperature = temperature_of(b, row);
      State s = states[j];
      double log = logs[j];
      const double top = ::fabs(s.m / temperature);
      if (too_coarse<S>(s, log, b.n, top > log ? top : log, temperature)) {
        s = wide_state<S, N, false>(x, b.n, b.x.step, temperature);
        log = log_z(s);
      }
      put_loss<S, N>(b, row, x, b.x.step, {.m = s.m, .rest = (s.c - 1) + s.r}, log);
    }
  }

  static void tile(const TileSums<N>& sums, const float* entries, const Block& b, RowRange rows) {
    using Sums = TileSums<N>;
    double m[kWidth<N>], rest[kWidth<N>], log[kWidth<N>];
    for (int g = 0; g < Sums::kVectors; ++g) {
      store_raw<double, Sums::H>(m + g * Sums::H, sums.m[g]);
      store_raw<double, Sums::H>(rest + g * Sums::H, (sums.c[g] - 1.0) + sums.r[g]);
      store_raw<double, Sums::H>(log + g * Sums::H, sums.log_z(g));
    }
    for (size_t j = 0; j < rows.count; ++j) {
      put_loss<float, N>(b, rows.first + j, entries + j, kWidth<N>, {.m = m[j], .rest = rest[j]},
                         log[j]);
    }
  }
};

template <int N>
struct RowLosses<double, N> {
  static constexpr Way kWay = kPlain;

  // `begins`: where the rows begin, if they are contiguous. States of other rows are careful.
  static void finish(const PreciseState* states, const Block& b, RowRange rows,
                     const double* const* begins) {
    for (size_t j = 0; j < rows.count; j += N) {
      const size_t lanes = rows.count - j < N ? rows.count - j : N;
      const DoubleDouble<Vec<double, N>> logs = precise_logs<N>(states + j, lanes);
      for (size_t l = 0; l < lanes; ++l) {
        const size_t row = rows.first + j + l;
        const double temperature = temperature_of(b, row);
        PreciseState s = states[j + l];
        DoubleDouble<double> log = {logs.high[l], logs.low[l]};
        const double top = ::fabs(s.m / temperature);
        // A plain sum includes the maximum's own 1, which swallows what is small beside it.
        const bool swallowed = s.c == 0 && s.count != 0 && s.r < 1.5;
        if (swallowed || could_miss(s, log, top > log.high ? top : log.high)) {
          s = precise_row<N, kCareful>(begins[j + l], b.n, temperature, s.m);
          log = precise_log<N>(s);
        }
        put_loss<double, N>(b, row, row_at<double>(b.x, row), b.x.step,
                            {.m = s.m, .rest = (s.c - 1) + s.r}, log.high);
      }
    }
  }
};

// Of rows whose states several threads have taken together.
template <class S, int N>
void losses_of_states(const Block& b, const State* states) {
  for (size_t row = 0; row < b.rows; ++row) {
    const State& s = states[row];
    put_loss<S, N>(b, row, row_at<S>(b.x, row), b.x.step, {.m = s.m, .rest = (s.c - 1) + s.r},
                   log_z(s));
  }
}

// Writes the gradient at the targets into contiguous rows that hold g/T·(p − ε/n), and 0 into rows
// that are ignored, or whose loss nobody asks for: these may hold NaN. If the target has nearly all
// the weight, 1 − p_t has no digits left, but the sum of the other weights does.
template <class S, int N>
void put_targets(const Block& b) {
  constexpr int D = sizeof(Compute<S>) == 8 ? N : N / 2;
  using V = Vec<double, D>;
  const Classes& classes = classes_of(b);
  const double epsilon = classes.smoothing, share = epsilon / static_cast<double>(b.n);
  for (size_t first = 0; first < b.rows; first += D) {
    const size_t lanes = b.rows - first < D ? b.rows - first : D;
    V d{}, rest{}, factor{};
    bool at_top[D] = {}, asked[D] = {};
    for (size_t l = 0; l < lanes; ++l) {
      const size_t row = first + l;
      const int64_t target = classes.targets[row];
      const double g = *at<double>(classes.gradients, row, classes.gradients_row);
      asked[l] = target != classes.ignored && g != 0;
      if (!asked[l]) continue;
      const LossSums sums = classes.sums[row];
      const double x = entry<S, N>(row_at<S>(b.x, row) + target), t = temperature_of(b, row);
      at_top[l] = x == sums.m;
      d[l] = -tempered_distance(sums.m, x, t);
      rest[l] = sums.rest;
      factor[l] = g / t;
    }
    const V weights = exp_nonpositive<D>(d);
    for (size_t l = 0; l < lanes; ++l) {
      S* out = row_at<S>(b.out, first + l);
      if (!asked[l]) {
        for (size_t i = 0; i < b.n; ++i) out[i] = S{};
        continue;
      }
      const double z = 1 + rest[l], others = at_top[l] ? rest[l] : z - weights[l];
      const double slope = factor[l] * (epsilon - share - others / z);
      store_first<S, N>(out + classes.targets[first + l], 1,
                        fill<Compute<S>, N>(static_cast<Compute<S>>(slope)));
    }
  }
}

// One number of an array.
template <class S, int N>
double read_number(const void* from) {
  return entry<S, N>(static_cast<const S*>(from));
}

template <class S, int N>
void write_number(double value, void* to) {
  store_first<S, N>(static_cast<S*>(to), 1, fill<Compute<S>, N>(static_cast<Compute<S>>(value)));
}

}  // namespace
}  // namespace softscope
