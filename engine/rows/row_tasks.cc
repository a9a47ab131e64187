#include "rows/row_tasks.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "entmax/long_row_tasks.h"
#include "threads/parallel_for.h"

namespace softscope {

std::vector<Axis> axes_of(const Rows& rows) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < rows.lead.size(); ++i) {
    const Axis a = {rows.lead[i], rows.x_strides[i], rows.y_strides[i], rows.out_strides[i],
                    rows.numbers_strides[i]};
    if (a.size == 1) continue;
    const auto size = static_cast<ptrdiff_t>(a.size);
    if (!axes.empty() && axes.back().x == a.x * size && axes.back().y == a.y * size &&
        axes.back().out == a.out * size && axes.back().numbers == a.numbers * size) {
      axes.back() = {axes.back().size * a.size, a.x, a.y, a.out, a.numbers};
    } else {
      axes.push_back(a);
    }
  }
  return axes;
}

size_t count_of(const std::vector<Axis>& axes) {
  size_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  return count;
}

Offsets offsets_of(const std::vector<Axis>& axes, size_t index) {
  Offsets at;
  for (size_t i = axes.size(); i-- > 0;) {
    at.walk(axes[i], index % axes[i].size);
    index /= axes[i].size;
  }
  return at;
}

namespace {

constexpr size_t kChunk = size_t{1} << 15;    // entries that are worth handing to a thread
constexpr size_t kLongRow = size_t{1} << 18;  // rows from here on are cut for several threads
constexpr size_t kPart = size_t{1} << 16;     // entries of such a part
constexpr size_t kFewRows = 16;               // but only where they are fewer than that: each costs
                                              // several waits of all threads for each other
constexpr size_t kTileRows = 64;              // rows side by side: several lines of each page
constexpr size_t kLongRows = size_t{1} << 22;  // entries of such rows that are worth doing at once

// Scratch of the thread's own, kept from call to call.
void* scratch(size_t bytes) {
  thread_local std::unique_ptr<char[]> memory;
  thread_local size_t size = 0;
  if (size < bytes) {
    memory.reset(new char[bytes]);
    size = bytes;
  }
  return memory.get();
}

void run_blocks(Kernel kernel, const Rows& rows, const std::vector<Axis>& axes, size_t inner,
                int threads) {
  const Axis along = axes.empty() ? Axis{1, 0, 0, 0, 0} : axes[inner];
  std::vector<Axis> others = axes;
  if (!axes.empty()) others.erase(others.begin() + static_cast<ptrdiff_t>(inner));
  const size_t outer = count_of(others);
  size_t per_chunk = std::max<size_t>(1, kChunk / std::max<size_t>(rows.n, 1));
  per_chunk = std::min(along.size, (per_chunk + kTileRows - 1) / kTileRows * kTileRows);
  if (rows.n > kChunk / 4 && rows.x_step == 1) per_chunk = 1;
  const size_t chunks = (along.size + per_chunk - 1) / per_chunk;
  const auto size = static_cast<ptrdiff_t>(kTypeSize[rows.type]);
  const size_t need = scratch_bytes(rows.type, rows.n);

  parallel_for(outer * chunks, threads, [&](size_t task) {
    const size_t first = task % chunks * per_chunk;
    Offsets at = offsets_of(others, task / chunks);
    at.walk(along, first);
    kernel({rows.x + at.x * size, rows.y + at.y * size,
            rows.out + at.out * static_cast<ptrdiff_t>(rows.out_size), rows.numbers + at.numbers,
            std::min(per_chunk, along.size - first), rows.n, along.x, rows.x_step, along.y,
            rows.y_step, along.out, rows.out_step, along.numbers, scratch(need)});
  });
}

// Row by row, each cut into parts: states first, and once they are merged, what follows from them.
void run_long(const Kernels& kernels, Operation operation, const Rows& rows,
              const std::vector<Axis>& axes, int threads) {
  const size_t parts = (rows.n + kPart - 1) / kPart;
  const size_t size = kTypeSize[rows.type];
  constexpr size_t kNumbers = kPartNumbers;
  const bool exact = rows.type == kFloat64;
  std::vector<double> states(parts * kNumbers);
  const size_t count = count_of(axes);
  for (size_t row = 0; row < count; ++row) {
    const Offsets at = offsets_of(axes, row);
    const char* from = rows.x + at.x * static_cast<ptrdiff_t>(size);
    char* to = rows.out + at.out * static_cast<ptrdiff_t>(rows.out_size);
    const double temperature = rows.numbers[at.numbers];
    const auto part = [&](size_t i) {
      const size_t begin = i * kPart;
      return Part{from + begin * size,
                  to + begin * size,
                  std::min(kPart, rows.n - begin),
                  0,
                  temperature,
                  0,
                  0,
                  0,
                  false};
    };
    const auto sums = [&](bool careful, double maximum) {
      parallel_for(parts, threads, [&](size_t i) {
        Part p = part(i);
        p.careful = careful;
        p.maximum = maximum;
        (operation == kState ? kernels.part_state : kernels.part_sums)[rows.type](
            p, &states[i * kNumbers]);
      });
      for (size_t i = 1; i < parts; ++i) {
        (exact ? kernels.merge_exactly : kernels.merge_states)(states.data(), &states[i * kNumbers],
                                                               temperature);
      }
    };
    sums(false, 0);
    if (operation != kSoftmax && !exact &&
        kernels.merged_too_coarse(states.data(), rows.n, temperature, operation == kState)) {
      // What float32's sums cannot give, the kernel for whole rows takes again in float64.
      kernels.rows[operation][rows.type]({from, from, to, &temperature, 1, rows.n, 0, 1, 0, 1, 0,
                                          rows.out_step, 0,
                                          scratch(scratch_bytes(rows.type, rows.n))});
      continue;
    }
    const double c = states[1], m = states[2], r = states[3];
    if (operation == kState) {
      std::copy(states.begin(), states.begin() + 7, reinterpret_cast<double*>(to));
      continue;
    }
    double log_z[2] = {std::log(c) + std::log1p(r / c), 0};
    if (operation == kLogSumExp) {
      const double lse = std::isinf(m) ? m : m / temperature + log_z[0];
      *reinterpret_cast<float*>(to) = static_cast<float>(lse);
      continue;
    }
    if (exact && operation == kLogSoftmax &&
        !kernels.exact_log_z(states.data(), temperature, log_z)) {
      sums(true, m);
      kernels.exact_log_z(states.data(), temperature, log_z);
    }
    parallel_for(parts, threads, [&](size_t i) {
      Part p = part(i);
      p.maximum = m;
      p.z = c + r;
      p.log_z = log_z[0];
      p.log_z_low = log_z[1];
      (operation == kSoftmax ? kernels.part_softmax : kernels.part_log_softmax)[rows.type](p);
    });
  }
}

// The same for pairs, several rows at a time: the fewer times threads wait for each other, the
// better.
void run_long_pairs(const LongPair& kernels, const Rows& rows, const std::vector<Axis>& axes,
                    int threads) {
  const size_t parts = (rows.n + kPart - 1) / kPart;
  const auto size = static_cast<ptrdiff_t>(kTypeSize[rows.type]);
  const size_t count = count_of(axes);
  const size_t many = std::min(count, std::max<size_t>(1, kLongRows / rows.n));
  std::vector<double> sums(many * parts * kPairSums);

  for (size_t first = 0; first < count; first += many) {
    const size_t tasks = std::min(many, count - first) * parts;
    const auto part = [&](size_t task) {
      const size_t begin = task % parts * kPart;
      Offsets at = offsets_of(axes, first + task / parts);
      at.walk({rows.n, 1, 1, 1, 0}, begin);
      return PairPart{rows.x + at.x * size, rows.y + at.y * size, rows.out + at.out * size,
                      std::min(kPart, rows.n - begin), rows.numbers + at.numbers};
    };
    const auto sums_of = [&](size_t task) { return sums.data() + task * kPairSums; };
    parallel_for(tasks, threads,
                 [&](size_t task) { kernels.sums[rows.type](part(task), sums_of(task)); });
    for (size_t task = 0; task < tasks; ++task) {
      if (task % parts != 0) kernels.merge(sums_of(task - task % parts), sums_of(task));
    }
    parallel_for(tasks, threads, [&](size_t task) {
      kernels.map[rows.type](part(task), sums_of(task - task % parts));
    });
  }
}

}  // namespace

void run(const Kernels& kernels, Operation operation, const Rows& rows, int threads) {
  const std::vector<Axis> axes = axes_of(rows);
  const size_t count = count_of(axes);
  if (count == 0) return;
  const bool contiguous =
      rows.x_step == 1 && rows.y_step == 1 && (!gives_rows(operation) || rows.out_step == 1);
  if (contiguous && rows.n >= kLongRow && count < kFewRows) {
    if (is_pair(operation)) {
      run_long_pairs(kernels.pairs[operation - kJacobianProduct], rows, axes, threads);
      return;
    }
    if (operation == kEntmax) {
      run_long_sparse(kernels, rows, threads);
      return;
    }
    // A logsumexp of other types would have to be rounded to them here.
    if (operation != kLogSumExp || rows.type == kFloat32) {
      run_long(kernels, operation, rows, axes, threads);
      return;
    }
  }
  // Rows along another axis than the last: the axis whose rows are neighbours in memory.
  size_t inner = axes.empty() ? 0 : axes.size() - 1;
  if (rows.x_step != 1) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].x == 1 && (!gives_rows(operation) || axes[i].out == 1)) inner = i;
    }
  }
  if (rows.n * count < 2 * kChunk) threads = 1;
  run_blocks(kernels.rows[operation][rows.type], rows, axes, inner, threads);
}

void run(const Kernels& kernels, const ReadingRows& rows, int threads) {
  const size_t count = rows.groups * rows.rows;
  const size_t each = std::max(size_t{1}, kChunk / std::max(rows.keys, size_t{1}));
  const size_t tasks = (count + each - 1) / each;
  if (tasks < 4) threads = 1;
  parallel_for(tasks, threads, [&](size_t task) {
    const size_t first = task * each;
    kernels.read_rows[rows.type - kFloat32](rows, first, std::min(first + each, count),
                                            scratch(rows.keys * kTypeSize[rows.type]));
  });
}

}  // namespace softscope
