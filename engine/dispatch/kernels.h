// What one instruction set offers: plain functions, no Python, no exceptions, no allocation.
#pragma once

#include <cstddef>

#include "attention/problem.h"

namespace softscope {

enum Type { kFloat16, kBFloat16, kFloat32, kFloat64, kTypes };
constexpr size_t kTypeSize[kTypes] = {2, 2, 4, 8};

// What can be computed of rows.
enum Operation {
  kSoftmax,             // x → weights
  kLogSoftmax,          // x → logarithms of weights
  kEntmax,              // x; T, α → sparse weights, for α in [1, 2]
  kLogSumExp,           // x → log Σ exp(x/T)
  kState,               // x → State
  kJacobianProduct,     // weights p, v; T, α → J·v/T
  kLogSoftmaxBackward,  // logarithms of weights y, g; T → (g − exp(y)·Σg)/T
  kScaledWeights,       // x; T, m, z, a, b → a·exp((x − m)/T)/z + b
  kOperations
};

// A row, or else one result.
constexpr bool gives_rows(Operation operation) {
  return operation != kLogSumExp && operation != kState;
}
// A second row beside the first, and sums of its own: rows of these are cut as pairs.
constexpr bool is_pair(Operation operation) { return operation >= kJacobianProduct; }
constexpr bool takes_two(Operation operation) {
  return operation == kJacobianProduct || operation == kLogSoftmaxBackward;
}

// How many numbers of its own a row brings: its temperature T first.
constexpr size_t kRowNumbers[kOperations] = {1, 1, 2, 1, 1, 2, 1, 5};

// Rows of n entries, evenly spaced in memory. Distances count entries: between rows, and within.
struct Block {
  const void* x;
  const void* y;  // a second row, of x's type, for operations that take two
  void* out;
  const double* numbers;
  size_t rows, n;
  ptrdiff_t x_row, x_step;
  ptrdiff_t y_row, y_step;
  ptrdiff_t out_row, out_step;
  ptrdiff_t numbers_row;
  void* scratch;  // as much as scratch_bytes says
};

// Part of a row that is too long for one thread: entries [0, n) of it.
struct Part {
  const void* x;
  void* out;
  size_t n;
  double maximum, temperature, log_z, z;
  double log_z_low;  // what float64 has of log z besides
  bool careful;      // take the sums in the careful way, from `maximum` (see float64_state.h)
};

// Part of such a row for kEntmax. The entries that were picked from it lie at e.
struct SparsePart {
  const void* x;
  void* out;
  size_t n;
  double temperature, alpha;
  void* peaks;
  double* e;
  double maximum, root, total;
};

// How many numbers a state has between the parts of a row; the first 7 are the State.
constexpr size_t kPartNumbers = 9;

// The same of a row and the second beside it.
struct PairPart {
  const void* x;
  const void* y;
  void* out;
  size_t n;
  const double* numbers;
};

// How a long row of one operation is shared: sums of its parts (kPairSums numbers), which merge,
// and then each part's map.
constexpr size_t kPairSums = 4;
struct LongPair {
  void (*sums[kTypes])(const PairPart&, double*);
  void (*merge)(double* into, const double* from);
  void (*map[kTypes])(const PairPart&, const double*);
};

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

using Kernel = void (*)(const Block&);

// In units of their own, for they take as long to compile as all the others.
struct AttentionKernels {
  void (*attend[kTypes])(const Attention&, const AttentionRows&);
  void (*merge_parts[kTypes])(const Attention&, const AttentionRows&, size_t parts, size_t stride);
  void (*attend_back[kTypes])(const AttentionBack&, const AttentionRows&);
  void (*add_up[kTypes])(const void* sums, size_t parts, size_t stride, size_t n, void* out);
};

struct Kernels {
  const char* isa;

  Kernel rows[kOperations][kTypes];

  // The state of a part, or only m, c and r of it; and once the parts are merged, weights and their
  // logarithms.
  void (*part_state[kTypes])(const Part&, double* state);
  void (*part_sums[kTypes])(const Part&, double* state);
  void (*part_softmax[kTypes])(const Part&);
  void (*part_log_softmax[kTypes])(const Part&);
  void (*merge_states)(double* into, const double* from, double temperature);
  bool (*merged_too_coarse)(const double* state, size_t n, double temperature, bool full);

  // The same for float64. log_z: high and low; false if it could miss its bound.
  void (*merge_exactly)(double* into, const double* from, double temperature);
  bool (*exact_log_z)(const double* state, double temperature, double* log_z);

  // The maximum of a part; what may have weight, and how much that is; the root of all; weights.
  double (*part_peaks[kTypes])(const SparsePart&);
  size_t (*part_pick[kTypes])(const SparsePart&);
  void (*solve_parts)(SparsePart&, size_t count);
  void (*part_weights[kTypes])(const SparsePart&);

  LongPair pairs[kOperations - kJacobianProduct];

  // Rows [first, last) of all groups, with scratch for a row; float32 and float64.
  void (*read_rows[2])(const ReadingRows&, size_t first, size_t last, void* scratch);

  const AttentionKernels* attention;
};

// Room for one peak of each block of entries: no block is smaller than 8.
constexpr size_t peaks_bytes(size_t n) { return (n / 8 + 1) * 8; }

// How much scratch a block needs: a copy of a row, and its exponentials, or what was picked from it
// and its peaks.
constexpr size_t scratch_bytes(Type type, size_t n) {
  return (n + 64) * (kTypeSize[type] + 8) + peaks_bytes(n);
}

extern const Kernels baseline_kernels;  // what every processor of this architecture runs
extern const AttentionKernels baseline_attention;
#ifdef SOFTSCOPE_AVX2
extern const Kernels avx2_kernels;
extern const AttentionKernels avx2_attention;
#endif

}  // namespace softscope
