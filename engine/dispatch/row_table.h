// The table of all kernels but attention's, for one instruction set.
#pragma once

#include "dispatch/per_type.h"
#include "entmax/entmax_block.h"
#include "entmax/long_row_parts.h"
#include "jacobian/jacobian_product.h"
#include "rows/log_softmax_backward.h"
#include "rows/long_row_parts.h"
#include "rows/scaled_weights.h"
#include "rows/softmax.h"

namespace softscope {
namespace {

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

// With F lanes of float32 and D of float64.
template <int F, int D>
constexpr Kernels all_kernels(const char* isa, const AttentionKernels* attention) {
  Kernels k{.isa = isa,
            .rows = {},
            .long_row = long_row_kernels<F, D>(),
            .long_entmax = long_entmax_kernels<F, D>(),
            .long_backward = {},
            .attention = attention};

  k.rows[kSoftmax] =
      per_type<F, D>([]<class S, int N>() { return map_block<S, N, Softmax<S, N>>; });
  k.rows[kLogSoftmax] =
      per_type<F, D>([]<class S, int N>() { return map_block<S, N, LogSoftmax<S, N>>; });
  k.rows[kEntmax] = per_type<F, D>([]<class S, int N>() { return entmax_block<S, N>; });
  k.rows[kLogSumExp] =
      per_type<F, D>([]<class S, int N>() { return reduction<S, N, LogSumExp>(); });
  k.rows[kState] = per_type<F, D>([]<class S, int N>() { return reduction<S, N, WholeState>(); });
  k.rows[kJacobianProduct] = per_type<F, D>(
      []<class S, int N>() { return map_block_two_inputs<S, N, JacobianProduct<S, N>>; });
  k.rows[kLogSoftmaxBackward] = per_type<F, D>(
      []<class S, int N>() { return map_block_two_inputs<S, N, LogSoftmaxBackward<S, N>>; });
  k.rows[kScaledWeights] = per_type<F, D>(
      []<class S, int N>() { return map_block_two_inputs<S, N, ScaledWeights<S, N>>; });

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
