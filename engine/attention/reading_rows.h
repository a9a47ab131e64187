// Rows of attention as the kernel of readings.h takes them, and what it gives back. Plain data, the
// same for every unit.
#pragma once

#include "rows/block.h"

namespace softscope {

// What is read of a row of attention, in this order; see readings.h.
enum Reading {
  kTop,           // the largest logit
  kAligned,       // Σ |x|/|k|
  kZ,             // Σ e, e = exp(d), d = x − top
  kProduct,       // Σ e·d
  kSquares,       // Σ e²
  kBelow,         // Σ d
  kSquaredBelow,  // Σ d²
  kMean,          // of the gradient g; from here on 0 without one
  kDemand,        // |g − mean|
  kLowest,        // min (g − mean)
  kExpected,      // Σ p·(g − mean)
  kSupply,        // |J·g|
  kReadings
};

// Groups (sequences and heads) of rows over the same keys, contiguous and of float32 or float64.
struct ReadingRows {
  Type type;
  size_t groups, rows, keys;
  void* x;              // (groups, rows, keys): logits, −inf where hidden; in the end the weights
  const void* grad;     // the same, of the weights; null for none
  const void* lengths;  // (groups, stride): 1/|k| of the keys
  size_t stride;
  const void* counts;  // (groups, rows): how many keys are seen
  void* out;           // (kReadings, groups, rows)
};

}  // namespace softscope
