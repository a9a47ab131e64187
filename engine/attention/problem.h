// Attention of the query heads that share one key head, as plain numbers and addresses. The same
// for every unit; what has a body is in an anonymous namespace, so that no unit runs another's
// copy.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softscope {

// The rows of some heads. Distances count entries; the entries of a row are contiguous.
template <class Data>
struct HeadRows {
  Data* data;
  ptrdiff_t head;  // from one head to the next
  ptrdiff_t row;   // from one row to the next
};

// How a mask lies in memory: additive ones in the types of arrays, boolean ones as bytes.
enum MaskType { kMaskFloat16, kMaskBFloat16, kMaskFloat32, kMaskFloat64, kMaskBool, kNoMask };
constexpr size_t kMaskSize[] = {2, 2, 4, 8, 1, 0};

struct Mask {
  MaskType type;
  const void* data;
  ptrdiff_t head, row, key;  // from one to the next, in entries
};

// What is known of a row in the end: the seven numbers of its State, and its largest visible score
// before cap and mask.
constexpr size_t kAttentionNumbers = 8;

// The same for sparse attention: what `Support` reports, and what gives the weights back in the
// backward pass (see sparse_root.h).
enum SparseNumber {
  kTau,
  kSize,
  kEntropy,
  kCollision,
  kPeak,
  kTrace,
  kMaximum,
  kRoot,
  kLowest,
  kTotal,
  kSparseNumbers
};

struct Attention {
  size_t heads;  // query heads
  size_t n, m;   // queries of each head, and keys
  size_t d, dv;  // entries of a key, and of a value
  HeadRows<const void> q, k;
  HeadRows<const void> v;  // no data if only the statistics are wanted; nor has out, then
  HeadRows<void> out;
  HeadRows<double> state;  // kAttentionNumbers of each row; no data if they are not wanted
  const double* scale;     // of each head
  const double* alpha;  // of each head: sparse attention, with kSparseNumbers in `state`; or null
  const double* sink;   // of each head, or null
  const int64_t* positions;  // of each query
  int64_t left, right;       // a query sees the keys from position − left to position + right
  double softcap;            // 0: none
  Mask mask;
  bool statistics;  // if false, only c, m and r of a state are right, or what gives weights back
};

// The backward pass. It is given the gradient of `out`, `out` itself and the state of every row.
// For dk and dv it leaves sums over the rows of one task, (m, d) and (m, dv) in the type that
// computes, each row rounded up to a multiple of `width`.
struct AttentionBackward {
  Attention forward;
  HeadRows<const void> grad;
  HeadRows<void> dq;
  double* dscale;  // of each row, heads·n of them
  double* dalpha;  // the same for sparse attention, or null if it is not wanted
  void* dk_sum;
  void* dv_sum;
  size_t width;
};

// What a reading has of each row: the kAttentionNumbers of its state, and
//   Σd, Σd²            of its visible logits, d = x − max
//   Σ |score|/|k|      0 without key lengths
//   mean, demand, lowest, expected, supply     of the gradient; 0 without one
// in this order; src/softscope/_backends/reference/row_reading.py defines them.
constexpr size_t kReadingNumbers = kAttentionNumbers + 8;

// The reading of rows. In `forward`, `state` has kReadingNumbers for each row, and `out` no data.
struct AttentionReading {
  Attention forward;
  HeadRows<const void> grad;  // of the output, or no data
  HeadRows<void> weights;     // in the type that computes, or no data if they are not wanted
  const void* key_lengths;    // 1/|k| of each key in the type that computes, or null
};

// Keys [begin, end), of all keys or of a block.
struct KeyRange {
  size_t begin, end;
};

// The keys of a row are summed in parts of this many, and the parts merged in their order. The cuts
// count from the first key, so that nothing else about a call changes how a row's sums are rounded:
// neither how many heads it has, nor which thread takes which part, nor how many keys follow.
constexpr size_t kPartKeys = 1024;

// Rows [first, first + count) of the heads·n query rows, against a range of the keys, which begins
// where a part does.
struct AttentionTask {
  size_t first, count;
  KeyRange keys;
  void* part;  // null, or where to leave what these keys give, part_bytes() for each row
  void* scratch;
  size_t stride = 0;  // bytes from what one part of these keys gives to what the next does
};

// How the keys of a task were cut: into `count` parts, whose results lie `stride` bytes apart.
struct KeyParts {
  size_t count, stride;
};

// Sums of dk or dv from `count` tasks, which lie `stride` entries apart. Each has `rows` rows of n
// entries, `wide` apart.
struct GradientParts {
  const void* sums;
  size_t count, stride;
  size_t rows, n, wide;
};

namespace {

constexpr ptrdiff_t offset(size_t i, ptrdiff_t stride) {
  return static_cast<ptrdiff_t>(i) * stride;
}

template <class T, class Data>
inline T* row_of(const HeadRows<Data>& rows, size_t head, size_t i) {
  return static_cast<T*>(rows.data) + offset(head, rows.head) + offset(i, rows.row);
}

constexpr size_t sum_width(size_t n, size_t width) { return (n + width - 1) / width * width; }

// What a row leaves for a part of the keys: its state, and behind that its output of `computed`
// bytes an entry. As little as possible: of many rows and keys, it is more than the caches hold.
constexpr size_t kPartOutput = 80;
constexpr size_t part_bytes(const Attention& a, size_t computed) {
  return kPartOutput + (a.dv * computed + 15) / 16 * 16;
}

// Scratch for a task of `count` rows: upper bounds that hold for every kernel.
constexpr size_t forward_scratch(const Attention& a, size_t count) {
  return 8 * (300 * (a.d + a.dv + 64) + count * (a.d + 2 * a.dv + 128)) + 4096;
}
constexpr size_t reading_width(size_t m) { return (m + 63) / 64 * 64; }
constexpr size_t reading_scratch(const AttentionReading& r, size_t count) {
  const Attention& a = r.forward;
  const size_t rows = count * (r.grad.data == nullptr ? 1 : 2) + 4;
  return 8 * (256 * (a.d + a.dv) + rows * reading_width(a.m) + count * (a.d + a.dv + 32)) + 8192;
}
constexpr size_t backward_scratch(const Attention& a, size_t count) {
  return 8 * (150 * (3 * a.d + 2 * a.dv + 256) + count * (2 * a.d + a.dv + 128)) + 8192;
}

// Sparse attention needs the whole of a row: its scores stay in scratch, of as many rows at a time
// as fit a part of the second-level cache. So do the packed keys and values of a task, O(m).
constexpr size_t kSparseTile = 32;  // keys that are skipped together
constexpr size_t sparse_width(size_t m) { return (m + 255) / 256 * 256; }
constexpr size_t sparse_group(size_t m, size_t bytes) {
  constexpr size_t kBytes = size_t{3} << 17, kMost = 48, kLeast = 6;
  const size_t rows = kBytes / (sparse_width(m) * bytes) / 6 * 6;
  return rows < kLeast ? kLeast : rows > kMost ? kMost : rows;
}
constexpr size_t sparse_scratch(const Attention& a, size_t count, bool backward) {
  const size_t width = sparse_width(a.m), d = a.d + 64, dv = a.dv + 64;
  const size_t packed = width * (backward ? 2 * d + dv : d + dv);
  const size_t rows = sparse_group(a.m, 4) * width * (backward ? (a.softcap == 0 ? 2 : 3) : 1);
  return 8 * (packed + rows + 24 * width + (count + 48) * (2 * d + 2 * dv + 64)) + 8192;
}

}  // namespace

}  // namespace softscope
