#include "attention/reading_tasks.h"

#include <algorithm>

#include "threads/parallel_for.h"
#include "threads/scratch.h"

namespace softscope {

void run(const Kernels& kernels, const ReadingRows& rows, int threads) {
  constexpr size_t kTaskEntries = size_t{1} << 15;  // enough to be worth handing to a thread
  const size_t count = rows.groups * rows.rows;
  const size_t each = std::max(size_t{1}, kTaskEntries / std::max(rows.keys, size_t{1}));
  const size_t tasks = (count + each - 1) / each;
  if (tasks < 4) threads = 1;
  parallel_for(tasks, threads, [&](size_t task) {
    const size_t first = task * each;
    kernels.read_rows[rows.type - kFloat32](rows, first, std::min(first + each, count),
                                            scratch(rows.keys * kTypeSize[rows.type]));
  });
}

}  // namespace softscope
