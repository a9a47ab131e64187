// Vectors of N lanes over the compiler's vector extensions: + - * / and comparisons come with them.
//
// Not intrinsics: one source then serves every processor, and what the compiler cannot map to one
// instruction it splits. Not a library: we need a dozen operations.
//
// This header is compiled once per instruction set, so everything is in an anonymous namespace, and
// nothing from the standard library with a body is called: the linker keeps one copy of an inline
// function, and if that is the AVX2 one, an older processor dies in it.
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

// Whether a·b + c is one instruction with one rounding here.
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

// The larger of each lane; where either is NaN, b. In this form it is one instruction on x86.
template <class V>
SOFTSCOPE_INLINE V max(V a, V b) {
  return a > b ? a : b;
}

template <class T, int N>
SOFTSCOPE_INLINE T max_lane(Vec<T, N> v) {
  T m = v[0];
  for (int i = 1; i < N; ++i) m = v[i] > m ? v[i] : m;
  return m;
}

template <class T, int N>
SOFTSCOPE_INLINE T sum_lanes(Vec<T, N> v) {
  T s = 0;
  for (int i = 0; i < N; ++i) s += v[i];
  return s;
}

}  // namespace
}  // namespace softscope
