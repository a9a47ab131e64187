// All kernels but attention's for every processor of this architecture.
#include "dispatch/row_table.h"

namespace softscope {

// Every aarch64 processor has NEON, with a fused multiply-add, so there this is the only level.
#ifdef __aarch64__
constexpr const char* kName = "neon";
#else
constexpr const char* kName = "baseline";
#endif

// constinit: code that fills the table at load would run before the level is chosen.
constinit const Kernels baseline_kernels = all_kernels<4, 2>(kName, &baseline_attention);

}  // namespace softscope
