// Rows as a kernel receives them: the types of arrays, the operations, and a block of rows in
// memory. Plain data, the same for every unit; what has a body is in an anonymous namespace, so
// that no unit runs another's copy.
#pragma once

#include <cstddef>

namespace softscope {

enum Type { kFloat16, kBFloat16, kFloat32, kFloat64, kTypes };
constexpr size_t kTypeSize[kTypes] = {2, 2, 4, 8};

// What can be computed of rows. "→" is followed by the result: a row, or one thing per row.
enum Operation {
  kSoftmax,             // x → weights
  kLogSoftmax,          // x → logarithms of weights
  kEntmax,              // x; T, α → sparse weights, for α ≥ 1
  kLogSumExp,           // x → log Σ exp(x/T)
  kState,               // x → State
  kJacobianProduct,     // weights p, v; T, α → J·v/T, for α in [1, 2]
  kLogSoftmaxBackward,  // logarithms of weights y, g; T → (g − exp(y)·Σg)/T
  kScaledWeights,       // x; T, m, z, a, b → a·exp((x − m)/T)/z + b
  kOperations
};

namespace {

constexpr bool gives_rows(Operation operation) {
  return operation != kLogSumExp && operation != kState;
}
constexpr bool takes_two_inputs(Operation operation) {
  return operation == kJacobianProduct || operation == kLogSoftmaxBackward;
}
// Backward operations walk blocks, and share out long rows, in a way of their own; see
// walk_block_two_inputs.h. They come last, so that they can index a table of their own.
constexpr Operation kFirstBackward = kJacobianProduct;
constexpr bool is_backward(Operation operation) { return operation >= kFirstBackward; }

// How many numbers a row brings with it; see RowNumber.
constexpr size_t numbers_per_row(Operation operation) {
  if (operation == kScaledWeights) return 5;
  return operation == kEntmax || operation == kJacobianProduct ? 2 : 1;
}

}  // namespace

// The numbers that a row brings with it: always T; for some operations α; for kScaledWeights what
// its formula names.
enum RowNumber { kTemperature, kAlpha, kRowMaximum = 1, kRowZ, kFactor, kSummand };

// Evenly spaced rows. Distances count entries.
template <class Data>
struct EvenRows {
  Data* data;
  ptrdiff_t row;   // from one row to the next
  ptrdiff_t step;  // from one entry of a row to the next
};
using RowsIn = EvenRows<const void>;
using RowsOut = EvenRows<void>;

struct Block {
  RowsIn x;
  RowsIn y;  // the second input, of x's type, for operations that take two
  RowsOut out;
  const double* numbers;  // what the rows bring with them
  ptrdiff_t numbers_row;  // 0: all rows share them
  size_t rows, n;
  void* scratch;  // scratch_bytes() of it
};

namespace {

// Room for one peak per block of entries (see entmax_row.h); no block is smaller than 8 entries.
constexpr size_t peaks_bytes(size_t n) { return (n / 8 + 1) * 8; }

// The scratch that a block needs: a copy of one row, and its exponentials or, for entmax, the
// entries picked from it and its peaks.
constexpr size_t scratch_bytes(Type type, size_t n) {
  return (n + 64) * (kTypeSize[type] + 8) + peaks_bytes(n);
}

}  // namespace

}  // namespace softscope
