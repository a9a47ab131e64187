#include "rows/long_row_tasks.h"

#include <algorithm>
#include <cmath>

#include "threads/parallel_for.h"
#include "threads/scratch.h"

namespace softscope {
namespace {

constexpr size_t kLongRow = size_t{1} << 18;      // entries from which on a row has parts
constexpr size_t kFewRows = 16;                   // shared only if there are fewer rows than this
constexpr size_t kManyEntries = size_t{1} << 22;  // of long rows that are done in one go

size_t parts_of(size_t n) { return (n + kPartEntries - 1) / kPartEntries; }

// One row of softmax, log_softmax, logsumexp or state: first the states of its parts, and once
// these are merged, what follows from them.
class LongRow {
 public:
  LongRow(const Kernels& table, Operation wanted, const Rows& array, int most_threads)
      : kernels(table),
        operation(wanted),
        rows(array),
        threads(most_threads),
        precise(array.type == kFloat64),
        states(parts_of(array.n)) {}

  void run(const Offsets& at) {
    const size_t size = kTypeSize[rows.type];
    row = {.x = rows.x.data + at.x * static_cast<ptrdiff_t>(size),
           .out = rows.out.data + at.out * static_cast<ptrdiff_t>(rows.out_size),
           .n = rows.n,
           .temperature = rows.numbers[at.numbers],
           .maximum = 0,
           .z = 0,
           .log_z = 0,
           .log_z_low = 0,
           .careful = false};
    take_states();
    const PreciseState& s = states[0];
    if (operation != kSoftmax && !precise &&
        kernels.long_row.too_coarse(s, rows.n, row.temperature, operation == kState)) {
      take_again();
      return;
    }
    if (operation == kState) {
      *static_cast<State*>(row.out) = s;
      return;
    }
    row.maximum = s.m;
    row.z = s.c + s.r;
    row.log_z = std::log(s.c) + std::log1p(s.r / s.c);
    if (operation == kLogSumExp) {
      const double lse = std::isinf(s.m) ? s.m : s.m / row.temperature + row.log_z;
      *static_cast<float*>(row.out) = static_cast<float>(lse);
      return;
    }
    if (precise && operation == kLogSoftmax && !kernels.long_row.precise_log_z(s, row)) {
      row.careful = true;
      take_states();
      kernels.long_row.precise_log_z(s, row);
    }
    const auto map = (operation == kSoftmax ? kernels.long_row.softmax
                                            : kernels.long_row.log_softmax)[rows.type];
    parallel_for(states.size(), threads, [&](size_t i) { map(part(i)); });
  }

 private:
  const Kernels& kernels;
  const Operation operation;
  const Rows& rows;
  const int threads;
  const bool precise;
  LongRowPart row{};  // all of it
  std::vector<PreciseState> states;

  LongRowPart part(size_t i) const {
    const size_t begin = i * kPartEntries, size = kTypeSize[rows.type];
    LongRowPart p = row;
    p.x = static_cast<const char*>(row.x) + begin * size;
    p.out = static_cast<char*>(row.out) + begin * size;
    p.n = std::min(kPartEntries, rows.n - begin);
    return p;
  }

  // The states of all parts, merged into the first.
  void take_states() {
    const auto take =
        (operation == kState ? kernels.long_row.state : kernels.long_row.sums)[rows.type];
    const auto merge = precise ? kernels.long_row.merge_precisely : kernels.long_row.merge;
    parallel_for(states.size(), threads, [&](size_t i) { take(part(i), states[i]); });
    for (size_t i = 1; i < states.size(); ++i) merge(states[0], states[i], row.temperature);
  }

  // Where sums in float32 are too coarse, the kernel for whole rows repeats them in float64.
  void take_again() {
    kernels.rows[operation][rows.type]({.x = {.data = row.x, .row = 0, .step = 1},
                                        .y = {.data = row.x, .row = 0, .step = 1},
                                        .out = {.data = row.out, .row = 0, .step = rows.out.step},
                                        .numbers = &row.temperature,
                                        .numbers_row = 0,
                                        .rows = 1,
                                        .n = rows.n,
                                        .scratch = scratch(scratch_bytes(rows.type, rows.n))});
  }
};

// Backward operations, several rows at a time: the less often threads wait for each other, the
// better.
void run_long_backward(const LongBackwardKernels& kernels, const Rows& rows,
                       const std::vector<Axis>& axes, int threads) {
  const size_t parts = parts_of(rows.n);
  const auto size = static_cast<ptrdiff_t>(kTypeSize[rows.type]);
  const size_t count = count_of(axes);
  const size_t many = std::min(count, std::max<size_t>(1, kManyEntries / rows.n));
  std::vector<BackwardSums> sums(many * parts);

  for (size_t first = 0; first < count; first += many) {
    const size_t tasks = std::min(many, count - first) * parts;
    const auto part = [&](size_t task) {
      const size_t begin = task % parts * kPartEntries;
      Offsets at = offsets_of(axes, first + task / parts);
      at.walk({.size = rows.n, .x = 1, .y = 1, .out = 1, .numbers = 0}, begin);
      return TwoInputPart{.x = rows.x.data + at.x * size,
                          .y = rows.y.data + at.y * size,
                          .out = rows.out.data + at.out * size,
                          .n = std::min(kPartEntries, rows.n - begin),
                          .numbers = rows.numbers + at.numbers};
    };
    const auto first_part = [&](size_t task) { return task - task % parts; };
    parallel_for(tasks, threads,
                 [&](size_t task) { kernels.sums[rows.type](part(task), sums[task]); });
    for (size_t task = 0; task < tasks; ++task) {
      if (task != first_part(task)) kernels.merge(sums[first_part(task)], sums[task]);
    }
    parallel_for(tasks, threads,
                 [&](size_t task) { kernels.map[rows.type](part(task), sums[first_part(task)]); });
  }
}

}  // namespace

bool are_contiguous(Operation operation, const Rows& rows) {
  return rows.x.step == 1 && rows.y.step == 1 && (!gives_rows(operation) || rows.out.step == 1);
}

bool have_parts(Operation operation, const Rows& rows) {
  // logsumexp of parts is written as float32; of other types it would have to be rounded.
  const bool fits = operation != kLogSumExp || rows.type == kFloat32;
  return fits && rows.n >= kLongRow;
}

bool shares_rows(Operation operation, const Rows& rows, size_t count) {
  return have_parts(operation, rows) && are_contiguous(operation, rows) && count < kFewRows;
}

void run_long_rows(const Kernels& kernels, Operation operation, const Rows& rows, int threads) {
  const std::vector<Axis> axes = axes_of(rows);
  if (is_backward(operation)) {
    run_long_backward(kernels.long_backward[operation - kFirstBackward], rows, axes, threads);
    return;
  }
  LongRow row(kernels, operation, rows, threads);
  for (size_t i = 0; i < count_of(axes); ++i) row.run(offsets_of(axes, i));
}

}  // namespace softscope
