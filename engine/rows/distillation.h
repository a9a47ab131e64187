// How far a student's weights are from a teacher's: T²·KL(teacher‖student).
#pragma once

#include "rows/wide_rows.h"

namespace softscope {

struct Lessons {
  WideRows student, teacher;   // logits of the same shape
  const double* temperatures;  // `temperatures_row` apart
  ptrdiff_t temperatures_row;
};

// The mean over the rows; 0 if there are none.
double distillation(const Lessons& lessons, int threads);

}  // namespace softscope
