// Cuts a long row into parts, for several threads to share.
#pragma once

#include "dispatch/kernels.h"
#include "rows/array_rows.h"

namespace softscope {

constexpr size_t kPartEntries = size_t{1} << 16;  // in one part of a long row

// Whether the entries of each row are neighbours in memory.
bool are_contiguous(Operation operation, const Rows& rows);

// Whether rows are so long that they are computed in parts.
bool have_parts(Operation operation, const Rows& rows);

// Whether several threads should share each of `count` rows. Only if the rows are long and few:
// each makes all threads wait for each other several times.
bool shares_rows(Operation operation, const Rows& rows, size_t count);

// For all operations but entmax (see entmax/long_row_tasks.h), on contiguous rows. Cut by the shape
// alone, as in row_tasks.h.
void run_long_rows(const Kernels& kernels, Operation operation, const Rows& rows, int threads);

}  // namespace softscope
