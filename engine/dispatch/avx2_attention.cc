// Attention's kernels for AVX2, FMA and F16C; CMakeLists.txt gives this file the flags.
#include "dispatch/attention_table.h"

namespace softscope {

// constinit: code that fills the table at load would run before the level is chosen.
constinit const AttentionKernels avx2_attention = attention_kernels<8, 4>();

}  // namespace softscope
