// Cuts attention of whole arrays into tasks for threads.
#pragma once

#include <vector>

#include "dispatch/kernels.h"

namespace softscope {

// All key heads of all batch entries.
struct Attentions {
  Type type;
  Attention one;  // of the first key head of the first batch entry
  size_t kv_heads;
  std::vector<size_t> batch;                         // sizes of the axes before the heads
  std::vector<ptrdiff_t> q, k, v, out, mask, state;  // strides of these axes in each array
};

// What the backward pass takes and gives besides.
struct Gradients {
  HeadRows<const void> grad;          // of the output
  std::vector<ptrdiff_t> grad_batch;  // its strides of the axes before the heads
  void *dq, *dk, *dv;                 // contiguous
  double* dscale;                     // what each row adds to the gradient of the scale; contiguous
  double* dalpha;                     // the same for alpha, or null
};

// What a reading takes and gives besides.
struct Readings {
  HeadRows<const void> grad;          // of the output, or no data
  std::vector<ptrdiff_t> grad_batch;  // its strides of the axes before the heads
  HeadRows<void> weights;             // or no data
  std::vector<ptrdiff_t> weights_batch;
  HeadRows<const void> key_lengths;  // of each key head, or no data
  std::vector<ptrdiff_t> key_lengths_batch;
};

// The number of threads changes no bit: the work is cut by the shape alone. If there is an alpha,
// attention is sparse, also in the backward pass.
void attend(const Kernels& kernels, const Attentions& all, int threads);
void attend_sparsely(const Kernels& kernels, const Attentions& all, int threads);
void attend_backward(const Kernels& kernels, const Attentions& all, const Gradients& gradients,
                     int threads);
void read_rows(const Kernels& kernels, const Attentions& all, const Readings& readings,
               int threads);

}  // namespace softscope
