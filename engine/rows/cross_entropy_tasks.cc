#include "rows/cross_entropy_tasks.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "rows/long_row_tasks.h"
#include "rows/row_tasks.h"
#include "threads/parallel_for.h"
#include "threads/scratch.h"

namespace softscope {
namespace {

constexpr size_t kTaskEntries = size_t{1} << 15;
constexpr size_t kTogether = 64;  // rows of a task come in multiples of this, for full tiles
constexpr size_t kNumbers = numbers_per_row(kScaledWeights);

struct Cut {
  size_t per_task, tasks;

  explicit Cut(const LabelledRows& rows) {
    const size_t fit = std::max<size_t>(1, kTaskEntries / rows.n);
    per_task = rows.n > kTaskEntries / 4 ? 1 : (fit + kTogether - 1) / kTogether * kTogether;
    per_task = std::min(per_task, rows.count);
    tasks = (rows.count + per_task - 1) / per_task;
  }
};

// Too little work to wake a thread for.
int threads_worth(const LabelledRows& rows, int threads) {
  return rows.n * rows.count < 2 * kTaskEntries ? 1 : threads;
}

// The rows of one task.
LabelledRows part(const LabelledRows& rows, size_t first, size_t count) {
  LabelledRows some = rows;
  some.x += first * rows.n * kTypeSize[rows.type];
  some.temperatures += static_cast<ptrdiff_t>(first) * rows.temperatures_row;
  some.targets += first;
  some.count = count;
  return some;
}

Block block(const LabelledRows& rows, const Classes& classes, void* out, void* space) {
  const auto n = static_cast<ptrdiff_t>(rows.n);
  return {.x = {.data = rows.x, .row = n, .step = 1},
          .y = {.data = &classes, .row = 0, .step = 0},
          .out = {.data = out, .row = n, .step = 1},
          .numbers = rows.temperatures,
          .numbers_row = rows.temperatures_row,
          .rows = rows.count,
          .n = rows.n,
          .scratch = space};
}

Classes classes_of(const LabelledRows& rows) {
  return {.targets = rows.targets,
          .ignored = rows.ignored,
          .smoothing = rows.smoothing,
          .losses = nullptr,
          .sums = nullptr,
          .gradients = nullptr,
          .gradients_row = 0};
}

// As if they were the rows of an array, for operations that share out long rows.
Rows array_of(const LabelledRows& rows, void* out, size_t out_size, bool to_rows,
              const double* numbers, ptrdiff_t numbers_row) {
  const auto n = static_cast<ptrdiff_t>(rows.n);
  const Operand<const char> x = {.data = rows.x, .strides = {n}, .step = 1};
  return {.type = rows.type,
          .lead = {rows.count},
          .n = rows.n,
          .x = x,
          .y = x,
          .out = {.data = static_cast<char*>(out),
                  .strides = {to_rows ? n : 1},
                  .step = to_rows ? 1 : 0},
          .out_size = out_size,
          .numbers = numbers,
          .numbers_strides = {numbers_row}};
}

bool long_rows(const LabelledRows& rows) {
  return shares_rows(kScaledWeights, array_of(rows, nullptr, 0, true, nullptr, 0), rows.count);
}

// Four sums side by side, so that an addition need not wait for the one before it.
double total_of(const double* values, size_t count) {
  double sums[4] = {};
  for (size_t i = 0; i < count; ++i) sums[i % 4] += values[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Threads share the entries of each row: first the state, then what follows from it.
void long_losses(const Kernels& kernels, const LabelledRows& rows, const Classes& classes,
                 int threads) {
  std::vector<State> states(rows.count);
  run(kernels, kState,
      array_of(rows, states.data(), sizeof(State), false, rows.temperatures, rows.temperatures_row),
      threads);
  kernels.cross_entropy.of_states[rows.type](block(rows, classes, nullptr, nullptr), states.data());
}

// a·exp((x − m)/T)/z + b in each row, as kScaledWeights takes its numbers.
void fill_numbers(const LabelledRows& rows, const Classes& classes, double* numbers) {
  const double share = rows.smoothing / static_cast<double>(rows.n);
  for (size_t r = 0; r < rows.count; ++r, numbers += kNumbers) {
    const double t = rows.temperatures[static_cast<ptrdiff_t>(r) * rows.temperatures_row];
    const double a = classes.gradients[static_cast<ptrdiff_t>(r) * classes.gradients_row] / t;
    const bool kept = rows.targets[r] != rows.ignored;
    numbers[kTemperature] = t;
    numbers[kRowMaximum] = kept ? classes.sums[r].m : 0;
    numbers[kRowZ] = kept ? 1 + classes.sums[r].rest : 1;
    numbers[kFactor] = a;
    numbers[kSummand] = -share * a;
  }
}

}  // namespace

size_t first_misfit(const LabelledRows& rows) {
  const auto n = static_cast<uint64_t>(rows.n);
  for (size_t r = 0; r < rows.count; ++r) {
    if (static_cast<uint64_t>(rows.targets[r]) >= n && rows.targets[r] != rows.ignored) return r;
  }
  return rows.count;
}

size_t kept_rows(const LabelledRows& rows) {
  size_t kept = 0;
  for (size_t r = 0; r < rows.count; ++r) kept += rows.targets[r] != rows.ignored;
  return kept;
}

double cross_entropy(const Kernels& kernels, const LabelledRows& rows, double* losses,
                     LossSums* sums, int threads) {
  if (long_rows(rows)) {
    std::vector<double> own(losses == nullptr ? rows.count : 0);
    Classes classes = classes_of(rows);
    classes.losses = losses == nullptr ? own.data() : losses;
    classes.sums = sums;
    long_losses(kernels, rows, classes, threads);
    return total_of(classes.losses, rows.count);
  }
  const Cut cut(rows);
  const size_t need = (scratch_bytes(rows.type, rows.n) + 63) / 64 * 64;
  std::vector<double> totals(cut.tasks);
  parallel_for(cut.tasks, threads_worth(rows, threads), [&](size_t task) {
    const size_t first = task * cut.per_task, count = std::min(cut.per_task, rows.count - first);
    const LabelledRows some = part(rows, first, count);
    char* space = static_cast<char*>(scratch(need + count * sizeof(double)));
    Classes classes = classes_of(some);
    classes.losses = losses == nullptr ? reinterpret_cast<double*>(space + need) : losses + first;
    classes.sums = sums == nullptr ? nullptr : sums + first;
    kernels.cross_entropy.losses[rows.type](block(some, classes, nullptr, space));
    totals[task] = total_of(classes.losses, count);
  });
  double total = 0;
  for (const double t : totals) total += t;
  return total;
}

void cross_entropy_backward(const Kernels& kernels, const LabelledRows& rows, const LossSums* sums,
                            const LossGradient& gradient, void* out, int threads) {
  const bool shared = long_rows(rows);
  const Cut cut(rows);
  const size_t size = kTypeSize[rows.type];
  const size_t need = shared ? 0 : (scratch_bytes(rows.type, rows.n) + 63) / 64 * 64;
  const auto some_rows = [&](size_t first, size_t count, char* space) {
    const LabelledRows some = part(rows, first, count);
    auto* gradients = reinterpret_cast<double*>(space + need);
    double* numbers = gradients + count;
    for (size_t r = 0; r < count; ++r) {
      gradients[r] =
          gradient.each[static_cast<ptrdiff_t>(first + r) * gradient.step] * gradient.factor;
    }
    Classes classes = classes_of(some);
    classes.sums = const_cast<LossSums*>(sums) + first;  // the backward pass only reads them
    classes.gradients = gradients;
    classes.gradients_row = 1;
    fill_numbers(some, classes, numbers);
    char* to = static_cast<char*>(out) + first * rows.n * size;
    Block b = block(some, classes, to, space);
    if (shared) {
      run(kernels, kScaledWeights, array_of(some, to, size, true, numbers, kNumbers), threads);
    } else {
      b.numbers = numbers;
      b.numbers_row = kNumbers;
      kernels.rows[kScaledWeights][rows.type](b);
      b.numbers = some.temperatures;
      b.numbers_row = some.temperatures_row;
    }
    kernels.cross_entropy.at_targets[rows.type](b);
  };
  const auto bytes = [&](size_t count) { return need + count * (kNumbers + 1) * sizeof(double); };
  if (shared) {
    std::vector<char> space(bytes(rows.count));
    some_rows(0, rows.count, space.data());
    return;
  }
  parallel_for(cut.tasks, threads_worth(rows, threads), [&](size_t task) {
    const size_t first = task * cut.per_task, count = std::min(cut.per_task, rows.count - first);
    some_rows(first, count, static_cast<char*>(scratch(bytes(count))));
  });
}

}  // namespace softscope
