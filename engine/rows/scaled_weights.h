// a·softmax + b from a row's state, for the backward passes of logsumexp and cross-entropy.
#pragma once

#include "rows/long_row.h"
#include "rows/walk_block_two_inputs.h"

namespace softscope {
namespace {

// a·exp((x − m)/T)/z + b, where the row brings T, m, z, a, b; just b where it has no weights.
template <class S, int N>
struct ScaledWeights {
  using C = Compute<S>;
  using V = Vec<C, N>;
  static constexpr bool kTwo = false;
  static constexpr size_t kTile = kLimit<C, 24> + 1;

  struct Row {
    C maximum, inverse, scale, shift;

    SOFTSCOPE_INLINE explicit Row(const double* numbers) {
      const double m = numbers[kRowMaximum], z = numbers[kRowZ];
      const bool nothing = m == -kInfinity<double> || z == 0;
      // Counted from +inf every weight is 0, and 0 times a scale of 0 is 0 as well.
      maximum = nothing ? kInfinity<C> : static_cast<C>(m);
      inverse = static_cast<C>(1.0 / numbers[kTemperature]);
      scale = nothing ? C(0) : static_cast<C>(numbers[kFactor] / z);
      shift = static_cast<C>(numbers[kSummand]);
    }
  };

  struct Lanes {
    C maximum[kWidth<N>], inverse[kWidth<N>], scale[kWidth<N>], shift[kWidth<N>];

    void read(const Block& b, RowRange rows) {
      for (size_t r = 0; r < kWidth<N>; ++r) {
        const Row row(numbers_of(b, rows.first + (r < rows.count ? r : 0)));
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
    const Shift<C> shift = {.maximum = row.maximum, .inverse_temperature = row.inverse};
    const V tail = load_last<S, N>(x, n, 0);  // before out, which may be x
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
  static void columns(Columns<A> x, Columns<A>, ColumnsOut<A> out, const Lanes& lanes) {
    columns_exp<A, N, kGroups>(
        x,
        [&](V v, int k) __attribute__((always_inline)) {
          return (v - load_raw<C, N>(lanes.maximum + k * N)) *
                 load_raw<C, N>(lanes.inverse + k * N);
        },
        [&](size_t i, int k, V e) __attribute__((always_inline)) {
          A* to = out.x + static_cast<ptrdiff_t>(i) * out.step + k * N;
          store<A, N>(
              to, e * load_raw<C, N>(lanes.scale + k * N) + load_raw<C, N>(lanes.shift + k * N));
        });
  }
};

// Of a row too long for one thread. A map from entry to entry needs no sums.
template <class S, int N>
void part_no_sums(const TwoInputPart&, BackwardSums&) {}

void merge_no_sums(BackwardSums&, const BackwardSums&) {}

template <class S, int N>
void part_scaled_weights(const TwoInputPart& p, const BackwardSums&) {
  ScaledWeights<S, N>::row(static_cast<const S*>(p.x), nullptr, static_cast<S*>(p.out), p.n,
                           p.numbers);
}

}  // namespace
}  // namespace softscope
