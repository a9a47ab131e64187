// The arguments of the kernels for an entmax row that several threads share. Plain data, the same
// for every unit.
#pragma once

#include <cstddef>

namespace softscope {

struct EntmaxPart {
  const void* x;
  void* out;
  size_t n;
  double temperature, alpha;
  void* peaks;     // of this part; see entmax_row.h
  double* picked;  // the entries of this part that may have weight
  // Of the whole row:
  double maximum;
  double root;    // where the weights sum to 1; see newton.h
  double lowest;  // for α > 2: the lowest entry that has weight; see steep.h
  double total;   // their sum there: 1 up to rounding
};

}  // namespace softscope
