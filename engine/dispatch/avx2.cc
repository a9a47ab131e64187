// The kernels for AVX2, FMA and F16C. CMakeLists.txt gives the flags to this file and its like
// alone.
#include "dispatch/row_table.h"

namespace softscope {

const Kernels avx2_kernels = all_kernels<8, 4>("avx2", &avx2_attention);

}  // namespace softscope
