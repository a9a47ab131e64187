// The kernels for AVX2, FMA and F16C. CMakeLists.txt gives this file, and no other, the flags.
#include "table.h"

namespace softscope {

const Kernels avx2_kernels = all_kernels<8, 4>("avx2");

}  // namespace softscope
