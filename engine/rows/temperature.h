// The temperature at which the weights of a row have a given entropy or peak.
#pragma once

#include "rows/wide_rows.h"

namespace softscope {

// Rows of logits, where −inf hides an entry, and what each is to reach, `targets_row` apart: an
// entropy, or the negative logarithm of a peak.
struct Searches {
  WideRows x;
  const double* targets;
  ptrdiff_t targets_row;
  bool peak;
};

// NaN for a row that no temperature brings to its target.
void find_temperatures(const Searches& searches, double* out, int threads);

}  // namespace softscope
