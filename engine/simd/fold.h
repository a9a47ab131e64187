// Folds each of N vectors into one number, all at once: lane r of the result comes from vector r.
#pragma once

#include "simd/transpose.h"

namespace softscope {
namespace {

// Half the lanes of a beside half the lanes of b. Combining the even half with the odd half then
// halves both vectors. First neighbours within chunks of 128 bits, then (Chunk = 0) the two halves,
// and of four chunks last (Chunk = −c) neighbouring chunks of c lanes: in this order each shuffle
// is one instruction.
template <class C, int N, int Chunk, bool Odd>
SOFTSCOPE_INLINE Vec<C, N> halves(Vec<C, N> a, Vec<C, N> b) {
  using I = typename IndexOf<C>::type;
  Vec<I, N> from;
  for (int i = 0; i < N; ++i) {
    if constexpr (Chunk < 0) {  // of each, every second chunk
      constexpr int kLanes = -Chunk;
      const int chunk = i / kLanes, each = N / kLanes / 2;
      from[i] = static_cast<I>((chunk >= each ? N : 0) + (2 * (chunk % each) + Odd) * kLanes +
                               i % kLanes);
    } else if constexpr (Chunk != 0) {
      const int within = i % Chunk, of_b = within >= Chunk / 2 ? N : 0;
      from[i] = static_cast<I>(of_b + i - within + 2 * (within % (Chunk / 2)) + Odd);
    } else {  // the lower or the upper half of each
      from[i] = static_cast<I>((i >= N / 2 ? N : 0) + i % (N / 2) + (Odd ? N / 2 : 0));
    }
  }
  return __builtin_shuffle(a, b, from);
}

template <class C, int N, class Combine>
SOFTSCOPE_INLINE Vec<C, N> fold(const Vec<C, N> (&rows)[N], Combine combine) {
  constexpr int kPerChunk = 16 / sizeof(C) < N ? 16 / sizeof(C) : N;
  Vec<C, N> v[N];
  for (int i = 0; i < N; ++i) v[i] = rows[i];
  int count = N;
  for (int width = kPerChunk; width > 1; width /= 2, count /= 2) {
    for (int i = 0; i < count / 2; ++i) {
      v[i] = combine(halves<C, N, kPerChunk, false>(v[2 * i], v[2 * i + 1]),
                     halves<C, N, kPerChunk, true>(v[2 * i], v[2 * i + 1]));
    }
  }
  static_assert(N <= 4 * kPerChunk);
  if constexpr (N > kPerChunk) {
    for (int i = 0; i < count / 2; ++i) {
      v[i] = combine(halves<C, N, 0, false>(v[2 * i], v[2 * i + 1]),
                     halves<C, N, 0, true>(v[2 * i], v[2 * i + 1]));
    }
  }
  if constexpr (N > 2 * kPerChunk) {
    v[0] = combine(halves<C, N, -kPerChunk, false>(v[0], v[1]),
                   halves<C, N, -kPerChunk, true>(v[0], v[1]));
  }
  return v[0];
}

}  // namespace
}  // namespace softscope
