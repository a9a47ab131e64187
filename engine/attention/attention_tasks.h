// Attention of whole arrays, cut into tasks for threads.
#pragma once

#include <vector>

#include "dispatch/kernels.h"

namespace softscope {

// Axes before the heads, and for each array how far apart the entries of each are. `one` is the
// problem of the first key head of the first batch entry.
struct Attentions {
  Type type;
  Attention one;
  size_t kv_heads;
  ptrdiff_t k_head, v_head;  // between key heads
  std::vector<size_t> batch;
  std::vector<ptrdiff_t> q, k, v, out, mask, state;
};

// What the way back takes and gives besides: the gradient of the output; dq, dk and dv; and for
// each row what it adds to the scale's. What it gives has no gaps.
struct Gradients {
  const void* grad;
  ptrdiff_t grad_head, grad_row;
  std::vector<ptrdiff_t> grad_batch;
  void *dq, *dk, *dv;
  double* dscale;
};

// The same bits whatever the number of threads: how the work is cut depends on the shape alone.
void attend(const Kernels& kernels, const Attentions& all, int threads);
void attend_back(const Kernels& kernels, const Attentions& all, const Gradients& gradients,
                 int threads);

}  // namespace softscope
