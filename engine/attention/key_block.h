// A block of keys, and which of them a row sees.
#pragma once

#include "attention/problem.h"
#include "simd/vec.h"

namespace softscope {
namespace {

// Keys are taken a block at a time; within one, they count from its first.
struct KeyBlock {
  size_t first, count;
};

SOFTSCOPE_INLINE KeyBlock block_at(size_t first, size_t most, const Attention& a) {
  return {.first = first, .count = a.m - first < most ? a.m - first : most};
}

SOFTSCOPE_INLINE bool empty(KeyRange keys) { return keys.begin >= keys.end; }

// The keys of a block that lie in `keys`, which counts from the first of all.
SOFTSCOPE_INLINE KeyRange within(KeyBlock block, KeyRange keys) {
  const auto clip = [&](size_t key) __attribute__((always_inline)) {
    if (key <= block.first) return size_t{0};
    return key - block.first < block.count ? key - block.first : block.count;
  };
  return {.begin = clip(keys.begin), .end = clip(keys.end)};
}

// The smallest range that contains both.
SOFTSCOPE_INLINE void widen(KeyRange& keys, KeyRange by) {
  if (empty(by)) return;
  keys.begin = by.begin < keys.begin ? by.begin : keys.begin;
  keys.end = by.end > keys.end ? by.end : keys.end;
}

// x ← −inf for the computed keys that are not visible.
template <class C>
SOFTSCOPE_INLINE void hide(C* x, KeyRange computed, KeyRange visible) {
  for (size_t j = computed.begin; j < visible.begin && j < computed.end; ++j) x[j] = -kInfinity<C>;
  for (size_t j = visible.end > computed.begin ? visible.end : computed.begin; j < computed.end;
       ++j) {
    x[j] = -kInfinity<C>;
  }
}

constexpr size_t round_up(size_t n, size_t by) { return (n + by - 1) / by * by; }
constexpr size_t round_down(size_t n, size_t by) { return n / by * by; }

}  // namespace
}  // namespace softscope
