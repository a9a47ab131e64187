// From scores scale·q·k to logits: the soft cap, and what a mask adds or hides.
#pragma once

#include "attention/problem.h"
#include "simd/exp.h"
#include "simd/storage.h"

namespace softscope {
namespace {

// exp(y) − 1 for |y| ≤ 0.35, by its series.
template <int N>
SOFTSCOPE_INLINE Vec<double, N> small_expm1(Vec<double, N> y) {
  return y + y * y * DoubleExp::tail(y);
}
template <int N>
SOFTSCOPE_INLINE Vec<float, N> small_expm1(Vec<float, N> y) {
  Vec<float, N> q = y * 0x1.a01a02p-13f + 0x1.6c16c2p-10f;
  q = q * y + 0x1.111112p-7f;
  q = q * y + 0x1.555556p-5f;
  q = q * y + 0x1.555556p-3f;
  q = q * y + 0.5f;
  return y + y * y * q;
}

// tanh within a few ulp, from e = exp(−2|x|); where 1 − e would cancel, from the series.
template <class C, int N>
SOFTSCOPE_INLINE Vec<C, N> tanh(Vec<C, N> x) {
  const Vec<C, N> y = x < C(0) ? x * C(2) : x * C(-2);
  const Vec<C, N> large = C(1) - exp_nonpositive<N>(y);
  const Vec<C, N> small = -small_expm1<N>(y > C(-0.35) ? y : Vec<C, N>{});
  const Vec<C, N> f = y > C(-0.35) ? small : large;
  const Vec<C, N> t = f / (C(2) - f);
  return x < C(0) ? -t : t;
}

// c·tanh(x/c), and its derivative 1 − tanh² = 4e/(1 + e)², which so does not cancel.
template <class C, int N>
SOFTSCOPE_INLINE Vec<C, N> capped(Vec<C, N> x, C cap, Vec<C, N>& slope) {
  const Vec<C, N> s = x / cap;
  const Vec<C, N> e = exp_nonpositive<N>(s < C(0) ? s * C(2) : s * C(-2));
  slope = C(4) * e / ((C(1) + e) * (C(1) + e));
  return cap * tanh<C, N>(s);
}

// What the mask adds to `count` logits from key `first` on; −inf: hidden. An entry at or below half
// the lowest finite number of its type hides, too.
template <class M, class C>
void read_additive(const M* mask, ptrdiff_t step, size_t count, C* bias) {
  using Wide = Compute<M>;
  constexpr Wide lowest = __is_same(M, Half)     ? Wide(-65504.0)
                          : __is_same(M, Brain)  ? Wide(-0x1.fep127)
                          : __is_same(M, double) ? Wide(-0x1.fffffffffffffp1023)
                                                 : Wide(-0x1.fffffep127);
  const auto read = [=](Wide b) { return b <= lowest / 2 ? -kInfinity<C> : static_cast<C>(b); };
  if constexpr (sizeof(M) == sizeof(Wide)) {
    if (step == 1) {  // said apart, for the compiler to see
      for (size_t j = 0; j < count; ++j) bias[j] = read(mask[j]);
      return;
    }
  }
  for (size_t j = 0; j < count; ++j) {
    const Wide b = load_first<M, 2>(mask + static_cast<ptrdiff_t>(j) * step, 1, 0)[0];
    bias[j] = read(b);
  }
}

template <class C>
void read_mask(const Attention& a, size_t head, size_t i, size_t first, size_t count, C* bias) {
  const ptrdiff_t at = static_cast<ptrdiff_t>(head) * a.mask_head +
                       static_cast<ptrdiff_t>(i) * a.mask_row +
                       static_cast<ptrdiff_t>(first) * a.mask_key;
  const auto whole = [&]<class M>(const M* mask) {
    read_additive<M, C>(mask + at, a.mask_key, count, bias);
  };
  switch (a.mask_type) {
    case kMaskFloat16:
      return whole(static_cast<const Half*>(a.mask));
    case kMaskBFloat16:
      return whole(static_cast<const Brain*>(a.mask));
    case kMaskFloat32:
      return whole(static_cast<const float*>(a.mask));
    case kMaskFloat64:
      return whole(static_cast<const double*>(a.mask));
    case kMaskBool: {
      const auto* shown = static_cast<const uint8_t*>(a.mask) + at;
      if (a.mask_key == 1) {  // said apart, for the compiler to see
        for (size_t j = 0; j < count; ++j) bias[j] = shown[j] != 0 ? C(0) : -kInfinity<C>;
        return;
      }
      for (size_t j = 0; j < count; ++j) {
        bias[j] = shown[static_cast<ptrdiff_t>(j) * a.mask_key] != 0 ? C(0) : -kInfinity<C>;
      }
      return;
    }
    case kNoMask:
      for (size_t j = 0; j < count; ++j) bias[j] = 0;
  }
}

// x[begin, end) from scores to logits, where the soft cap c or a mask changes them; its maximum,
// and that of the visible scores. A hidden key's NaN stays where it is.
template <class C, int N>
C shaped(C* x, size_t begin, size_t end, const C* bias, C cap, C& highest) {
  Vec<C, N> m = fill<C, N>(-kInfinity<C>), top = m;
  for (size_t i = begin; i < end; i += N) {
    const Vec<C, N> raw = load_raw<C, N>(x + i), add = load_raw<C, N>(bias + i);
    const Vec<C, N> y = (cap == 0 ? raw : cap * tanh<C, N>(raw / cap)) + add;
    const Vec<C, N> hidden = fill<C, N>(-kInfinity<C>);
    const Vec<C, N> logit = add == hidden ? hidden : y;
    store_raw<C, N>(x + i, logit);
    m = max(logit, m);
    top = max(logit == hidden ? hidden : raw, top);
  }
  highest = max_lane<C, N>(top);
  return max_lane<C, N>(m);
}

}  // namespace
}  // namespace softscope
