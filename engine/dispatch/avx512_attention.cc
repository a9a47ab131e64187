// Attention's kernels for AVX-512; CMakeLists.txt gives this file the flags.
#include "dispatch/attention_table.h"

namespace softscope {

// constinit: code that fills the table at load would run before the level is chosen.
constinit const AttentionKernels avx512_attention = attention_kernels<16, 8>();

}  // namespace softscope
