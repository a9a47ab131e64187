// What J·v needs to know of a row: Σs, and Σ s·v counted from a centre, so that nothing cancels.
//
// J maps constants to 0, so v may be counted from anywhere. From 0, if the mean m = Σ s·v/Σs is no
// larger than the spread of v around it. Else from the mean as one pass finds it: what a second
// pass adds is then small, and its rounding smaller still, wherever v lies. But next to one-hot
// that mean is too coarse; there the centre is v at the largest weight.
#pragma once

#include "rows/long_row.h"
#include "simd/vec.h"

namespace softscope {
namespace {

// Whether v may be counted from 0, with total = Σs, sum = Σ s·v and square = Σ s·v²: that is, if
// its root mean square is at most four times its standard deviation. False if the squares leave the
// range of float32.
template <class T>
SOFTSCOPE_INLINE auto near_zero(T total, T sum, T square) {
  const auto known = (square > 1e-30f) & (square < 1e30f);
  return (known & (sum * sum <= 0.9375f * square * total)) | (sum == 0);
}

// Next to one-hot: more than this share of the weight in one place.
template <class C>
constexpr C kDominant = C(0.9375);

// Of some entries of a row: the largest s, the centre, Σs, and Σ s·(v − centre)/2. In halves,
// because v − centre may overflow.
using Moments = BackwardSums;
constexpr Moments kNoMoments = {.top = -kInfinity<double>, .centre = 0, .total = 0, .product = 0};

// An infinite centre is only a mark: v at the largest weight is infinite, and nothing can be
// counted from there.
template <class T>
SOFTSCOPE_INLINE T origin(T centre) {
  return centre - centre == 0 ? centre : T{};
}

SOFTSCOPE_INLINE Moments merged(Moments a, Moments b) {
  const Moments high = b.top > a.top ? b : a, low = b.top > a.top ? a : b;
  const double total = high.total + low.total;
  const double c = origin(high.centre), d = origin(low.centre);
  // Counted from the centre of a part that holds little of the weight, the sum would cancel.
  const double mean = (c * high.total + d * low.total) / total;
  const bool known = mean - mean == 0 && high.centre - high.centre == 0;
  const double centre = known && high.top <= kDominant<double> * total ? mean : high.centre;
  const double half = 0.5 * origin(centre);
  return {.top = high.top,
          .centre = centre,
          .total = total,
          .product = (high.product + (0.5 * c - half) * high.total) +
                     (low.product + (0.5 * d - half) * low.total)};
}

// Half of the mean that v is counted from in the end, in two parts: then no difference loses
// digits, however close v lies to the mean.
template <class T>
struct HalfMean {
  T upper, lower;
};

template <class T>
SOFTSCOPE_INLINE HalfMean<T> half_mean(T centre, T total, T product) {
  const T one = T{} + 1;
  // + (centre − centre): an infinite v at the largest weight makes the mean NaN.
  const T mean = product / (total == 0 ? one : total) + (centre - centre);
  const auto finite = mean - mean == 0;
  return {finite ? origin(centre) / 2 : mean, finite ? mean : T{}};
}

// The same of a whole row, for C to compute with.
template <class C>
SOFTSCOPE_INLINE HalfMean<C> half_mean(const Moments& m) {
  const HalfMean<double> wide = half_mean(m.centre, m.total, m.product);
  const C upper = static_cast<C>(wide.upper + wide.lower);
  if (upper - upper != 0) return {upper, 0};
  return {upper, static_cast<C>((wide.upper - static_cast<double>(upper)) + wide.lower)};
}

// 2/T in two factors, so that neither product overflows: out = ((s·before)·d)·after.
template <class C>
struct Scale {
  C before = 2, after = 1;

  SOFTSCOPE_INLINE explicit Scale(double temperature) {
    if (temperature < 1) before = static_cast<C>(2 / temperature);
    if (temperature > 1) after = static_cast<C>(1 / temperature);
    if (temperature != temperature) after = static_cast<C>(temperature);
  }
};

// The compensation of a float64 sum is NaN once the sum is infinite; then the plain total counts.
template <class V>
SOFTSCOPE_INLINE V or_infinite(V sum, V plain) {
  return sum == sum ? sum : plain;
}

}  // namespace
}  // namespace softscope
