// Cuts the rows of an array into blocks for threads.
#pragma once

#include "dispatch/kernels.h"
#include "rows/array_rows.h"

namespace softscope {

// The work is cut by the shape alone, never by the number of threads, so that number changes no bit
// of the result.
void run(const Kernels& kernels, Operation operation, const Rows& rows, int threads);

}  // namespace softscope
