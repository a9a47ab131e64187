// The rows of an array of any shape and strides.
#pragma once

#include <vector>

#include "rows/block.h"

namespace softscope {

// The rows of one array. Strides count entries.
template <class Byte>
struct Operand {
  Byte* data;
  std::vector<ptrdiff_t> strides;  // of the axes before the last
  ptrdiff_t step;                  // of the last axis, along which the rows lie
};

struct Rows {
  Type type;
  std::vector<size_t> lead;  // sizes of the axes before the last
  size_t n;                  // size of the last
  Operand<const char> x;
  Operand<const char> y;  // the second input; x again if the operation takes only one
  Operand<char> out;
  size_t out_size;  // bytes of one entry of out: as of x, or of a whole state
  const double* numbers;
  std::vector<ptrdiff_t> numbers_strides;
};

// An axis before the last, and how far apart its rows are in each array.
struct Axis {
  size_t size;
  ptrdiff_t x, y, out, numbers;
};

// Where a row begins: distances from the first row of each array.
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

// The axes before the last, without those of size 1, and with neighbours joined if one stride walks
// both.
std::vector<Axis> axes_of(const Rows& rows);
size_t count_of(const std::vector<Axis>& axes);

// Where the row of this index begins; the last axis counts fastest.
Offsets offsets_of(const std::vector<Axis>& axes, size_t index);

}  // namespace softscope
