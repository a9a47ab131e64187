#include "entmax/long_row_tasks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "threads/parallel_for.h"

namespace softscope {
namespace {

constexpr size_t kPart = size_t{1} << 16;  // entries
constexpr size_t kPeaks = peaks_bytes(kPart) / sizeof(double);
constexpr size_t kRoom = kPart + 64;  // for what is picked from a part, and a vector more

// Kept from call to call, and hardly touched: where nothing is picked nothing is written.
double* kept(size_t count) {
  thread_local std::unique_ptr<double[]> memory;
  thread_local size_t size = 0;
  if (size < count) {
    memory.reset(new double[count]);
    size = count;
  }
  return memory.get();
}

void run_row(const Kernels& kernels, Type type, SparsePart row, int threads) {
  const size_t parts = (row.n + kPart - 1) / kPart;
  double* memory = kept(parts * (kPeaks + kRoom));
  row.e = memory + parts * kPeaks;
  const auto part = [&](size_t i) {
    SparsePart p = row;
    const size_t begin = i * kPart;
    p.x = static_cast<const char*>(row.x) + begin * kTypeSize[type];
    p.out = static_cast<char*>(row.out) + begin * kTypeSize[type];
    p.n = std::min(kPart, row.n - begin);
    p.peaks = memory + i * kPeaks;
    p.e = row.e + i * kRoom;
    return p;
  };

  std::vector<double> maxima(parts);
  parallel_for(parts, threads, [&](size_t i) { maxima[i] = kernels.part_peaks[type](part(i)); });
  row.maximum = maxima[0];
  for (const double m : maxima) {
    if (!(m <= row.maximum) && row.maximum == row.maximum) row.maximum = m;  // NaN wins and stays
  }
  if (std::isfinite(row.maximum)) {
    std::vector<size_t> counts(parts);
    parallel_for(parts, threads, [&](size_t i) { counts[i] = kernels.part_pick[type](part(i)); });
    size_t total = 0;
    for (size_t i = 0; i < parts; ++i) {
      std::memmove(row.e + total, row.e + i * kRoom, counts[i] * sizeof(double));
      total += counts[i];
    }
    kernels.solve_parts(row, total);
  }
  parallel_for(parts, threads, [&](size_t i) { kernels.part_weights[type](part(i)); });
}

}  // namespace

void run_long_sparse(const Kernels& kernels, const Rows& rows, int threads) {
  const auto size = static_cast<ptrdiff_t>(kTypeSize[rows.type]);
  const std::vector<Axis> axes = axes_of(rows);
  const size_t count = count_of(axes);
  for (size_t row = 0; row < count; ++row) {
    const Offsets at = offsets_of(axes, row);
    const char* x = rows.x + at.x * size;
    char* out = rows.out + at.out * size;
    const double* numbers = rows.numbers + at.numbers;
    if (numbers[1] == 1) {
      run(kernels, kSoftmax,
          {rows.type, {}, rows.n, x, {}, 1, x, {}, 1, out, rows.out_size, {}, 1, numbers, {}},
          threads);
    } else {
      run_row(kernels, rows.type,
              {x, out, rows.n, numbers[0], numbers[1], nullptr, nullptr, 0, 0, 0}, threads);
    }
  }
}

}  // namespace softscope
