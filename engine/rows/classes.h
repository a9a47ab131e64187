// The classes that rows of logits are compared with, for cross-entropy. Plain data, the same for
// every unit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softscope {

// What the backward pass needs of a row: its maximum, and z − 1, which keeps its digits where the
// maximum has nearly all the weight.
struct LossSums {
  double m, rest;
};

// The targets of the rows of a block, which brings them in place of a second input (Block::y). A
// row whose target is `ignored` has a loss and a gradient of 0. Other targets must be classes.
struct Classes {
  const int64_t* targets;
  int64_t ignored;
  double smoothing;
  // The forward pass writes these, the backward pass reads them, if they are not null.
  double* losses;
  LossSums* sums;
  // What reaches the losses, from one row to the next; for the backward pass.
  const double* gradients;
  ptrdiff_t gradients_row;
};

}  // namespace softscope
