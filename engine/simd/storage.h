// Loading and storing the four types of arrays. float16 and bfloat16 are computed in float32.
#pragma once

#include "simd/vec.h"

namespace softscope {

// float16 and bfloat16: two distinct types, so that a template argument can select the kernel.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

namespace {

template <class S>
struct Computed {
  using type = float;
};
template <>
struct Computed<double> {
  using type = double;
};
template <class S>
using Compute = typename Computed<S>::type;

template <int N>
SOFTSCOPE_INLINE Vec<uint32_t, N> widen(Vec<uint16_t, N> v) {
  return __builtin_convertvector(v, Vec<uint32_t, N>);
}

// float32 to bfloat16, rounded to nearest even. A NaN must not round to infinity.
template <int N>
SOFTSCOPE_INLINE Vec<uint16_t, N> to_brain(Vec<float, N> v) {
  const Vec<uint32_t, N> bits = (Vec<uint32_t, N>)v;
  const Vec<uint32_t, N> rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Vec<uint32_t, N> quiet = (bits >> 16) | 0x40u;
  return __builtin_convertvector(v == v ? rounded : quiet, Vec<uint16_t, N>);
}

// float16 to float32 and back, by one instruction where the processor has it.
template <int N>
SOFTSCOPE_INLINE Vec<float, N> from_half(Vec<uint16_t, N> h) {
#if defined(__AVX512F__) && !defined(__clang__)
  if constexpr (N == 16) {
    typedef short Shorts __attribute__((vector_size(32)));
    return __builtin_ia32_vcvtph2ps512_mask((Shorts)h, Vec<float, 16>{}, kAllLanes<uint16_t>,
                                            kAsSet);
  }
#endif
#if defined(__F16C__)
  if constexpr (N == 8) {
    typedef short Shorts __attribute__((vector_size(16)));
    return (Vec<float, N>)__builtin_ia32_vcvtph2ps256((Shorts)h);
  }
#endif
#if defined(__aarch64__) && !defined(__clang__)
  if constexpr (N == 4) {
    typedef __fp16 Halves __attribute__((vector_size(8)));
    return __builtin_aarch64_float_extend_lo_v4sf((Halves)h);
  }
#endif
  const Vec<uint32_t, N> wide = widen<N>(h);
  const Vec<uint32_t, N> sign = (wide & 0x8000u) << 16;
  // Shift exponent and mantissa into place, then correct the bias by multiplying by 2^112: unlike
  // an addition to the exponent, that is right for denormals too. Infinity and NaN need the full
  // exponent.
  const Vec<uint32_t, N> magnitude = (wide & 0x7fffu) << 13;
  const Vec<float, N> scaled = (Vec<float, N>)magnitude * 0x1p112f;
  const Vec<uint32_t, N> special = magnitude | 0x7f800000u;
  const Vec<uint32_t, N> bits = (wide & 0x7fffu) >= 0x7c00u ? special : (Vec<uint32_t, N>)scaled;
  return (Vec<float, N>)(bits | sign);
}

template <int N>
SOFTSCOPE_INLINE Vec<uint16_t, N> to_half(Vec<float, N> v) {
#if defined(__AVX512F__) && !defined(__clang__)
  if constexpr (N == 16) {
    typedef short Shorts __attribute__((vector_size(32)));
    return (Vec<uint16_t, N>)__builtin_ia32_vcvtps2ph512_mask(v, 0, Shorts{}, kAllLanes<uint16_t>);
  }
#endif
#if defined(__F16C__)
  if constexpr (N == 8) {
    typedef float Floats __attribute__((vector_size(32)));
    return (Vec<uint16_t, N>)__builtin_ia32_vcvtps2ph256((Floats)v, 0);
  }
#endif
#if defined(__aarch64__) && !defined(__clang__)
  if constexpr (N == 4) return (Vec<uint16_t, N>)__builtin_aarch64_float_truncate_lo_v4hf(v);
#endif
  const Vec<uint32_t, N> bits = (Vec<uint32_t, N>)v;
  const Vec<uint32_t, N> sign = (bits >> 16) & 0x8000u;
  const Vec<uint32_t, N> size = bits & 0x7fffffffu;
  // Normal results round to nearest even at bit 13. For denormal ones, adding 0.5 aligns the last
  // bit, and the addition itself rounds.
  const Vec<uint32_t, N> normal = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
  const Vec<float, N> aligned = (Vec<float, N>)size + 0.5f;
  const Vec<uint32_t, N> tiny = (Vec<uint32_t, N>)aligned - 0x3f000000u;
  Vec<uint32_t, N> result = size < 0x38800000u ? tiny : normal;
  result = size >= 0x477ff000u ? fill<uint32_t, N>(0x7c00u) : result;
  result = size > 0x7f800000u ? fill<uint32_t, N>(0x7e00u) : result;
  return __builtin_convertvector(result | sign, Vec<uint16_t, N>);
}

template <class S, int N>
SOFTSCOPE_INLINE Vec<Compute<S>, N> load(const S* from) {
  if constexpr (sizeof(S) != 2) {
    return load_raw<S, N>(from);
  } else {
    Vec<uint16_t, N> raw;
    __builtin_memcpy(&raw, from, sizeof raw);
    if constexpr (__is_same(S, Half)) {
      return from_half<N>(raw);
    } else {
      return (Vec<float, N>)(widen<N>(raw) << 16);
    }
  }
}

template <class S, int N>
SOFTSCOPE_INLINE void store(S* to, Vec<Compute<S>, N> v) {
  if constexpr (sizeof(S) != 2) {
    store_raw<S, N>(to, v);
  } else {
    Vec<uint16_t, N> raw;
    if constexpr (__is_same(S, Half)) {
      raw = to_half<N>(v);
    } else {
      raw = to_brain<N>(v);
    }
    __builtin_memcpy(to, &raw, sizeof raw);
  }
}

// The first `count` lanes; the others hold `rest`. Never reads past the end, where the page may end
// too. The loop runs to N and not to `count`: the latter becomes a call of memcpy, and rows of 9
// entries then take 2.8 times as long.
template <class S, int N>
SOFTSCOPE_INLINE Vec<Compute<S>, N> load_first(const S* from, size_t count, Compute<S> rest) {
#if defined(__AVX512F__) && !defined(__clang__)
  // Lanes that the mask leaves out are not read.
  const auto mask = static_cast<uint16_t>((1u << (count < N ? count : N)) - 1u);
  if constexpr (__is_same(S, float) && N == 16) {
    return __builtin_ia32_loadups512_mask(from, fill<float, N>(rest), mask);
  }
  if constexpr (__is_same(S, double) && N == 8) {
    return __builtin_ia32_loadupd512_mask(from, fill<double, N>(rest), static_cast<uint8_t>(mask));
  }
  if constexpr (__is_same(S, float) && N == 8) {
    return __builtin_ia32_loadups256_mask(from, fill<float, N>(rest), static_cast<uint8_t>(mask));
  }
  if constexpr (__is_same(S, double) && N == 4) {
    return __builtin_ia32_loadupd256_mask(from, fill<double, N>(rest), static_cast<uint8_t>(mask));
  }
#endif
  if constexpr (sizeof(S) != 2) {
    Vec<S, N> v = fill<S, N>(rest);
    for (size_t i = 0; i < N; ++i) {
      if (i < count) v[i] = from[i];
    }
    return v;
  } else {
    S full[N] = {};
    for (size_t i = 0; i < N; ++i) {
      if (i < count) full[i] = from[i];
    }
    Vec<float, N> v = load<S, N>(full);
    for (size_t i = 0; i < N; ++i) {
      if (i >= count) v[i] = rest;
    }
    return v;
  }
}

template <class S, int N>
SOFTSCOPE_INLINE void store_first(S* to, size_t count, Vec<Compute<S>, N> v) {
#if defined(__AVX512F__) && !defined(__clang__)
  const auto mask = static_cast<uint16_t>((1u << (count < N ? count : N)) - 1u);
  if constexpr (__is_same(S, float) && N == 16) {
    __builtin_ia32_storeups512_mask(to, v, mask);
    return;
  }
  if constexpr (__is_same(S, double) && N == 8) {
    __builtin_ia32_storeupd512_mask(to, v, static_cast<uint8_t>(mask));
    return;
  }
  if constexpr (__is_same(S, float) && N == 8) {
    __builtin_ia32_storeups256_mask(to, v, static_cast<uint8_t>(mask));
    return;
  }
  if constexpr (__is_same(S, double) && N == 4) {
    __builtin_ia32_storeupd256_mask(to, v, static_cast<uint8_t>(mask));
    return;
  }
#endif
  if constexpr (sizeof(S) != 2) {
    for (size_t i = 0; i < N; ++i) {
      if (i < count) to[i] = v[i];
    }
  } else {
    S full[N];
    store<S, N>(full, v);
    for (size_t i = 0; i < N; ++i) {
      if (i < count) to[i] = full[i];
    }
  }
}

}  // namespace
}  // namespace softscope
