// Contiguous rows of any type, read in float64.
#pragma once

#include <vector>

#include "rows/block.h"

namespace softscope {

struct WideRows {
  const void* data;
  Type type;
  size_t count, n;

  // Where a row lies if it is float64 already, else its copy in `room`.
  const double* row(size_t i, std::vector<double>& room) const;
};

}  // namespace softscope
