#include "rows/row_tasks.h"

#include <algorithm>
#include <cstdint>

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

template <class Entry>
void copy_as(const char* from, ptrdiff_t step, char* to, ptrdiff_t to_step, size_t n) {
  const auto* in = reinterpret_cast<const Entry*>(from);
  auto* out = reinterpret_cast<Entry*>(to);
  for (size_t i = 0; i < n; ++i, in += step, out += to_step) *out = *in;
}

void copy_row(Type type, const char* from, ptrdiff_t step, char* to, ptrdiff_t to_step, size_t n) {
  const auto copy = kTypeSize[type] == 2   ? copy_as<uint16_t>
                    : kTypeSize[type] == 4 ? copy_as<uint32_t>
                                           : copy_as<uint64_t>;
  copy(from, step, to, to_step, n);
}

// Long rows that threads do not share: each thread takes whole rows. They are computed in the same
// parts as if they were shared, so that a row's bits do not depend on how many there are; and so
// are rows with gaps, from a copy.
void run_whole_long_rows(const Kernels& kernels, Operation operation, const Rows& rows,
                         const std::vector<Axis>& axes, int threads) {
  const bool contiguous = are_contiguous(operation, rows), gives = gives_rows(operation);
  const size_t size = kTypeSize[rows.type];
  parallel_for(count_of(axes), threads, [&](size_t i) {
    const Offsets at = offsets_of(axes, i);
    const char* x = rows.x.data + at.x * static_cast<ptrdiff_t>(size);
    char* out = rows.out.data + at.out * static_cast<ptrdiff_t>(rows.out_size);
    char* copy = nullptr;
    if (!contiguous) {
      copy = static_cast<char*>(scratch(rows.n * size, Scratch::kCopiedRow));
      copy_row(rows.type, x, rows.x.step, copy, 1, rows.n);
    }
    const char* from = contiguous ? x : copy;
    const Rows one = {.type = rows.type,
                      .lead = {},
                      .n = rows.n,
                      .x = {.data = from, .strides = {}, .step = 1},
                      .y = {.data = from, .strides = {}, .step = 1},
                      .out = {.data = contiguous || !gives ? out : copy, .strides = {}, .step = 1},
                      .out_size = rows.out_size,
                      .numbers = rows.numbers + at.numbers,
                      .numbers_strides = {}};
    if (operation == kEntmax) {
      run_long_entmax(kernels, one, 1);
    } else {
      run_long_rows(kernels, operation, one, 1);
    }
    if (!contiguous && gives) copy_row(rows.type, copy, 1, out, rows.out.step, rows.n);
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
  bool side_by_side = false;
  if (rows.x.step != 1) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].x != 1 || (gives_rows(operation) && axes[i].out != 1)) continue;
      inner = i;
      side_by_side = true;
    }
  }
  // Not so a softmax whose exponentials may wait in the row (see kWaitingBytes in softmax.h): in
  // parts, which compute them twice, rows of 2^18 floats take 25% longer.
  const bool waits = operation == kSoftmax && rows.type != kFloat64 && rows.n <= (size_t{1} << 18);
  if (have_parts(operation, rows) && !waits && !side_by_side && !is_backward(operation)) {
    return run_whole_long_rows(kernels, operation, rows, axes, threads);
  }
  if (rows.n * count < 2 * kTaskEntries) threads = 1;
  run_blocks(kernels.rows[operation][rows.type], rows, axes, inner, threads);
}

}  // namespace softscope
