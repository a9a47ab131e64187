// α-entmax with 1 < α < 2 on behalf of float32, for attention: the form of newton.h that costs a
// logarithm and an exponential for each entry and step, here in float32 lanes. A weight is right
// to a few roundings times 1 + |log p|, as its logit, a sum of products, is at best.
#pragma once

#include "entmax/newton.h"
#include "simd/compress.h"

namespace softscope {
namespace {

// log(1 + y) for −1 < y ≤ 0, below 3 ulp; and 1/(1 + y), for which it takes no second division.
template <int N>
struct Log1p {
  Vec<float, N> log, inverse;

  SOFTSCOPE_INLINE explicit Log1p(Vec<float, N> y) {
    using V = Vec<float, N>;
    using Bits = Vec<uint32_t, N>;
    const V z = 1.0f + y;
    const V lost = y - (z - 1.0f);  // in the rounding of z; not 0 only where z is near 1
    // z = 2^k·f with f in [√½, √2).
    constexpr uint32_t kHalfRoot = 0x3f3504f3u;
    const Bits up = (Bits)z + (0x3f800000u - kHalfRoot);
    const V k = __builtin_convertvector((Vec<int32_t, N>)(up >> 23) - 127, V);
    const V above = (V)((up & 0x7fffffu) + kHalfRoot) - 1.0f;
    const V both = 1.0f / ((2.0f + above) * z);
    const V s = above * z * both, s2 = s * s;
    V q = s2 * (2.0f / 9.0f) + 2.0f / 7.0f;
    q = q * s2 + 2.0f / 5.0f;
    q = q * s2 + 2.0f / 3.0f;
    const V log_f = 2.0f * s + q * s2 * s;
    log = k * 0x1.62ep-1f + (log_f + (k * 0x1.0bfbe8p-15f + lost));
    inverse = (2.0f + above) * both;
  }
};

struct SingleGeneral : General {
  using General::General;

  // The same term in float32.
  template <int N>
  SOFTSCOPE_INLINE void single(Vec<float, N> e, Vec<float, N>& p, Vec<float, N>& u) const {
    using V = Vec<float, N>;
    const V y = max(e * static_cast<float>(inverse_s), fill<float, N>(-1));
    const auto some = y > -1.0f;
    const Log1p<N> left(some ? y : V{});
    const V log = left.log * static_cast<float>(inverse_beta) + static_cast<float>(log_top);
    p = some ? exp_nonpositive<N>(log) : V{};
    u = p * (left.inverse * static_cast<float>(inverse_s));
  }

  // One step towards the root; returns its length.
  double step_single(const NewtonSums& sums) {
    const double share = -::expm1(-beta * ::log(sums.f)) * sums.f / (sums.g * s);
    const double down = -::log1p(-share) * inverse_beta;
    move_to(log_top - down);
    return ::fabs(down);
  }
};

// Sums over n entries, whole vectors, `stride` vectors apart.
template <int N>
NewtonSums single_sums(const SingleGeneral& form, const float* e, size_t n, size_t stride) {
  using V = Vec<float, N>;
  constexpr size_t kEach = 16;  // vectors in one plain sum
  const size_t step = stride * N;
  NewtonSums sums;
  for (size_t first = 0; first < n; first += kEach * step) {
    const size_t end = n - first < kEach * step ? n : first + kEach * step;
    V f = {}, g = {}, some = {};
    for (size_t j = first; j < end; j += step) {
      V p, u;
      form.single<N>(load_raw<float, N>(e + j), p, u);
      f += p;
      g += u;
      some += p > 0.0f ? fill<float, N>(1) : V{};
    }
    sums.f += static_cast<double>(sum_lanes<float, N>(f));
    sums.g += static_cast<double>(sum_lanes<float, N>(g));
    sums.count += static_cast<double>(sum_lanes<float, N>(some));
  }
  return sums;
}

// Finds the root; e has room for a vector more. Returns Σ p there.
template <int N>
double solve(SingleGeneral& form, float* e, size_t count) {
  constexpr double kNearEnough = 0x1p-20;
  constexpr size_t kSample = 8;  // every so many vectors
  constexpr int kSteps = 40;
  for (size_t j = count; j < count + N; ++j) e[j] = -kInfinity<float>;
  if (count >= 4 * kSample * N) {
    // A sample shows the way at a fraction of the cost. Wherever it leads, Newton's method finds
    // the root from there.
    const size_t vectors = (count + N - 1) / N, sampled = (vectors + kSample - 1) / kSample;
    const double weight = static_cast<double>(vectors) / static_cast<double>(sampled);
    for (int i = 0; i < kSteps; ++i) {
      NewtonSums sums = single_sums<N>(form, e, count, kSample);
      sums.f *= weight;
      sums.g *= weight;
      if (!(sums.f > 0) || form.step_single(sums) < 0x1p-6) break;
    }
    form.move_to(form.log_top + 0.25);  // from above, most entries can be dropped at once
  }
  size_t n = count;
  for (int i = 0;; ++i) {
    const NewtonSums sums = single_sums<N>(form, e, n, 1);
    const double before = form.log_top;
    if (!(form.step_single(sums) > kNearEnough) || i == kSteps) {
      form.move_to(before);
      return sums.f;
    }
    // From above, entries without weight stay without.
    if (sums.f >= 1 && n > 4 * N && sums.count < 0.75 * static_cast<double>(n)) {
      size_t kept = 0;
      const float floor = static_cast<float>(-form.s * (1 + 0x1p-20));
      for (size_t j = 0; j < n; j += N) {
        kept += store_above<float, N>(e + kept, load_raw<float, N>(e + j), floor);
      }
      n = kept;
      for (size_t j = n; j < n + N; ++j) e[j] = -kInfinity<float>;
    }
  }
}

}  // namespace
}  // namespace softscope
