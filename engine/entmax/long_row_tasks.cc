#include "entmax/long_row_tasks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rows/long_row_tasks.h"
#include "threads/parallel_for.h"
#include "threads/scratch.h"

namespace softscope {
namespace {

constexpr size_t kPeaks = peaks_bytes(kPartEntries) / sizeof(double);
constexpr size_t kRoom = kPartEntries + 64;  // for all entries of a part, and a vector more

void run_row(const LongEntmaxKernels& kernels, Type type, EntmaxPart row, int threads) {
  const size_t parts = (row.n + kPartEntries - 1) / kPartEntries;
  // Room for every entry, hardly touched: most parts have nothing to pick.
  const size_t bytes = parts * (kPeaks + kRoom) * sizeof(double);
  double* memory = static_cast<double*>(scratch(bytes, Scratch::kSharedRow));
  row.picked = memory + parts * kPeaks;
  const auto part = [&](size_t i) {
    EntmaxPart p = row;
    const size_t begin = i * kPartEntries;
    p.x = static_cast<const char*>(row.x) + begin * kTypeSize[type];
    p.out = static_cast<char*>(row.out) + begin * kTypeSize[type];
    p.n = std::min(kPartEntries, row.n - begin);
    p.peaks = memory + i * kPeaks;
    p.picked = row.picked + i * kRoom;
    return p;
  };

  std::vector<double> maxima(parts);
  parallel_for(parts, threads, [&](size_t i) { maxima[i] = kernels.peaks[type](part(i)); });
  row.maximum = maxima[0];
  for (const double m : maxima) {
    if (!(m <= row.maximum) && row.maximum == row.maximum) row.maximum = m;  // NaN wins and stays
  }
  if (std::isfinite(row.maximum)) {
    std::vector<size_t> counts(parts);
    parallel_for(parts, threads, [&](size_t i) { counts[i] = kernels.pick[type](part(i)); });
    size_t total = 0;
    for (size_t i = 0; i < parts; ++i) {
      std::memmove(row.picked + total, row.picked + i * kRoom, counts[i] * sizeof(double));
      total += counts[i];
    }
    kernels.solve(row, total);
  }
  parallel_for(parts, threads, [&](size_t i) { kernels.weights[type](part(i)); });
}

}  // namespace

void run_long_entmax(const Kernels& kernels, const Rows& rows, int threads) {
  const auto size = static_cast<ptrdiff_t>(kTypeSize[rows.type]);
  const std::vector<Axis> axes = axes_of(rows);
  const size_t count = count_of(axes);
  for (size_t i = 0; i < count; ++i) {
    const Offsets at = offsets_of(axes, i);
    const char* x = rows.x.data + at.x * size;
    char* out = rows.out.data + at.out * size;
    const double* numbers = rows.numbers + at.numbers;
    if (numbers[kAlpha] == 1) {  // α = 1 is softmax
      run_long_rows(kernels, kSoftmax,
                    {.type = rows.type,
                     .lead = {},
                     .n = rows.n,
                     .x = {.data = x, .strides = {}, .step = 1},
                     .y = {.data = x, .strides = {}, .step = 1},
                     .out = {.data = out, .strides = {}, .step = 1},
                     .out_size = rows.out_size,
                     .numbers = numbers,
                     .numbers_strides = {}},
                    threads);
    } else {
      run_row(kernels.long_entmax, rows.type,
              {.x = x,
               .out = out,
               .n = rows.n,
               .temperature = numbers[kTemperature],
               .alpha = numbers[kAlpha],
               .peaks = nullptr,
               .picked = nullptr,
               .maximum = 0,
               .root = 0,
               .lowest = 0,
               .total = 0},
              threads);
    }
  }
}

}  // namespace softscope
