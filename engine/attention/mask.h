// What a mask adds to logits, and which keys it hides.
#pragma once

#include "attention/key_block.h"
#include "attention/softcap.h"
#include "simd/storage.h"

namespace softscope {
namespace {

// Reads `count` entries of an additive mask; −inf hides a key. So does any entry at or below half
// the lowest finite number of its type.
template <class M, class C>
void read_additive(const M* mask, ptrdiff_t step, size_t count, C* bias) {
  using Wide = Compute<M>;
  constexpr Wide lowest = __is_same(M, Half)     ? Wide(-65504.0)
                          : __is_same(M, Brain)  ? Wide(-0x1.fep127)
                          : __is_same(M, double) ? Wide(-0x1.fffffffffffffp1023)
                                                 : Wide(-0x1.fffffep127);
  const auto read = [=](Wide b) {
    if (b <= lowest / 2) return -kInfinity<C>;
    if constexpr (sizeof(Wide) > sizeof(C)) {
      // Finite, and so shown, also where the type that computes is the narrower one.
      constexpr Wide low = -0x1.fffffep127;
      if (b < low) return static_cast<C>(low);
    }
    return static_cast<C>(b);
  };
  if constexpr (sizeof(M) == sizeof(Wide)) {
    if (step == 1) {  // a separate loop so that the compiler can vectorise it
      for (size_t j = 0; j < count; ++j) bias[j] = read(mask[j]);
      return;
    }
  }
  for (size_t j = 0; j < count; ++j)
    bias[j] = read(load_first<M, 2>(mask + offset(j, step), 1, 0)[0]);
}

template <class C>
void read_boolean(const uint8_t* shown, ptrdiff_t step, size_t count, C* bias) {
  if (step == 1) {  // a separate loop so that the compiler can vectorise it
    for (size_t j = 0; j < count; ++j) bias[j] = shown[j] != 0 ? C(0) : -kInfinity<C>;
    return;
  }
  for (size_t j = 0; j < count; ++j) bias[j] = shown[offset(j, step)] != 0 ? C(0) : -kInfinity<C>;
}

// What the mask adds to the logits of query i of a head, for the keys of a block; −inf: hidden.
template <class C>
void read_mask(const Mask& mask, size_t head, size_t i, KeyBlock block, C* bias) {
  const ptrdiff_t at =
      offset(head, mask.head) + offset(i, mask.row) + offset(block.first, mask.key);
  const auto additive = [&]<class M>(const M* data) {
    read_additive<M, C>(data + at, mask.key, block.count, bias);
  };
  switch (mask.type) {
    case kMaskFloat16:
      return additive(static_cast<const Half*>(mask.data));
    case kMaskBFloat16:
      return additive(static_cast<const Brain*>(mask.data));
    case kMaskFloat32:
      return additive(static_cast<const float*>(mask.data));
    case kMaskFloat64:
      return additive(static_cast<const double*>(mask.data));
    case kMaskBool:
      return read_boolean(static_cast<const uint8_t*>(mask.data) + at, mask.key, block.count, bias);
    case kNoMask:
      for (size_t j = 0; j < block.count; ++j) bias[j] = 0;
  }
}

// The largest logit, and the largest visible score.
template <class C>
struct Largest {
  C logit, score;
};

// Turns scores into logits where a soft cap (0: none) or a mask changes them. A hidden key's NaN
// does not count.
template <class C, int N>
Largest<C> cap_and_mask(C* x, KeyRange keys, const C* bias, C cap) {
  Vec<C, N> m = fill<C, N>(-kInfinity<C>), top = m;
  for (size_t i = keys.begin; i < keys.end; i += N) {
    const Vec<C, N> raw = load_raw<C, N>(x + i), add = load_raw<C, N>(bias + i);
    const Vec<C, N> y = (cap == 0 ? raw : cap * tanh<C, N>(raw / cap)) + add;
    const Vec<C, N> hidden = fill<C, N>(-kInfinity<C>);
    const Vec<C, N> logit = add == hidden ? hidden : y;
    store_raw<C, N>(x + i, logit);
    m = max(logit, m);
    top = max(logit == hidden ? hidden : raw, top);
  }
  return {.logit = max_lane<C, N>(m), .score = max_lane<C, N>(top)};
}

}  // namespace
}  // namespace softscope
