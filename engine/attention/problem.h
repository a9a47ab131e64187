// Attention of the query heads that share one key head, as plain numbers and addresses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softscope {

// How a mask lies in memory: additive ones in the types that arrays have, boolean ones as bytes.
enum MaskType { kMaskFloat16, kMaskBFloat16, kMaskFloat32, kMaskFloat64, kMaskBool, kNoMask };
constexpr size_t kMaskSize[] = {2, 2, 4, 8, 1, 0};

// What is known of a row in the end: n, c, m, r, u, t, w of its keys, and the largest visible score
// before cap and mask.
constexpr size_t kAttentionNumbers = 8;

constexpr ptrdiff_t offset(size_t i, ptrdiff_t stride) {
  return static_cast<ptrdiff_t>(i) * stride;
}

// Distances count entries; the last axis of q, k, v and out has none between its entries.
struct Attention {
  size_t heads, n, m, d, dv;
  const void* q;
  const void* k;
  const void* v;  // null where only the statistics are wanted, and so is out
  void* out;
  ptrdiff_t q_head, q_row, k_row, v_row, out_head, out_row;
  const double* scale;       // of each head
  const double* sink;        // of each head, or null
  const int64_t* positions;  // of each query
  int64_t left, right;       // a query sees the keys from position − left to position + right
  double softcap;            // 0: none
  MaskType mask_type;
  const void* mask;
  ptrdiff_t mask_head, mask_row, mask_key;
  double* state;  // kAttentionNumbers for each row, or null where they are not wanted
  ptrdiff_t state_head, state_row;
  bool statistics;  // else only c, m and r of a state are right
};

// The way back, from the gradient of `out`, which is given, as is the state of every row. Sums of
// dk and dv over the rows of a task, (m, d) and (m, dv) in the type that computes, are left in
// dk_sum and dv_sum, each row rounded up to `kSumWidth`.
struct AttentionBack {
  Attention forward;
  const void* grad;
  ptrdiff_t grad_head, grad_row;
  void* dq;
  ptrdiff_t dq_head, dq_row;
  double* dscale;  // of each row, heads·n of them
  void* dk_sum;
  void* dv_sum;
};
constexpr size_t kSumWidth = 16;
constexpr size_t sum_width(size_t n) { return (n + kSumWidth - 1) / kSumWidth * kSumWidth; }

// Rows [first, first + count) of the heads·n query rows, against the keys [from, to). With `part`,
// what these keys give is left there for merge_parts, part_bytes(a) for each row.
struct AttentionRows {
  size_t first, count;
  size_t from, to;
  void* part;
  void* scratch;
};
constexpr size_t part_bytes(const Attention& a) { return 128 + 8 * (a.dv + 16); }

// More than any kernel needs for these.
constexpr size_t attention_scratch(const Attention& a, size_t count) {
  return 8 * (300 * (a.d + a.dv + 64) + count * (a.d + a.dv + 64)) + 4096;
}
constexpr size_t attention_back_scratch(const Attention& a, size_t count) {
  return 8 * (150 * (3 * a.d + 2 * a.dv + 256) + count * (2 * a.d + a.dv + 80)) + 8192;
}

}  // namespace softscope
