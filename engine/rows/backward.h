// What backward passes need besides J·v: that of log_softmax, and weights by way of a row's state,
// for those of logsumexp and cross-entropy.
#pragma once

#include "rows/walk_block_two_inputs.h"

namespace softscope {
namespace {

// Σg in float64, each entry on its own: gradients cancel.
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

// (g − exp(y)·Σg)/T, y the logarithms of weights. Within u·(|g| + 4·exp(y)·|Σg|)/T and a rounding.
template <class S, int N>
struct LogSoftmaxBackward {
  using C = Compute<S>;
  using V = Vec<C, N>;
  static constexpr bool kTwo = true;
  static constexpr size_t kTile = kShort<C> + 1;

  struct Lanes {
    C inverse[kWidth<N>];

    void read(const Block& b, size_t first, size_t rows) {
      for (size_t r = 0; r < kWidth<N>; ++r) {
        inverse[r] = static_cast<C>(1.0 / *numbers_of(b, first + (r < rows ? r : 0)));
      }
    }
  };

  static void rows(const Block& b, size_t first) { each_row<S, LogSoftmaxBackward>(b, first); }

  static void row(const S* y, const S* g, S* out, size_t n, const double* numbers) {
    map(y, g, out, n, segment_total<S, N>(g, n), numbers[0]);
  }

  static void map(const S* y, const S* g, S* out, size_t n, double sum, double temperature) {
    const C total = static_cast<C>(sum), inverse = static_cast<C>(1.0 / temperature);
    const auto one = [=](V weights, V beside) __attribute__((always_inline)) {
      return (beside - weights * total) * inverse;
    };
    // Read before `out`, which may be y or g, is written.
    const V last = load_last<S, N>(y, n, 0), beside = load_last<S, N>(g, n, 0);
    each_exp<C, N>(
        n, [&](size_t i) __attribute__((always_inline)) { return load<S, N>(y + i); },
        [&](size_t i, V weights) __attribute__((always_inline)) {
          store<S, N>(out + i, one(weights, load<S, N>(g + i)));
        });
    if (n % N != 0) store_last<S, N>(out, n, one(exp_nonpositive<N>(last), beside));
  }

  template <class A>  // S, or the type that computes in a transposed tile
  static void columns(Columns<A> y, Columns<A> g, A* out, ptrdiff_t out_step, const Lanes& lanes) {
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
          store<A, N>(out + at * out_step + k * N, (beside - weights * totals[k]) * inverses[k]);
        });
  }
};

// a·exp((x − m)/T)/z + b, with T, m, z, a, b of the row; b where the row has no weights.
template <class S, int N>
struct ScaledWeights {
  using C = Compute<S>;
  using V = Vec<C, N>;
  static constexpr bool kTwo = false;
  static constexpr size_t kTile = kShort<C> + 1;

  struct Row {
    C maximum, inverse, scale, shift;

    SOFTSCOPE_INLINE explicit Row(const double* numbers) {
      const double m = numbers[1], z = numbers[2];
      const bool nothing = m == -kInfinity<double> || z == 0;
      // Counted from +inf every weight is 0, and 0 times a scale of 0 is 0, too.
      maximum = nothing ? kInfinity<C> : static_cast<C>(m);
      inverse = static_cast<C>(1.0 / numbers[0]);
      scale = nothing ? C(0) : static_cast<C>(numbers[3] / z);
      shift = static_cast<C>(numbers[4]);
    }
  };

  struct Lanes {
    C maximum[kWidth<N>], inverse[kWidth<N>], scale[kWidth<N>], shift[kWidth<N>];

    void read(const Block& b, size_t first, size_t rows) {
      for (size_t r = 0; r < kWidth<N>; ++r) {
        const Row row(numbers_of(b, first + (r < rows ? r : 0)));
        maximum[r] = row.maximum;
        inverse[r] = row.inverse;
        scale[r] = row.scale;
        shift[r] = row.shift;
      }
    }
  };

  static void rows(const Block& b, size_t first) { each_row<S, ScaledWeights>(b, first); }

  static void row(const S* x, const S*, S* out, size_t n, const double* numbers) {
    const Row row(numbers);
    const Shift<C> shift = {row.maximum, row.inverse};
    const V tail = load_last<S, N>(x, n, 0);  // x may be where out is
    each_exp<C, N>(
        n,
        [&](size_t i)
            __attribute__((always_inline)) { return distance<C, N>(load<S, N>(x + i), shift); },
        [&](size_t i, V e)
            __attribute__((always_inline)) { store<S, N>(out + i, e * row.scale + row.shift); });
    if (n % N == 0) return;
    const V e = exp_nonpositive<N>(distance<C, N>(tail, shift));
    store_last<S, N>(out, n, e * row.scale + row.shift);
  }

  template <class A>
  static void columns(Columns<A> x, Columns<A>, A* out, ptrdiff_t out_step, const Lanes& lanes) {
    columns_exp<A, N, kGroups>(
        x,
        [&](V v, int k) __attribute__((always_inline)) {
          return (v - load_raw<C, N>(lanes.maximum + k * N)) *
                 load_raw<C, N>(lanes.inverse + k * N);
        },
        [&](size_t i, int k, V e) __attribute__((always_inline)) {
          A* to = out + static_cast<ptrdiff_t>(i) * out_step + k * N;
          store<A, N>(
              to, e * load_raw<C, N>(lanes.scale + k * N) + load_raw<C, N>(lanes.shift + k * N));
        });
  }
};

// Rows too long for one thread, in parts. A map from entry to entry needs no sums.
template <class S, int N>
void part_total(const PairPart& p, double* sums) {
  sums[0] = segment_total<S, N>(static_cast<const S*>(p.y), p.n);
}
template <class S, int N>
void part_nothing(const PairPart&, double* sums) {
  sums[0] = 0;
}
void merge_totals(double* into, const double* from) { into[0] += from[0]; }

template <class S, int N>
void part_log_softmax_backward(const PairPart& p, const double* sums) {
  LogSoftmaxBackward<S, N>::map(static_cast<const S*>(p.x), static_cast<const S*>(p.y),
                                static_cast<S*>(p.out), p.n, sums[0], p.numbers[0]);
}
template <class S, int N>
void part_scaled_weights(const PairPart& p, const double*) {
  ScaledWeights<S, N>::row(static_cast<const S*>(p.x), nullptr, static_cast<S*>(p.out), p.n,
                           p.numbers);
}

}  // namespace
}  // namespace softscope
