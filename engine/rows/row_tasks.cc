#include "rows/row_tasks.h"

#include <algorithm>

#include "entmax/long_row_tasks.h"
#include "rows/long_row_tasks.h"
#include "threads/parallel_for.h"
#include "threads/scratch.h"

namespace softscope {
namespace {

constexpr size_t kTaskEntries = size_t{1} << 15;  // enough to be worth handing to a thread
constexpr size_t kSideBySide = 64;  // rows side by side in a task: several lines of each page

// Blocks of neighbouring rows along the axis `inner`.
void run_blocks(Kernel kernel, const Rows& rows, const std::vector<Axis>& axes, size_t inner,
                int threads) {
  const Axis along =
      axes.empty() ? Axis{.size = 1, .x = 0, .y = 0, .out = 0, .numbers = 0} : axes[inner];
  std::vector<Axis> others = axes;
  if (!axes.empty()) others.erase(others.begin() + static_cast<ptrdiff_t>(inner));
  const size_t outer = count_of(others);
  size_t per_task = std::max<size_t>(1, kTaskEntries / std::max<size_t>(rows.n, 1));
  per_task = std::min(along.size, (per_task + kSideBySide - 1) / kSideBySide * kSideBySide);
  if (rows.n > kTaskEntries / 4 && rows.x.step == 1) per_task = 1;
  const size_t tasks = (along.size + per_task - 1) / per_task;
  const auto size = static_cast<ptrdiff_t>(kTypeSize[rows.type]);
  const auto out_size = static_cast<ptrdiff_t>(rows.out_size);
  const size_t need = scratch_bytes(rows.type, rows.n);

  parallel_for(outer * tasks, threads, [&](size_t task) {
    const size_t first = task % tasks * per_task;
    Offsets at = offsets_of(others, task / tasks);
    at.walk(along, first);
    kernel({.x = {.data = rows.x.data + at.x * size, .row = along.x, .step = rows.x.step},
            .y = {.data = rows.y.data + at.y * size, .row = along.y, .step = rows.y.step},
            .out = {.data = rows.out.data + at.out * out_size,
                    .row = along.out,
                    .step = rows.out.step},
            .numbers = rows.numbers + at.numbers,
            .numbers_row = along.numbers,
            .rows = std::min(per_task, along.size - first),
            .n = rows.n,
            .scratch = scratch(need)});
  });
}

}  // namespace

void run(const Kernels& kernels, Operation operation, const Rows& rows, int threads) {
  const std::vector<Axis> axes = axes_of(rows);
  const size_t count = count_of(axes);
  if (count == 0) return;
  if (shares_rows(operation, rows, count)) {
    if (operation == kEntmax) return run_long_entmax(kernels, rows, threads);
    return run_long_rows(kernels, operation, rows, threads);
  }
  // For rows along another axis than the last: the axis whose rows are neighbours in memory.
  size_t inner = axes.empty() ? 0 : axes.size() - 1;
  if (rows.x.step != 1) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].x == 1 && (!gives_rows(operation) || axes[i].out == 1)) inner = i;
    }
  }
  if (rows.n * count < 2 * kTaskEntries) threads = 1;
  run_blocks(kernels.rows[operation][rows.type], rows, axes, inner, threads);
}

}  // namespace softscope
