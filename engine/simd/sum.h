// Sums that stay within a rounding or two of the exact ones, however long the row.
#pragma once

#include "simd/vec.h"

namespace softscope {
namespace {

// float32 lanes are added up in float64, two to one: N doubles would not fit a register.
// float64 lanes have nothing wider, and carry what each addition rounded away (Knuth's two-sum).
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
struct Sum<double, N> {
  Vec<double, N> total{}, lost{};

  SOFTSCOPE_INLINE void add(Vec<double, N> v) {
    const Vec<double, N> s = total + v;
    const Vec<double, N> part = s - total;
    lost += (total - (s - part)) + (v - part);
    total = s;
  }
  SOFTSCOPE_INLINE double value() const {
    double s = 0, rest = 0;
    for (int i = 0; i < N; ++i) {
      const double next = s + total[i];
      const double part = next - s;
      rest += (s - (next - part)) + (total[i] - part) + lost[i];
      s = next;
    }
    return s + rest;
  }
};

}  // namespace
}  // namespace softscope
