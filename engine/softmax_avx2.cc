// The kernels for AVX2 and FMA. CMakeLists.txt gives this file, and no other, the flags for them.
#include "kernels.h"
#include "softmax_kernel.h"

namespace softscope {

const Kernels avx2_kernels = {"avx2", softmax_f32<8>};

}  // namespace softscope
