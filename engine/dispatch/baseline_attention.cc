// Attention's kernels for every processor of this architecture.
#include "dispatch/attention_table.h"

namespace softscope {

const AttentionKernels baseline_attention = all_attention<4, 2>();

}  // namespace softscope
