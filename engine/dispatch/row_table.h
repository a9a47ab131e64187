// The table of all kernels, for one instruction set.
#pragma once

#include "attention/readings.h"
#include "entmax/entmax_block.h"
#include "entmax/long_row_parts.h"
#include "jacobian/jacobian_product.h"
#include "rows/backward.h"
#include "rows/float64_logs.h"
#include "rows/softmax_family.h"

namespace softscope {
namespace {

#define SOFTSCOPE_ALL_TYPES(run, Op, F, D)                                              \
  {run<Half, F, Op<Half, F>>, run<Brain, F, Op<Brain, F>>, run<float, F, Op<float, F>>, \
   run<double, D, Op<double, D>>}
#define SOFTSCOPE_ALL_REDUCED(Op, F, D)                                      \
  {reduce_block<Half, F, Op<Half, F>>, reduce_block<Brain, F, Op<Brain, F>>, \
   reduce_block<float, F, Op<float, F>>, exact_reduce<D, Op<double, D>>}
#define SOFTSCOPE_ALL_PARTS(part, exact, F, D) \
  {part<Half, F>, part<Brain, F>, part<float, F>, exact}

// With F lanes of float32 and D of float64. Rows in the order of Operation.
template <int F, int D>
constexpr Kernels all_kernels(const char* isa, const AttentionKernels* attention) {
  return {isa,
          {
              SOFTSCOPE_ALL_TYPES(map_block, Softmax, F, D),
              SOFTSCOPE_ALL_TYPES(map_block, LogSoftmax, F, D),
              SOFTSCOPE_ALL_PARTS(entmax_block, (entmax_block<double, D>), F, D),
              SOFTSCOPE_ALL_REDUCED(LogSumExp, F, D),
              SOFTSCOPE_ALL_REDUCED(WholeState, F, D),
              SOFTSCOPE_ALL_TYPES(pair_block, JacobianProduct, F, D),
              SOFTSCOPE_ALL_TYPES(pair_block, LogSoftmaxBackward, F, D),
              SOFTSCOPE_ALL_TYPES(pair_block, ScaledWeights, F, D),
          },
          SOFTSCOPE_ALL_PARTS(part_state, exact_part_state<D>, F, D),
          SOFTSCOPE_ALL_PARTS(part_sums, exact_part_sums<D>, F, D),
          SOFTSCOPE_ALL_PARTS(part_softmax, (part_softmax<double, D>), F, D),
          SOFTSCOPE_ALL_PARTS(part_log_softmax, exact_part_log_softmax<D>, F, D),
          merge_states,
          merged_too_coarse,
          merge_exactly,
          exact_log_z<D>,
          SOFTSCOPE_ALL_PARTS(part_peaks, (part_peaks<double, D>), F, D),
          SOFTSCOPE_ALL_PARTS(part_pick, (part_pick<double, D>), F, D),
          solve_parts<D>,
          SOFTSCOPE_ALL_PARTS(part_weights, (part_weights<double, D>), F, D),
          {
              {SOFTSCOPE_ALL_PARTS(part_moments, (part_moments<double, D>), F, D), merge_moments,
               SOFTSCOPE_ALL_PARTS(part_product, (part_product<double, D>), F, D)},
              {SOFTSCOPE_ALL_PARTS(part_total, (part_total<double, D>), F, D), merge_totals,
               SOFTSCOPE_ALL_PARTS(part_log_softmax_backward,
                                   (part_log_softmax_backward<double, D>), F, D)},
              {SOFTSCOPE_ALL_PARTS(part_nothing, (part_nothing<double, D>), F, D), merge_totals,
               SOFTSCOPE_ALL_PARTS(part_scaled_weights, (part_scaled_weights<double, D>), F, D)},
          },
          {read_rows<float, F>, read_rows<double, D>},
          attention};
}

}  // namespace
}  // namespace softscope
