// softmax of contiguous rows, and of rows side by side.
#pragma once

#include "rows/together.h"
#include "rows/walk_block.h"

namespace softscope {
namespace {

// Up to this size, a row of exponentials can wait in a cache for its division.
constexpr size_t kWaitingBytes = size_t{1} << 20;

template <class S, int N>
struct Softmax {
  using C = Compute<S>;
  static constexpr bool kWide = false;
  static constexpr size_t kLongest = kLimit<C, 28>;

  static void rows(const Block& b, RowRange rows) {
    if constexpr (sizeof(C) == 4) {
      if (b.n <= kTogether<N>) {
        for (size_t r = 0; r < rows.count; r += N) {
          const size_t some = rows.count - r < N ? rows.count - r : N;
          softmax_together<S, N>(b, {.first = rows.first + r, .count = some});
        }
        return;
      }
    }
    for (size_t r = rows.first; r < rows.first + rows.count; ++r) {
      row(row_at<S>(b.x, r), row_at<S>(b.out, r), b.n, temperature_of(b, r), b.scratch);
    }
  }
  SOFTSCOPE_INLINE static void row(const S* x, S* out, size_t n, double temperature,
                                   void* scratch) {
    const C inverse = static_cast<C>(1.0 / temperature);
    // exp(d) waits in `out` if that holds it exactly, else in the scratch.
    constexpr bool in_place = sizeof(S) == sizeof(C);
    if (n * sizeof(C) <= kWaitingBytes) {
      const Shift<C> shift = {.maximum = segment_max<S, N>(x, n), .inverse_temperature = inverse};
      C* e = in_place ? reinterpret_cast<C*>(out) : static_cast<C*>(scratch);
      Vec<C, N> tail;
      const double z = segment_exp<S, N, true>(x, e, n, shift, tail).value();
      segment_divide<S, N>(e, tail, out, n, Divisor<C, N>(static_cast<C>(z)));
    } else {
      const State s = row_state<S, N, false>(x, n, temperature);
      segment_exp_divide<S, N>(x, out, n, {static_cast<C>(s.m), inverse},
                               static_cast<C>(s.c + s.r));
    }
  }
  template <class A, int M>  // A: S, or the type that computes in a transposed tile
  static void columns(Columns<A> in, ColumnsOut<A> out, const Temperatures<Compute<A>, M>& t) {
    columns_softmax<A, M, kGroups>(in, out, t.inverse);
  }
};

}  // namespace
}  // namespace softscope
