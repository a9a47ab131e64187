// All kernels but attention's for AVX-512 (F, BW, DQ, VL); CMakeLists.txt gives this file the
// flags.
#include "dispatch/row_table.h"

namespace softscope {

constinit const Kernels avx512_kernels = all_kernels<16, 8>("avx512", &avx512_attention);

}  // namespace softscope
