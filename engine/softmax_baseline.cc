// The kernels for any processor: four lanes are SSE2 on x86-64 and NEON on ARM64.
#include "kernels.h"
#include "softmax_kernel.h"

namespace softscope {

const Kernels baseline_kernels = {"baseline", softmax_f32<4>};

}  // namespace softscope
