// Attention's kernels for AVX2, FMA and F16C. CMakeLists.txt gives this file the flags.
#include "dispatch/attention_table.h"

namespace softscope {

const AttentionKernels avx2_attention = all_attention<8, 4>();

}  // namespace softscope
