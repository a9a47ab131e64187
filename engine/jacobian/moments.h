// What J·v needs to know of a row: Σs, and Σ s·v counted from a centre, so that nothing cancels.
//
// J takes constants to 0, so v may be counted from anywhere. From 0, if the mean m = Σ s·v/Σs is no
// larger than what v strays from it. Else from the mean, as well as one pass finds it: what a
// second finds is small then, and its rounding smaller still, wherever v lies. But next to one-hot
// that mean is too coarse, and it has to be v at the largest weight.
#pragma once

#include "simd/vec.h"

namespace softscope {
namespace {

// Whether v may be counted from 0, with total = Σs, sum = Σ s·v and square = Σ s·v²: its root mean
// square is at most four times the standard deviation. False where the squares leave the range.
template <class T>
SOFTSCOPE_INLINE auto near_zero(T total, T sum, T square) {
  const auto known = (square > 1e-30f) & (square < 1e30f);
  return (known & (sum * sum <= 0.9375f * square * total)) | (sum == 0);
}

// More than this of all the weight in one place is next to one-hot.
template <class C>
constexpr C kDominant = C(0.9375);

// Of some entries of a row: the largest s, the centre, Σs, and Σ s·(v − centre)/2. By halves, for
// v − centre may pass the range.
struct Moments {
  double top, centre, total, product;
};
constexpr Moments kNoMoments = {-kInfinity<double>, 0, 0, 0};

// An infinite centre only says so: v at the largest weight is none to count from.
template <class T>
SOFTSCOPE_INLINE T origin(T centre) {
  return centre - centre == 0 ? centre : T{};
}

SOFTSCOPE_INLINE Moments merged(Moments a, Moments b) {
  const Moments high = b.top > a.top ? b : a, low = b.top > a.top ? a : b;
  const double total = high.total + low.total;
  const double c = origin(high.centre), d = origin(low.centre);
  // From the centre of a part that holds little of all the weight, the sum would cancel.
  const double mean = (c * high.total + d * low.total) / total;
  const bool known = mean - mean == 0 && high.centre - high.centre == 0;
  const double centre = known && high.top <= kDominant<double> * total ? mean : high.centre;
  const double half = 0.5 * origin(centre);
  return {high.top, centre, total,
          (high.product + (0.5 * c - half) * high.total) +
              (low.product + (0.5 * d - half) * low.total)};
}

// Half of what v is counted from in the end, in two parts: so no difference loses digits, however
// close v lies to its mean.
template <class T>
struct Place {
  T upper, lower;
};

template <class T>
SOFTSCOPE_INLINE Place<T> place_of(T centre, T total, T product) {
  const T one = T{} + 1;
  // + centre − centre: an infinite v at the largest weight has no difference from itself.
  const T mean = product / (total == 0 ? one : total) + (centre - centre);
  const auto finite = mean - mean == 0;
  return {finite ? origin(centre) / 2 : mean, finite ? mean : T{}};
}

// The same of a whole row, for C to compute with.
template <class C>
SOFTSCOPE_INLINE Place<C> place_of(const Moments& m) {
  const Place<double> place = place_of(m.centre, m.total, m.product);
  const C upper = static_cast<C>(place.upper + place.lower);
  if (upper - upper != 0) return {upper, 0};
  return {upper, static_cast<C>((place.upper - static_cast<double>(upper)) + place.lower)};
}

// 2/T in two factors, so that neither product passes the range: out = ((s·before)·d)·after.
template <class C>
struct Scale {
  C before = 2, after = 1;

  SOFTSCOPE_INLINE explicit Scale(double temperature) {
    if (temperature < 1) before = static_cast<C>(2 / temperature);
    if (temperature > 1) after = static_cast<C>(1 / temperature);
    if (temperature != temperature) after = static_cast<C>(temperature);
  }
};

// What a sum of float64 carries beside itself is NaN once the sum is infinite.
template <class V>
SOFTSCOPE_INLINE V or_endless(V sum, V plain) {
  return sum == sum ? sum : plain;
}

}  // namespace
}  // namespace softscope
