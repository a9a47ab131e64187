// sparsemax and α-entmax of rows that are long enough to be shared by threads.
#pragma once

#include "rows.h"

namespace softscope {

// Contiguous rows. Cut by the shape alone, as rows.h says.
void run_long_sparse(const Kernels& kernels, const Rows& rows, int threads);

}  // namespace softscope
