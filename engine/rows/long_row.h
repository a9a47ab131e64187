// The arguments of the kernels for a row that several threads share. Plain data, the same for every
// unit.
#pragma once

#include <cstddef>

namespace softscope {

// Part of a row: n of its entries. Its state is taken first; once the states of all parts are
// merged, the rest is known and each part is mapped.
struct LongRowPart {
  const void* x;
  void* out;
  size_t n;
  double temperature;
  // Of the whole row:
  double maximum;
  double z;
  double log_z, log_z_low;  // a double-double; log_z_low is for float64 only
  bool careful;             // take the sums in the careful way, from `maximum`; see float64_state.h
};

// The same for backward operations.
struct TwoInputPart {
  const void* x;
  const void* y;
  void* out;
  size_t n;
  const double* numbers;
};

// What the parts of a row add up in a backward operation, before each is mapped.
struct BackwardSums {
  // J·v (see moments.h): the largest s, the centre, Σs and Σ s·(v − centre)/2.
  double top, centre;
  double total;  // also log_softmax's Σg
  double product;
};

}  // namespace softscope
