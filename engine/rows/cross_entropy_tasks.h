// Cuts the rows of cross-entropy into blocks for threads.
#pragma once

#include "dispatch/kernels.h"

namespace softscope {

// Contiguous rows of logits, and their classes.
struct LabelledRows {
  Type type;
  const char* x;
  size_t count, n;
  const double* temperatures;
  ptrdiff_t temperatures_row;  // 0: all rows share one
  const int64_t* targets;
  int64_t ignored;
  double smoothing;
};

// The first row whose target is neither a class nor ignored; the number of rows if there is none.
size_t first_misfit(const LabelledRows& rows);

// How many rows are not ignored.
size_t kept_rows(const LabelledRows& rows);

// Writes the losses and sums of the rows where these are not null, and returns the sum of the
// losses. Blocks are cut by the shape alone and added up in order, so the number of threads changes
// no bit.
double cross_entropy(const Kernels& kernels, const LabelledRows& rows, double* losses,
                     LossSums* sums, int threads);

// What reaches the loss of each row, `step` apart (0: the same for all), times `factor`.
struct LossGradient {
  const double* each;
  ptrdiff_t step;
  double factor;
};

// Writes the gradient of the logits into `out`, contiguous.
void cross_entropy_backward(const Kernels& kernels, const LabelledRows& rows, const LossSums* sums,
                            const LossGradient& gradient, void* out, int threads);

}  // namespace softscope
