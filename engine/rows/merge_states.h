// How two states of a row merge. The arithmetic stands here once; who merges differs only in how
// exp is computed and in how many digits r carries.
#pragma once

#include <cmath>

#include "rows/state.h"
#include "simd/double_double.h"

namespace softscope {
namespace {

constexpr State kNoEntries = {
    .count = 0, .c = 0, .m = -kInfinity<double>, .r = 0, .u = 0, .t = 0, .w = 0};
constexpr PreciseState kNoPreciseEntries = {kNoEntries, 0, 0};

// The same entries seen from a maximum above their own. `delta` ≤ 0 is how far they sink,
// (old − new)/T, and `shrink` is exp(delta), which must not be 0 with an infinite delta. Entries at
// the old maximum are now below, with d = delta:
//
//   z = c + r   r' = shrink·z          u' = shrink·(u + δ·z)
//   c' = 0      w' = shrink²·(w + c)   t' = shrink·(t + 2δ·u + δ²·z)
SOFTSCOPE_INLINE void raise_maximum(State& s, double maximum, double delta, double shrink) {
  const double z = s.c + s.r;
  s.t = shrink * (s.t + 2 * delta * s.u + delta * delta * z);
  s.u = shrink * (s.u + delta * z);
  s.w = shrink * shrink * (s.w + s.c);
  s.r = shrink * z;
  s.c = 0;
  s.m = maximum;
}

// Adds the entries of `from`, which must count from the same maximum.
SOFTSCOPE_INLINE void add_entries(State& to, const State& from) {
  to.count += from.count;
  to.c += from.c;
  to.r += from.r;
  to.u += from.u;
  to.t += from.t;
  to.w += from.w;
}

SOFTSCOPE_INLINE void raise_maximum(State& s, double maximum, double inverse_temperature) {
  double delta = (s.m - maximum) * inverse_temperature;
  const double shrink = ::exp(delta);
  if (shrink == 0) delta = 0;  // else 0·(−inf)
  raise_maximum(s, maximum, delta, shrink);
}

SOFTSCOPE_INLINE State merged(State a, State b, double inverse_temperature) {
  if (b.count == 0) return a;
  if (a.count == 0) return b;
  // A NaN maximum has to win; comparisons with it are false.
  const double m = b.m <= a.m ? a.m : b.m;
  if (a.m < m) raise_maximum(a, m, inverse_temperature);
  if (b.m < m) raise_maximum(b, m, inverse_temperature);
  add_entries(a, b);
  if (a.m == a.m) a.m = m;
  return a;
}

// With a double-double r, and with exp as precise as that.
inline void raise_maximum_precisely(PreciseState& s, double maximum, double temperature) {
  DoubleDouble<double> delta = two_sum(s.m, -maximum);
  const double high = delta.high / temperature;
  if (!(high > -746)) {  // nothing is left of them, or NaN
    const double gone = high == high ? 0 : high;
    s = {{.count = s.count, .c = 0, .m = maximum, .r = gone, .u = 0, .t = 0, .w = 0}, 0, s.coarse};
    return;
  }
  delta = {high, (remainder(delta.high, high, temperature) + delta.low) / temperature};
  const DoubleDouble<double> shrink = exp_precisely(delta);
  const DoubleDouble<double> r = product(shrink, sum({s.c, 0}, {s.r, s.r_low}));
  raise_maximum(s, maximum, high, shrink.high);
  s.r = r.high;
  s.r_low = r.low;
}

inline PreciseState merged_precisely(PreciseState a, PreciseState b, double temperature) {
  if (b.count == 0) return a;
  if (a.count == 0) return b;
  if (a.m != a.m || b.m != b.m) {  // NaN wins, but all entries count
    PreciseState& nan = a.m != a.m ? a : b;
    nan.count = a.count + b.count;
    return nan;
  }
  if (a.m < b.m) raise_maximum_precisely(a, b.m, temperature);
  if (b.m < a.m) raise_maximum_precisely(b, a.m, temperature);
  const DoubleDouble<double> r = sum({a.r, a.r_low}, {b.r, b.r_low});
  add_entries(a, b);
  a.r = r.high;
  a.r_low = r.low;
  a.coarse = a.coarse > b.coarse ? a.coarse : b.coarse;
  return a;
}

}  // namespace
}  // namespace softscope
