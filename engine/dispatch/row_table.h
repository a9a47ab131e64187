// The table of all kernels but attention's, for one instruction set.
#pragma once

#include "dispatch/per_type.h"
#include "entmax/entmax_block.h"
#include "entmax/long_row_parts.h"
#include "jacobian/jacobian_product.h"
#include "rows/cross_entropy.h"
#include "rows/log_softmax_backward.h"
#include "rows/long_row_parts.h"
#include "rows/scaled_weights.h"
#include "rows/softmax.h"

namespace softscope {
namespace {

// Short rows by vectors of half the width, where those of the full width do not transpose.
template <Kernel Short, Kernel Other, size_t Longest>
void by_length(const Block& b) {
  (b.n <= Longest ? Short : Other)(b);
}

// `get` returns the kernel. In units with vectors of 512 bits it has half as many lanes for rows of
// at most Floats entries (float64: kShort, but for entmax), those which are transposed. The limits
// are measured (AMD EPYC, Zen 5): at them, this and the next way take about as long.
template <int F, int D, size_t Floats, class Get>
constexpr PerType<Kernel> row_kernels(Get) {
  return per_type<F, D>([]<class S, int N>() {
    using C = Compute<S>;
    constexpr Kernel whole = Get{}.template operator()<S, N>();
    if constexpr (kTransposes<C, N>) {
      return whole;
    } else {
      constexpr Kernel halved = Get{}.template operator()<S, N / 2>();
      constexpr size_t longest = Floats == kSparseShort ? Floats : kLimit<C, Floats>;
      return static_cast<Kernel>(by_length<halved, whole, longest>);
    }
  });
}

template <class S, int N, template <class, int> class Op>
constexpr Kernel reduction() {
  if constexpr (__is_same(S, double)) {
    return precise_reduce_block<N, Op<double, N>>;
  } else {
    return reduce_block<S, N, Op<S, N>>;
  }
}

template <int F, int D>
constexpr LongRowKernels long_row_kernels() {
  return {
      .state = per_type<F, D>([]<class S, int N>() { return part_state<S, N, true>; }),
      .sums = per_type<F, D>([]<class S, int N>() { return part_state<S, N, false>; }),
      .softmax = per_type<F, D>([]<class S, int N>() { return part_softmax<S, N>; }),
      .log_softmax = per_type<F, D>([]<class S, int N>() { return part_log_softmax<S, N>; }),
      .merge = merge_states,
      .too_coarse = merged_too_coarse,
      .merge_precisely = merge_states_precisely,
      .precise_log_z = precise_log_z<D>,
  };
}

template <int F, int D>
constexpr LongEntmaxKernels long_entmax_kernels() {
  return {
      .peaks = per_type<F, D>([]<class S, int N>() { return part_peaks<S, N>; }),
      .pick = per_type<F, D>([]<class S, int N>() { return part_pick<S, N>; }),
      .solve = solve_parts<D>,
      .weights = per_type<F, D>([]<class S, int N>() { return part_weights<S, N>; }),
  };
}

template <int F, int D>
constexpr CrossEntropyKernels cross_entropy_kernels() {
  return {
      .losses = row_kernels<F, D, 56>(
          []<class S, int N>() -> Kernel { return reduction<S, N, RowLosses>(); }),
      .at_targets = per_type<F, D>([]<class S, int N>() -> Kernel { return put_targets<S, N>; }),
      .of_states = per_type<F, D>([]<class S, int N>() { return losses_of_states<S, N>; }),
      .read = per_type<F, D>([]<class S, int N>() { return read_number<S, N>; }),
      .write = per_type<F, D>([]<class S, int N>() { return write_number<S, N>; }),
  };
}

// With F lanes of float32 and D of float64.
template <int F, int D>
constexpr Kernels all_kernels(const char* isa, const AttentionKernels* attention) {
  Kernels k{.isa = isa,
            .rows = {},
            .long_row = long_row_kernels<F, D>(),
            .long_entmax = long_entmax_kernels<F, D>(),
            .long_backward = {},
            .cross_entropy = cross_entropy_kernels<F, D>(),
            .attention = attention};

  k.rows[kSoftmax] = row_kernels<F, D, 20>(
      []<class S, int N>() -> Kernel { return map_block<S, N, Softmax<S, N>>; });
  k.rows[kLogSoftmax] = row_kernels<F, D, 20>(
      []<class S, int N>() -> Kernel { return map_block<S, N, LogSoftmax<S, N>>; });
  k.rows[kEntmax] = row_kernels<F, D, kSparseShort>(
      []<class S, int N>() -> Kernel { return entmax_block<S, N>; });
  k.rows[kLogSumExp] = row_kernels<F, D, 40>(
      []<class S, int N>() -> Kernel { return reduction<S, N, LogSumExp>(); });
  k.rows[kState] = row_kernels<F, D, 56>(
      []<class S, int N>() -> Kernel { return reduction<S, N, WholeState>(); });
  if constexpr (kTransposes<float, F>) {  // wider, it is slower: see choose_level.cc
    k.rows[kJacobianProduct] = per_type<F, D>([]<class S, int N>() -> Kernel {
      return map_block_two_inputs<S, N, JacobianProduct<S, N>>;
    });
  }
  k.rows[kLogSoftmaxBackward] = row_kernels<F, D, 12>([]<class S, int N>() -> Kernel {
    return map_block_two_inputs<S, N, LogSoftmaxBackward<S, N>>;
  });
  k.rows[kScaledWeights] = row_kernels<F, D, 24>(
      []<class S, int N>() -> Kernel { return map_block_two_inputs<S, N, ScaledWeights<S, N>>; });

  k.long_backward[kJacobianProduct - kFirstBackward] = {
      .sums = per_type<F, D>([]<class S, int N>() { return part_moments<S, N>; }),
      .merge = merge_moments,
      .map = per_type<F, D>([]<class S, int N>() { return part_product<S, N>; })};
  k.long_backward[kLogSoftmaxBackward - kFirstBackward] = {
      .sums = per_type<F, D>([]<class S, int N>() { return part_total<S, N>; }),
      .merge = merge_totals,
      .map = per_type<F, D>([]<class S, int N>() { return part_log_softmax_backward<S, N>; })};
  k.long_backward[kScaledWeights - kFirstBackward] = {
      .sums = per_type<F, D>([]<class S, int N>() { return part_no_sums<S, N>; }),
      .merge = merge_no_sums,
      .map = per_type<F, D>([]<class S, int N>() { return part_scaled_weights<S, N>; })};
  return k;
}

}  // namespace
}  // namespace softscope
