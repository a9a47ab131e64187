// What a partition says of a row, from the row's state.
#pragma once

#include <cstddef>

namespace softscope {

enum class Reading {
  kLse,
  kEntropy,
  kCollision,
  kPeak,
  kVariance,
  kJacobianTrace,
  kEffectiveSupport,
  kSharpness,
  kCount
};

// States one after the other, each the first seven of `width` numbers, and the temperatures of the
// rows, `temperatures_row` apart.
struct States {
  const double* numbers;
  size_t count, width;
  const double* temperatures;
  ptrdiff_t temperatures_row;
};

// One number of each row. Of a row without entries, lse is −inf and everything else NaN.
void read_states(Reading reading, const States& states, double* out, int threads);

}  // namespace softscope
