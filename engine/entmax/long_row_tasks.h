// sparsemax and α-entmax of rows that are long enough to be shared by threads.
#pragma once

#include "rows/row_tasks.h"

namespace softscope {

// Contiguous rows. Cut by the shape alone, as row_tasks.h says.
void run_long_sparse(const Kernels& kernels, const Rows& rows, int threads);

}  // namespace softscope
