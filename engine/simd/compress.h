// Picks the lanes above a floor, in order.
#pragma once

#include "simd/vec.h"

namespace softscope {
namespace {

// Writes the lanes of v above `floor` one after the other, and returns how many there are. Writes a
// whole vector: there must be room.
template <class C, int N>
SOFTSCOPE_INLINE size_t store_above(C* to, Vec<C, N> v, C floor) {
#if defined(__AVX512F__) && !defined(__clang__)
  constexpr int kGreater = 14;  // false for NaN
  if constexpr (__is_same(C, float) && N == 16) {
    const auto above = static_cast<uint16_t>(__builtin_ia32_cmpps512_mask(
        v, fill<float, 16>(floor), kGreater, kAllLanes<uint16_t>, kAsSet));
    store_raw<float, 16>(to, __builtin_ia32_compresssf512_mask(v, v, above));
    return static_cast<size_t>(__builtin_popcount(above));
  }
  if constexpr (__is_same(C, double) && N == 8) {
    const auto above = static_cast<uint8_t>(__builtin_ia32_cmppd512_mask(
        v, fill<double, 8>(floor), kGreater, kAllLanes<uint8_t>, kAsSet));
    store_raw<double, 8>(to, __builtin_ia32_compressdf512_mask(v, v, above));
    return static_cast<size_t>(__builtin_popcount(above));
  }
#endif
  size_t count = 0;
  for (int l = 0; l < N; ++l) {
    to[count] = v[l];
    count += v[l] > floor;
  }
  return count;
}

// The same, and the place of each lane that was written; the first lane is at place `first`.
template <class C, int N>
SOFTSCOPE_INLINE size_t store_places_above(C* to, uint32_t* places, Vec<C, N> v, C floor,
                                           uint32_t first) {
#if defined(__AVX512F__) && !defined(__clang__)
  if constexpr (__is_same(C, float) && N == 16) {
    constexpr int kGreater = 14;
    const auto above = static_cast<uint16_t>(__builtin_ia32_cmpps512_mask(
        v, fill<float, 16>(floor), kGreater, kAllLanes<uint16_t>, kAsSet));
    Vec<int32_t, 16> place;
    for (int l = 0; l < 16; ++l) place[l] = l;
    place += static_cast<int32_t>(first);
    place = __builtin_ia32_compresssi512_mask(place, place, above);
    __builtin_memcpy(places, &place, sizeof place);
    store_raw<float, 16>(to, __builtin_ia32_compresssf512_mask(v, v, above));
    return static_cast<size_t>(__builtin_popcount(above));
  }
#endif
  size_t count = 0;
  for (int l = 0; l < N; ++l) {
    to[count] = v[l];
    places[count] = first + static_cast<uint32_t>(l);
    count += v[l] > floor;
  }
  return count;
}

}  // namespace
}  // namespace softscope
