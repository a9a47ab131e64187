// How far a student's weights are from a teacher's: T²·KL(teacher‖student).
#pragma once

#include <cstddef>

namespace softscope {

// Contiguous rows of logits.
struct Lessons {
  const double *student, *teacher;
  size_t count, n;
  const double* temperatures;  // `temperatures_row` apart
  ptrdiff_t temperatures_row;
};

// The mean over the rows; 0 if there are none.
double distillation(const Lessons& lessons, int threads);

}  // namespace softscope
