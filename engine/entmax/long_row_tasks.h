// Cuts a long row of sparsemax or α-entmax into parts, for several threads to share.
#pragma once

#include "dispatch/kernels.h"
#include "rows/array_rows.h"

namespace softscope {

// Contiguous rows. Cut by the shape alone, as in row_tasks.h.
void run_long_entmax(const Kernels& kernels, const Rows& rows, int threads);

}  // namespace softscope
