// The backward pass of log_softmax: (g − exp(y)·Σg)/T.
#pragma once

#include "rows/long_row.h"
#include "rows/walk_block_two_inputs.h"

namespace softscope {
namespace {

// Σg in float64, entry by entry and without a tree in float32: gradients cancel.
template <class S, int N>
double segment_total(const S* g, size_t n) {
  using C = Compute<S>;
  Sum<C, N> sums[2];
  size_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    sums[0].add(load<S, N>(g + i));
    sums[1].add(load<S, N>(g + i + N));
  }
  if (i + N <= n) {
    sums[0].add(load<S, N>(g + i));
    i += N;
  }
  if (i < n) sums[1].add(uncovered<C, N>(load_last<S, N>(g, n, 0), n));
  return sums[0].value() + sums[1].value();
}

// (g − exp(y)·Σg)/T, where y are logarithms of weights. The error is below
// u·(|g| + 4·exp(y)·|Σg|)/T and one last rounding.
template <class S, int N>
struct LogSoftmaxBackward {
  using C = Compute<S>;
  using V = Vec<C, N>;
  static constexpr bool kTwo = true;
  static constexpr size_t kTile = kLimit<C, 16> + 1;

  struct Lanes {
    C inverse[kWidth<N>];

    void read(const Block& b, RowRange rows) {
      for (size_t r = 0; r < kWidth<N>; ++r) {
        inverse[r] = static_cast<C>(1.0 / *numbers_of(b, rows.first + (r < rows.count ? r : 0)));
      }
    }
  };

  static void rows(const Block& b, size_t first) { each_row<S, LogSoftmaxBackward>(b, first); }

  static void row(const S* y, const S* g, S* out, size_t n, const double* numbers) {
    map(y, g, out, n, segment_total<S, N>(g, n), numbers[kTemperature]);
  }

  static void map(const S* y, const S* g, S* out, size_t n, double sum, double temperature) {
    const C total = static_cast<C>(sum), inverse = static_cast<C>(1.0 / temperature);
    const auto one = [=](V weights, V beside) __attribute__((always_inline)) {
      return (beside - weights * total) * inverse;
    };
    // Read before out, which may be y or g, is written.
    const V last = load_last<S, N>(y, n, 0), beside = load_last<S, N>(g, n, 0);
    each_exp<C, N>(
        n, [&](size_t i) __attribute__((always_inline)) { return load<S, N>(y + i); },
        [&](size_t i, V weights) __attribute__((always_inline)) {
          store<S, N>(out + i, one(weights, load<S, N>(g + i)));
        });
    if (n % N != 0) store_last<S, N>(out, n, one(exp_nonpositive<N>(last), beside));
  }

  template <class A>  // S, or the type that computes in a transposed tile
  static void columns(Columns<A> y, Columns<A> g, ColumnsOut<A> out, const Lanes& lanes) {
    LaneSum<C, N> sums[kGroups];
    const A* from = g.x;
    for (size_t i = 0; i < g.n; ++i, from += g.step) {
      for (int k = 0; k < kGroups; ++k) sums[k].add(load<A, N>(from + k * N));
    }
    V totals[kGroups], inverses[kGroups];
    for (int k = 0; k < kGroups; ++k) {
      totals[k] = sums[k].value();
      inverses[k] = load_raw<C, N>(lanes.inverse + k * N);
    }
    from = g.x;
    columns_exp<A, N, kGroups>(
        y, [](V logs, int) __attribute__((always_inline)) { return logs; },
        [&](size_t i, int k, V weights) __attribute__((always_inline)) {
          const ptrdiff_t at = static_cast<ptrdiff_t>(i);
          const V beside = load<A, N>(from + at * g.step + k * N);
          store<A, N>(out.x + at * out.step + k * N, (beside - weights * totals[k]) * inverses[k]);
        });
  }
};

// Of a row too long for one thread: Σg of each part, then the map.
template <class S, int N>
void part_total(const TwoInputPart& p, BackwardSums& sums) {
  sums.total = segment_total<S, N>(static_cast<const S*>(p.y), p.n);
}

void merge_totals(BackwardSums& into, const BackwardSums& from) { into.total += from.total; }

template <class S, int N>
void part_log_softmax_backward(const TwoInputPart& p, const BackwardSums& sums) {
  LogSoftmaxBackward<S, N>::map(static_cast<const S*>(p.x), static_cast<const S*>(p.y),
                                static_cast<S*>(p.out), p.n, sums.total, p.numbers[kTemperature]);
}

}  // namespace
}  // namespace softscope
