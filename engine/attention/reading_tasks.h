// Cuts the rows that readings are taken of into tasks for threads.
#pragma once

#include "dispatch/kernels.h"

namespace softscope {

// The number of threads changes no bit: the work is cut by the shape alone.
void run(const Kernels& kernels, const ReadingRows& rows, int threads);

}  // namespace softscope
