// Vectors of N lanes on top of the compiler's vector extensions, which bring + - * / and
// comparisons.
//
// Not intrinsics: this way one source serves every processor, and the compiler splits what it
// cannot map to one instruction. Not a library: we need a dozen operations.
//
// This header is compiled once per instruction set. So everything is in an anonymous namespace, and
// nothing calls an inline function of the standard library: the linker keeps only one copy of
// those, and if that is the AVX2 one, an older processor dies in it.
#pragma once

#include <cstddef>
#include <cstdint>

#define SOFTSCOPE_INLINE [[gnu::always_inline]] inline

namespace softscope {
namespace {

template <class T, int N>
struct VecOf {
  typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
template <class T, int N>
using Vec = typename VecOf<T, N>::type;

template <class T>
constexpr T kInfinity = static_cast<T>(__builtin_inf());

// Whether a·b + c is one instruction, with one rounding, on this level.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
constexpr bool kFusedMultiplyAdd = true;
#else
constexpr bool kFusedMultiplyAdd = false;
#endif

template <class T, int N>
SOFTSCOPE_INLINE Vec<T, N> fill(T value) {
  return value - Vec<T, N>{};  // minus: −0 − 0 stays −0, and the compiler sees a broadcast
}

// Rows start anywhere, so no load assumes alignment; on aligned data it costs nothing.
template <class T, int N>
SOFTSCOPE_INLINE Vec<T, N> load_raw(const T* from) {
  Vec<T, N> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class T, int N>
SOFTSCOPE_INLINE void store_raw(T* to, Vec<T, N> v) {
  __builtin_memcpy(to, &v, sizeof v);
}

#if defined(__AVX512F__)
template <class Mask>
constexpr Mask kAllLanes = static_cast<Mask>(-1);
constexpr int kAsSet = 4;  // rounds as the processor is set to
#endif

// The larger of each lane; b where either is NaN. x86 has one instruction for exactly that, but
// GCC 12 turns the comparison into two. NEON has none: its fmax returns NaN where either is.
template <class V>
SOFTSCOPE_INLINE V max(V a, V b) {
#if defined(__AVX512F__) && !defined(__clang__)
  // The masked forms with a pass-through: the intrinsics of GCC 12 read an undefined register.
  if constexpr (__is_same(V, Vec<float, 16>)) {
    return __builtin_ia32_maxps512_mask(a, b, a, kAllLanes<uint16_t>, kAsSet);
  }
  if constexpr (__is_same(V, Vec<double, 8>)) {
    return __builtin_ia32_maxpd512_mask(a, b, a, kAllLanes<uint8_t>, kAsSet);
  }
#endif
#if defined(__AVX__) && !defined(__clang__)
  if constexpr (__is_same(V, Vec<float, 8>)) return __builtin_ia32_maxps256(a, b);
  if constexpr (__is_same(V, Vec<double, 4>)) return __builtin_ia32_maxpd256(a, b);
#endif
#if defined(__SSE2__) && !defined(__clang__)
  if constexpr (__is_same(V, Vec<float, 4>)) return __builtin_ia32_maxps(a, b);
  if constexpr (__is_same(V, Vec<double, 2>)) return __builtin_ia32_maxpd(a, b);
#endif
  return a > b ? a : b;
}

// The two halves, copied as bytes: lane by lane, GCC 12 needs eight instructions.
template <class T, int N>
SOFTSCOPE_INLINE Vec<T, N / 2> lower_half(Vec<T, N> v) {
  Vec<T, N / 2> half;
  __builtin_memcpy(&half, &v, sizeof half);
  return half;
}
template <class T, int N>
SOFTSCOPE_INLINE Vec<T, N / 2> upper_half(Vec<T, N> v) {
#if defined(__AVX512DQ__) && !defined(__clang__)
  if constexpr (__is_same(Vec<T, N>, Vec<float, 16>)) {
    return __builtin_ia32_extractf32x8_mask(v, 1, Vec<float, 8>{}, kAllLanes<uint8_t>);
  }
  if constexpr (__is_same(Vec<T, N>, Vec<double, 8>)) {
    return __builtin_ia32_extractf64x4_mask(v, 1, Vec<double, 4>{}, kAllLanes<uint8_t>);
  }
#endif
  Vec<T, N / 2> half;
  __builtin_memcpy(&half, reinterpret_cast<const char*>(&v) + sizeof half, sizeof half);
  return half;
}

template <class T, int N>
SOFTSCOPE_INLINE Vec<T, N> joined(Vec<T, N / 2> lower, Vec<T, N / 2> upper) {
#if defined(__AVX512DQ__) && !defined(__clang__)
  if constexpr (__is_same(Vec<T, N>, Vec<float, 16>)) {
    const Vec<float, 16> low = __builtin_ia32_ps512_256ps(lower);
    return __builtin_ia32_insertf32x8_mask(low, upper, 1, low, kAllLanes<uint16_t>);
  }
#endif
#if defined(__AVX__) && !defined(__clang__)
  if constexpr (__is_same(Vec<T, N>, Vec<float, 8>)) {
    return __builtin_ia32_vinsertf128_ps256(__builtin_ia32_ps256_ps(lower), upper, 1);
  }
#endif
  Vec<T, N> v;
  for (int i = 0; i < N / 2; ++i) {
    v[i] = lower[i];
    v[i + N / 2] = upper[i];
  }
  return v;
}

// Between float32 and float64. AVX has one instruction for each; GCC 12 does not find it.
template <int N>
SOFTSCOPE_INLINE Vec<double, N> widened(Vec<float, N> v) {
#if defined(__AVX512F__) && !defined(__clang__)
  if constexpr (N == 8) {
    return __builtin_ia32_cvtps2pd512_mask(v, Vec<double, 8>{}, kAllLanes<uint8_t>, kAsSet);
  }
#endif
#if defined(__AVX__) && !defined(__clang__)
  if constexpr (N == 4) return __builtin_ia32_cvtps2pd256(v);
#endif
  return __builtin_convertvector(v, Vec<double, N>);
}
template <int N>
SOFTSCOPE_INLINE Vec<float, N> narrowed(Vec<double, N> v) {
#if defined(__AVX512F__) && !defined(__clang__)
  if constexpr (N == 8) {
    return __builtin_ia32_cvtpd2ps512_mask(v, Vec<float, 8>{}, kAllLanes<uint8_t>, kAsSet);
  }
#endif
#if defined(__AVX__) && !defined(__clang__)
  if constexpr (N == 4) return __builtin_ia32_cvtpd2ps256(v);
#endif
  return __builtin_convertvector(v, Vec<float, N>);
}

// a·b + c with one rounding, for float64 numbers or vectors. Only where kFusedMultiplyAdd:
// elsewhere this would be a slow library call.
template <class V>
SOFTSCOPE_INLINE V fused(V a, V b, V c) {
  if constexpr (__is_same(V, double)) {
    return __builtin_fma(a, b, c);
  } else {
#if defined(__AVX512F__) && !defined(__clang__)
    if constexpr (__is_same(V, Vec<double, 8>)) {
      return __builtin_ia32_vfmaddpd512_mask(a, b, c, kAllLanes<uint8_t>, kAsSet);
    }
#endif
#if defined(__FMA__) && !defined(__clang__)
    if constexpr (__is_same(V, Vec<double, 4>)) return __builtin_ia32_vfmaddpd256(a, b, c);
    if constexpr (__is_same(V, Vec<double, 2>)) return __builtin_ia32_vfmaddpd(a, b, c);
#endif
#if defined(__aarch64__) && !defined(__clang__)
    if constexpr (__is_same(V, Vec<double, 2>)) return __builtin_aarch64_fmav2df(a, b, c);
#endif
    for (size_t i = 0; i < sizeof(V) / sizeof(double); ++i) c[i] = __builtin_fma(a[i], b[i], c[i]);
    return c;
  }
}

template <class T, int N>
SOFTSCOPE_INLINE T max_lane(Vec<T, N> v) {
  if constexpr (N > 2) {
    return max_lane<T, N / 2>(max(lower_half<T, N>(v), upper_half<T, N>(v)));
  } else {
    return v[0] > v[1] ? v[0] : v[1];
  }
}

template <class T, int N>
SOFTSCOPE_INLINE T sum_lanes(Vec<T, N> v) {
  if constexpr (N > 2) {
    return sum_lanes<T, N / 2>(lower_half<T, N>(v) + upper_half<T, N>(v));
  } else {
    return v[0] + v[1];
  }
}

}  // namespace
}  // namespace softscope
