// All kernels but attention's for AVX2, FMA and F16C; CMakeLists.txt gives this file the flags.
#include "dispatch/row_table.h"

namespace softscope {

// constinit: code that fills the table at load would run before the level is chosen.
constinit const Kernels avx2_kernels = all_kernels<8, 4>("avx2", &avx2_attention);

}  // namespace softscope
