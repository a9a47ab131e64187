// The table of all kernels, for one instruction set.
#pragma once

#include "backward.h"
#include "family.h"
#include "products.h"

namespace softscope {
namespace {

#define SOFTSCOPE_ALL_TYPES(run, Op, F, D)                                              \
  {run<Half, F, Op<Half, F>>, run<Brain, F, Op<Brain, F>>, run<float, F, Op<float, F>>, \
   run<double, D, Op<double, D>>}
#define SOFTSCOPE_ALL_PARTS(part, F, D) \
  {part<Half, F>, part<Brain, F>, part<float, F>, part<double, D>}

// With F lanes of float32 and D of float64. Rows in the order of Operation.
template <int F, int D>
constexpr Kernels all_kernels(const char* isa) {
  return {isa,
          {
              SOFTSCOPE_ALL_TYPES(map_block, Softmax, F, D),
              SOFTSCOPE_ALL_TYPES(map_block, LogSoftmax, F, D),
              SOFTSCOPE_ALL_TYPES(reduce_block, LogSumExp, F, D),
              SOFTSCOPE_ALL_TYPES(reduce_block, WholeState, F, D),
              SOFTSCOPE_ALL_TYPES(pair_block, JacobianProduct, F, D),
              SOFTSCOPE_ALL_TYPES(pair_block, LogSoftmaxBackward, F, D),
              SOFTSCOPE_ALL_TYPES(pair_block, ScaledWeights, F, D),
          },
          SOFTSCOPE_ALL_PARTS(part_state, F, D),
          SOFTSCOPE_ALL_PARTS(part_sums, F, D),
          SOFTSCOPE_ALL_PARTS(part_softmax, F, D),
          SOFTSCOPE_ALL_PARTS(part_log_softmax, F, D),
          merge_states,
          merged_too_coarse,
          {
              {SOFTSCOPE_ALL_PARTS(part_moments, F, D), merge_moments,
               SOFTSCOPE_ALL_PARTS(part_product, F, D)},
              {SOFTSCOPE_ALL_PARTS(part_total, F, D), merge_totals,
               SOFTSCOPE_ALL_PARTS(part_log_softmax_backward, F, D)},
              {SOFTSCOPE_ALL_PARTS(part_nothing, F, D), merge_totals,
               SOFTSCOPE_ALL_PARTS(part_scaled_weights, F, D)},
          }};
}

}  // namespace
}  // namespace softscope
