// Vectors of N lanes over the compiler's vector extensions: + - * / and comparisons come with them.
//
// Not intrinsics: one source then serves every processor, and what the compiler cannot map to one
// instruction it splits. Not a library: we need ten operations.
//
// This header is compiled once per instruction set, so everything is in an anonymous namespace, and
// nothing from the standard library with a body is called: the linker keeps one copy of an inline
// function, and if that is the AVX2 one, an older processor dies in it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softscope {
namespace {

template <class T, int N>
struct VecOf {
  typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
template <class T, int N>
using Vec = typename VecOf<T, N>::type;

constexpr float kInfinity = __builtin_inff();

// Whether a·b + c is one instruction with one rounding here.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
constexpr bool kFusedMultiplyAdd = true;
#else
constexpr bool kFusedMultiplyAdd = false;
#endif

template <int N>
[[gnu::always_inline]] inline Vec<float, N> fill(float value) {
  return value - Vec<float, N>{};  // minus: −0 − 0 stays −0, and the compiler sees a broadcast
}

// Rows start anywhere, so no load assumes alignment; on aligned data it costs nothing.
template <int N>
[[gnu::always_inline]] inline Vec<float, N> load(const float* from) {
  Vec<float, N> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <int N>
[[gnu::always_inline]] inline void store(float* to, Vec<float, N> v) {
  __builtin_memcpy(to, &v, sizeof v);
}

// The first `count` lanes; the others hold `rest`. Never reads past the end: the page may end
// there. Not a loop up to `count`: that becomes a call of memcpy, and rows of 9 take 2.8 times as
// long.
template <int N>
[[gnu::always_inline]] inline Vec<float, N> load_first(const float* from, size_t count,
                                                       float rest) {
  Vec<float, N> v = fill<N>(rest);
  for (size_t i = 0; i < N; ++i) {
    if (i < count) v[i] = from[i];
  }
  return v;
}

template <int N>
[[gnu::always_inline]] inline void store_first(float* to, size_t count, Vec<float, N> v) {
  for (size_t i = 0; i < N; ++i) {
    if (i < count) to[i] = v[i];
  }
}

// The larger of each lane; where either is NaN, b. In this form it is one instruction on x86.
template <int N>
[[gnu::always_inline]] inline Vec<float, N> max(Vec<float, N> a, Vec<float, N> b) {
  return a > b ? a : b;
}

template <int N>
[[gnu::always_inline]] inline float max_lane(Vec<float, N> v) {
  float m = v[0];
  for (int i = 1; i < N; ++i) m = v[i] > m ? v[i] : m;
  return m;
}

// Adds the lanes of v to sums in float64, two to one: N doubles would not fit a register.
template <int N>
[[gnu::always_inline]] inline void add_widened(Vec<double, N / 2>& sums, Vec<float, N> v) {
  // Lane by lane is two instructions; __builtin_convertvector goes through memory in GCC 12.
  Vec<double, N / 2> lower, upper;
  for (int i = 0; i < N / 2; ++i) {
    lower[i] = v[i];
    upper[i] = v[i + N / 2];
  }
  sums += lower;
  sums += upper;
}

template <int N>
[[gnu::always_inline]] inline double sum_lanes(Vec<double, N> v) {
  double s = 0;
  for (int i = 0; i < N; ++i) s += v[i];
  return s;
}

}  // namespace
}  // namespace softscope
