// log_softmax of short contiguous rows, N at a time; see together.h.
//
// Exponentials in float32. For the shortest rows, whose log z is small, they are of distances that
// keep what float32 rounds away: then log z errs by 2.2 u whatever the distances, and few rows must
// be taken again in float64.
#pragma once

#include "rows/together.h"
#include "simd/log.h"

namespace softscope {
namespace {

// How many float32 roundoffs fit into one of the result's type.
template <class S>
constexpr double kRoom = __is_same(S, Brain)  ? 0x1p16
                         : __is_same(S, Half) ? 0x1p13
                                              : 1;

// Rows below this length get exact distances, where that is quicker than a transposed tile in
// float64: not with eight lanes.
template <int N>
constexpr size_t kExact = kFusedMultiplyAdd && N == 16 ? 40 : 0;

// How far log z may be off then, in units of u: exp errs by 0.9 ulp, and the sum in r rounds once.
constexpr double kExactError = 2.2;

// d = (x − m)/T as two floats. Without fused multiply-add this would take many more steps.
template <int N>
struct ExactDistance {
  using V = Vec<float, N>;
  float maximum, inverse, inverse_low;
  bool tempered;

  SOFTSCOPE_INLINE ExactDistance(float m, double temperature)
      : maximum(m),
        inverse(static_cast<float>(1.0 / temperature)),
        inverse_low(static_cast<float>(1.0 / temperature - static_cast<double>(inverse))),
        tempered(temperature != 1) {}

  SOFTSCOPE_INLINE void of(V x, V& high, V& low) const {
    high = x - maximum;
    const V part = high - x;
    low = (x - (high - part)) - (maximum + part);
    if (tempered) {
      const V product = high * inverse;
      low = (high * inverse - product) + (low * inverse + high * inverse_low);
      high = product;
    }
    // −inf − (−inf) is NaN; where x is −inf, exp gives 0 whatever is finite here.
    low = max(low, fill<float, N>(-1));
  }
};

// Lanes of Σ exp(d), each vector added in float64.
template <class S, int N>
SOFTSCOPE_INLINE Sum<float, N> exact_exp_sum(const S* x, size_t n, const ExactDistance<N>& d) {
  using V = Vec<float, N>;
  Sum<float, N> sum;
  size_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    V v[4], low[4];
    for (size_t k = 0; k < 4; ++k) d.of(load<S, N>(x + i + k * N), v[k], low[k]);
    exp_nonpositive<N, 4, true>(v, &low);
    for (size_t k = 0; k < 4; ++k) sum.add(v[k]);
  }
  const auto rest = [&]<int K>() __attribute__((always_inline)) {
    V v[K], low[K];
    for (size_t k = 0; k < K; ++k) {
      d.of(i + (k + 1) * N <= n ? load<S, N>(x + i + k * N)
                                : load_last<S, N>(x, n, -kInfinity<float>),
           v[k], low[k]);
    }
    exp_nonpositive<N, K, true>(v, &low);
    for (size_t k = 0; k < K; ++k) {
      sum.add(i + (k + 1) * N <= n ? v[k] : uncovered<float, N>(v[k], n));
    }
  };
  const size_t left = (n - i + N - 1) / N;
  if (left == 1) rest.template operator()<1>();
  if (left == 2) rest.template operator()<2>();
  if (left == 3) rest.template operator()<3>();
  if (left == 4) rest.template operator()<4>();
  return sum;
}

// Whether the error of log z, in units of u, leaves 2 ulp of the larger of result and maximum, of
// which half an ulp is for the last rounding; and whether the 1 did not swallow the other terms.
// False for NaN.
template <class S, int H>
SOFTSCOPE_INLINE auto exact_enough(Vec<double, H> z, Vec<double, H> log_z, Vec<double, H> top,
                                   Vec<double, H> error) {
  typedef Vec<uint64_t, H> Bits;
  const Vec<double, H> larger = max(top, log_z);
  const auto power = (Vec<double, H>)((Bits)larger & 0x7ff0000000000000u);
  return (z > 1 + 1e-6) & (error < 3 * power * kRoom<S>);
}

// log z of one row; false if that is not exact enough either.
template <class S, int N>
bool exact_log_z(const S* x, size_t n, double m, double temperature, double& log) {
  if (!kFusedMultiplyAdd) return false;
  const ExactDistance<N> d(static_cast<float>(m), temperature);
  const double z = exact_exp_sum<S, N>(x, n, d).value(), top = ::fabs(m / temperature);
  log = ::log1p(z - 1);
  const auto one = [](double v) { return fill<double, 2>(v); };
  return exact_enough<S, 2>(one(z), one(log), one(top), one(kExactError))[0] != 0;
}

// Rows of this length stay in the first-level cache while N of them are taken together.
template <int N>
constexpr size_t kLogsTogether = 8192 / N;

// Up to N rows of at most kLogsTogether<N> entries, of float32 or narrower. Calls again(row) for
// those which are not exact enough. Exact: with exact distances.
template <class S, int N, bool Exact, class Again>
void log_softmax_together(const Block& b, RowRange rows, double log_n, Again again) {
  constexpr int H = N / 2;
  float maximum[N];
  double logs[N], enough[N];
  Sum<float, N> sums[N];
  const Vec<float, N> tops = maxima_of<S, N>(b, rows);
  store_raw<float, N>(maximum, tops);
  const bool shared = b.numbers_row == 0;
  ExactDistance<N> d(maximum[0], temperature_of(b, rows.first));
  for (size_t r = 0; r < rows.count; ++r) {
    prefetch_row<S>(b, rows.first + r + N);
    d.maximum = maximum[r];
    if (!shared) {
      const bool any = d.tempered;
      d = ExactDistance<N>(maximum[r], temperature_of(b, rows.first + r));
      d.tempered = d.tempered || any;
    }
    const S* x = row_at<S>(b.x, rows.first + r);
    if constexpr (Exact) {
      sums[r] = exact_exp_sum<S, N>(x, b.n, d);
    } else {
      Vec<float, N> tail;
      sums[r] = segment_exp<S, N, false>(x, nullptr, b.n, {d.maximum, d.inverse}, tail);
    }
  }
  Vec<double, H> z[2];
  sums_of_each<N>(sums, z);
  for (int half = 0; half < 2; ++half) {
    Vec<double, H> top =
        widened<H>(half == 0 ? lower_half<float, N>(tops) : upper_half<float, N>(tops));
    for (size_t l = 0; l < H; ++l) {
      if (half * H + l < rows.count) top[l] /= temperature_of(b, rows.first + half * H + l);
    }
    top = max(top, -top);
    const Vec<double, H> log = log1p_nonnegative<H>(max(z[half] - 1.0, Vec<double, H>{}));
    store_raw<double, H>(logs + half * H, log);
    const Vec<double, H> error =
        Exact ? fill<double, H>(kExactError) : (log_n - log) * (d.tempered ? 3.0 : 1.0) + 2.0;
    const auto fine = exact_enough<S, H>(z[half], log, top, error);
    store_raw<double, H>(enough + half * H, fine ? fill<double, H>(1) : Vec<double, H>{});
  }
  for (size_t r = 0; r < rows.count; ++r) {
    const size_t row = rows.first + r;
    if (enough[r] == 0) {
      again(row);
    } else {
      segment_log<S, N>(row_at<S>(b.x, row), row_at<S>(b.out, row), b.n,
                        static_cast<double>(maximum[r]), temperature_of(b, row), logs[r]);
    }
  }
}

}  // namespace
}  // namespace softscope
