// The table of kernels that each instruction set fills: plain functions, no Python, no exceptions,
// no allocation.
#pragma once

#include <cstddef>

#include "attention/problem.h"
#include "entmax/long_row.h"
#include "rows/block.h"
#include "rows/classes.h"
#include "rows/long_row.h"
#include "rows/state.h"

namespace softscope {

// One function for each type of arrays.
template <class Function>
struct PerType {
  Function float16, bfloat16, float32, float64;

  constexpr Function operator[](Type type) const {
    return type == kFloat16    ? float16
           : type == kBFloat16 ? bfloat16
           : type == kFloat32  ? float32
                               : float64;
  }
};

using Kernel = void (*)(const Block&);

// A row that several threads share: the state of each part (`sums`: only m, c and r of it), which
// merge, and then the map of each part.
struct LongRowKernels {
  PerType<void (*)(const LongRowPart&, PreciseState&)> state, sums;
  PerType<void (*)(const LongRowPart&)> softmax, log_softmax;

  // For float32 and narrower.
  void (*merge)(PreciseState& into, const PreciseState& from, double temperature);
  bool (*too_coarse)(const State& merged, size_t n, double temperature, bool full);

  // For float64. log z goes into `row`; false if it could miss its bound.
  void (*merge_precisely)(PreciseState& into, const PreciseState& from, double temperature);
  bool (*precise_log_z)(const PreciseState& merged, LongRowPart& row);
};

// The same for backward operations.
struct LongBackwardKernels {
  PerType<void (*)(const TwoInputPart&, BackwardSums&)> sums;
  void (*merge)(BackwardSums& into, const BackwardSums& from);
  PerType<void (*)(const TwoInputPart&, const BackwardSums&)> map;
};

// The same for entmax: the maximum of each part, the entries of each that may have weight (returns
// how many), the root of all `count` of them together, and the weights.
struct LongEntmaxKernels {
  PerType<double (*)(const EntmaxPart&)> peaks;
  PerType<size_t (*)(const EntmaxPart&)> pick;
  void (*solve)(EntmaxPart& row, size_t count);
  PerType<void (*)(const EntmaxPart&)> weights;
};

// Cross-entropy: the losses of a block, or of long rows from their states; what stands at the
// targets of a gradient; and single numbers in the type of an array.
struct CrossEntropyKernels {
  PerType<Kernel> losses, at_targets;
  PerType<void (*)(const Block&, const State*)> of_states;
  PerType<double (*)(const void*)> read;
  PerType<void (*)(double, void*)> write;
};

// In a unit of their own, because they take as long to compile as all the others together.
struct AttentionKernels {
  size_t width;  // of a row of sums, in entries: a multiple of it, two vectors of floats
  PerType<void (*)(const Attention&, const AttentionTask&)> forward;
  PerType<void (*)(const Attention&, const AttentionTask&, const KeyParts&)> merge_parts;
  PerType<void (*)(const AttentionBackward&, const AttentionTask&)> backward;
  PerType<void (*)(GradientParts, void* out)> add_up;
  PerType<void (*)(const AttentionReading&, const AttentionTask&)> read_rows;
  PerType<void (*)(const Attention&, const AttentionTask&)> sparse_forward;
  PerType<void (*)(const AttentionBackward&, const AttentionTask&)> sparse_backward;
};

struct Kernels {
  const char* isa;
  PerType<Kernel> rows[kOperations];
  LongRowKernels long_row;
  LongEntmaxKernels long_entmax;
  LongBackwardKernels long_backward[kOperations - kFirstBackward];
  CrossEntropyKernels cross_entropy;

  const AttentionKernels* attention;
};

extern const Kernels baseline_kernels;  // runs on every processor of this architecture
extern const AttentionKernels baseline_attention;
#ifdef SOFTSCOPE_AVX2
extern const Kernels avx2_kernels;
extern const AttentionKernels avx2_attention;
extern const Kernels avx512_kernels;
extern const AttentionKernels avx512_attention;
#endif

}  // namespace softscope
