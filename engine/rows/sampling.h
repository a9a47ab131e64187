// Draws an entry of each row, with the probability that softmax gives it.
#pragma once

#include <cstdint>

#include "rows/wide_rows.h"

namespace softscope {

struct Draws {
  WideRows x;                  // logits
  const double* temperatures;  // `temperatures_row` apart; 0 takes the largest, the first of them
  ptrdiff_t temperatures_row;
  size_t top_k;           // keep so many of the largest weights, the first among ties
  double top_p;           // keep the fewest of the largest whose sum reaches it; 0: all
  double min_p;           // keep what is at least this share of the largest
  const double* uniform;  // a number in [0, 1) for each row
};

// The first row from which nothing can be drawn: NaN or +inf in it, or nothing but −inf. x.count if
// there is none.
size_t first_without_weights(const WideRows& x);

void draw(const Draws& draws, int64_t* out, int threads);

}  // namespace softscope
