// All kernels but attention's for every processor of this architecture.
#include "dispatch/row_table.h"

namespace softscope {

// constinit: code that fills the table at load would run before the level is chosen.
constinit const Kernels baseline_kernels = all_kernels<4, 2>("baseline", &baseline_attention);

}  // namespace softscope
