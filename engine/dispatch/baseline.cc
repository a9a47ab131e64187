// The kernels for every processor of this architecture.
#include "dispatch/row_table.h"

namespace softscope {

const Kernels baseline_kernels = all_kernels<4, 2>("baseline", &baseline_attention);

}  // namespace softscope
