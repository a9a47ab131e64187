// Sums that stay within a rounding or two of the exact ones, however long the row.
#pragma once

#include "simd/double_double.h"
#include "simd/vec.h"

namespace softscope {
namespace {

// Carries along what each addition rounds away. Of numbers, or of vectors lane by lane.
template <class V>
struct CompensatedSum {
  V total{}, lost{};

  SOFTSCOPE_INLINE void add(V v) {
    const DoubleDouble<V> s = two_sum(total, v);
    lost += s.low;
    total = s.high;
  }
};

// The sum of all lanes. float32 lanes are added in float64, two to one, since N doubles do not fit
// a register. float64 lanes have nothing wider, so they are compensated.
template <class T, int N>
struct Sum;

template <int N>
struct Sum<float, N> {
  Vec<double, N / 2> total{};

  SOFTSCOPE_INLINE void add(Vec<float, N> v) {
    total += widened<N / 2>(lower_half<float, N>(v));
    total += widened<N / 2>(upper_half<float, N>(v));
  }
  SOFTSCOPE_INLINE double value() const { return sum_lanes<double, N / 2>(total); }
};

template <int N>
struct Sum<double, N> : CompensatedSum<Vec<double, N>> {
  SOFTSCOPE_INLINE double value() const {
    double s = 0, rest = 0;
    for (int i = 0; i < N; ++i) {
      const DoubleDouble<double> next = two_sum(s, this->total[i]);
      rest += next.low + this->lost[i];
      s = next.high;
    }
    return s + rest;
  }
};

// A sum for each lane, for rows side by side.
template <class C, int N>
struct LaneSum;

template <int N>
struct LaneSum<float, N> {
  Vec<double, N / 2> lower{}, upper{};

  SOFTSCOPE_INLINE void add(Vec<float, N> v) {
    lower += widened<N / 2>(lower_half<float, N>(v));
    upper += widened<N / 2>(upper_half<float, N>(v));
  }
  SOFTSCOPE_INLINE double lane(int i) const { return i < N / 2 ? lower[i] : upper[i - N / 2]; }
  SOFTSCOPE_INLINE Vec<float, N> value() const {
    return joined<float, N>(narrowed<N / 2>(lower), narrowed<N / 2>(upper));
  }
};

template <int N>
struct LaneSum<double, N> : CompensatedSum<Vec<double, N>> {
  SOFTSCOPE_INLINE Vec<double, N> value() const { return this->total + this->lost; }
};

// The same without care: for a few entries, or for float64 on behalf of float32.
template <class C, int N>
struct PlainLaneSum {
  Vec<C, N> total{};

  SOFTSCOPE_INLINE void add(Vec<C, N> v) { total += v; }
  SOFTSCOPE_INLINE Vec<C, N> value() const { return total; }
};

}  // namespace
}  // namespace softscope
