// What one instruction set offers: plain functions, no Python, no exceptions, no allocation.
#pragma once

#include <cstddef>

namespace softscope {

struct Kernels {
  const char* isa;

  // out[i, :] = softmax(x[i, :]); x and out are the same memory or apart.
  void (*softmax_f32)(const float* x, float* out, size_t rows, size_t columns);
};

extern const Kernels baseline_kernels;  // what every processor of this architecture runs
#ifdef SOFTSCOPE_AVX2
extern const Kernels avx2_kernels;
#endif

}  // namespace softscope
