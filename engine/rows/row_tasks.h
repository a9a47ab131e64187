// Arrays of any shape and stride as blocks of rows, and blocks as work for threads.
#pragma once

#include <cstdint>
#include <vector>

#include "dispatch/kernels.h"

namespace softscope {

// The rows of an array lie along its last axis; strides count entries.
struct Rows {
  Type type;
  std::vector<size_t> lead;  // the axes before the last
  size_t n;                  // the last
  const char* x;
  std::vector<ptrdiff_t> x_strides;
  ptrdiff_t x_step;
  const char* y;  // where the operation takes two, else like x
  std::vector<ptrdiff_t> y_strides;
  ptrdiff_t y_step;
  char* out;
  size_t out_size;  // bytes of an entry of out: that of x, or of a whole result
  std::vector<ptrdiff_t> out_strides;
  ptrdiff_t out_step;
  const double* numbers;
  std::vector<ptrdiff_t> numbers_strides;
};

// An axis before the last, and how far apart its entries are.
struct Axis {
  size_t size;
  ptrdiff_t x, y, out, numbers;
};

// Where a row begins: distances from the array's first.
struct Offsets {
  ptrdiff_t x = 0, y = 0, out = 0, numbers = 0;

  void walk(const Axis& axis, size_t steps) {
    const auto n = static_cast<ptrdiff_t>(steps);
    x += n * axis.x;
    y += n * axis.y;
    out += n * axis.out;
    numbers += n * axis.numbers;
  }
};

// The lead axes without those of size 1, neighbours joined where one stride walks both.
std::vector<Axis> axes_of(const Rows& rows);
size_t count_of(const std::vector<Axis>& axes);

// The row of this index among all, the last axis counting fastest.
Offsets offsets_of(const std::vector<Axis>& axes, size_t index);

// How the work is cut depends on the shape alone, never on the number of threads: so the result
// does not, either.
void run(const Kernels& kernels, Operation operation, const Rows& rows, int threads);
void run(const Kernels& kernels, const ReadingRows& rows, int threads);

}  // namespace softscope
