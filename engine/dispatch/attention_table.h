// The table of attention's kernels, for one instruction set.
#pragma once

#include "attention/backward.h"
#include "attention/forward.h"
#include "attention/read_rows.h"
#include "attention/sparse_backward.h"
#include "attention/sparse_forward.h"
#include "dispatch/per_type.h"

namespace softscope {
namespace {

// The output, the statistics, or both: whatever is wanted.
template <class S, int N>
void attend(const Attention& a, const AttentionTask& task) {
  if (a.out.data == nullptr) {
    Forward<S, N, false, true>(a, task).run();
  } else if (!a.statistics) {
    Forward<S, N, true, false>(a, task).run();
  } else {
    Forward<S, N, true, true>(a, task).run();
  }
}

template <class S, int N>
void attend_backward(const AttentionBackward& b, const AttentionTask& task) {
  Backward<S, N>(b, task).run();
}

template <class S, int N>
void merge_parts(const Attention& a, const AttentionTask& task, const KeyParts& parts) {
  const bool output = a.out.data != nullptr;
  (output ? merge_key_parts<S, N, true> : merge_key_parts<S, N, false>)(a, task, parts);
}

template <class S, int N>
void read_rows(const AttentionReading& r, const AttentionTask& task) {
  ReadRows<S, N>(r, task).run();
}

template <class S, int N>
void attend_sparsely(const Attention& a, const AttentionTask& task) {
  SparseForward<S, N>(a, task).run();
}

template <class S, int N>
void attend_sparsely_backward(const AttentionBackward& b, const AttentionTask& task) {
  SparseBackward<S, N>(b, task).run();
}

// With F lanes of float32 and D of float64.
template <int F, int D>
constexpr AttentionKernels attention_kernels() {
  return {
      .width = 2 * F,
      .forward = per_type<F, D>([]<class S, int N>() { return attend<S, N>; }),
      .merge_parts = per_type<F, D>([]<class S, int N>() { return merge_parts<S, N>; }),
      .backward = per_type<F, D>([]<class S, int N>() { return attend_backward<S, N>; }),
      .add_up = per_type<F, D>([]<class S, int N>() { return add_up_gradients<S, N>; }),
      .read_rows = per_type<F, D>([]<class S, int N>() { return read_rows<S, N>; }),
      .sparse_forward = per_type<F, D>([]<class S, int N>() { return attend_sparsely<S, N>; }),
      .sparse_backward =
          per_type<F, D>([]<class S, int N>() { return attend_sparsely_backward<S, N>; }),
  };
}

}  // namespace
}  // namespace softscope
