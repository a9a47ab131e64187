// Attention's kernels for every processor of this architecture.
#include "dispatch/attention_table.h"

namespace softscope {

// constinit: code that fills the table at load would run before the level is chosen.
constinit const AttentionKernels baseline_attention = attention_kernels<4, 2>();

}  // namespace softscope
