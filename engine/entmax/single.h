// α-entmax with 1 < α < 2 on behalf of float32, for attention: the form of newton.h that costs a
// logarithm and an exponential for each entry and step, here in float32 lanes. A weight is right
// to a few roundings times 1 + |log p|, as its logit, a sum of products, is at best.
#pragma once

#include "entmax/newton.h"
#include "simd/compress.h"
#include "simd/log.h"

namespace softscope {
namespace {

// log(1 + y) for −1 < y ≤ 0, below 4 ulp (3.5 over every 37th float32, with fused multiply-add and
// without); and 1/(1 + y), for which it takes no second division.
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

// A row whose root is sought in turns with others.
struct SingleInTurn {
  float* e;  // β·(x − max) of the entries that may have weight, with room for a vector more
  size_t n;  // 0: nothing to do
  double log_top, total;
};

constexpr size_t kTurns = 8;

// Where each of eight rows is on the way to its root, side by side: their logarithms and
// exponentials would take longer one after the other than their sums.
struct SingleTurns {
  double log_top[kTurns] = {}, s[kTurns], inverse_s[kTurns];
  double f[kTurns], g[kTurns], count[kTurns];  // the sums there; see NewtonSums
  double far[kTurns] = {};                     // how far the last step went

  SingleTurns() {
    for (size_t r = 0; r < kTurns; ++r) s[r] = inverse_s[r] = f[r] = g[r] = count[r] = 1;
  }

  // One step of Newton's method for all.
  template <int D>
  SOFTSCOPE_INLINE void step(double beta) {
    using V = Vec<double, D>;
    for (size_t r = 0; r < kTurns; r += D) {
      const V sum = load_raw<double, D>(f + r), before = load_raw<double, D>(log_top + r);
      const V fine = sum > 0.0 ? sum : fill<double, D>(0x1p-60);
      const V y = beta * log_positive<D>(fine);
      const V power = exp_nonpositive<D>(y > 0.0 ? -y : y);  // f^−β, or f^β where f < 1
      const V share = (y > 0.0 ? 1.0 - power : 1.0 - 1.0 / power) * fine /
                      (load_raw<double, D>(g + r) * load_raw<double, D>(s + r));
      const V moved = before + log_positive<D>(1.0 - share) * (1 / beta);
      const V top = moved < 0.0 ? moved : V{}, power_of_top = exp_nonpositive<D>(beta * top);
      store_raw<double, D>(log_top + r, top);
      store_raw<double, D>(s + r, power_of_top);
      store_raw<double, D>(inverse_s + r, 1.0 / power_of_top);
      store_raw<double, D>(far + r, top < before ? before - top : top - before);
    }
  }

  SOFTSCOPE_INLINE void move_to(size_t r, double beta, double top) {
    log_top[r] = top < 0 ? top : 0;
    s[r] = ::exp(beta * log_top[r]);
    inverse_s[r] = 1 / s[r];
  }
};

// Finds the roots of at most eight rows with the same β ≥ 2^-12.
template <int N>
void solve_in_turns(double beta, SingleInTurn* rows, size_t count) {
  constexpr double kNearEnough = 0x1p-20, kSampled = 0x1p-6;
  constexpr size_t kSample = 8;  // every so many vectors
  constexpr int kSteps = 40;
  SingleTurns at;
  bool open[kTurns] = {}, sampled[kTurns] = {};
  for (size_t r = 0; r < count; ++r) {
    open[r] = rows[r].n != 0;
    // A sample shows the way at a fraction of the cost. Wherever it leads, Newton's method finds
    // the root from there.
    sampled[r] = rows[r].n >= 4 * kSample * N;
    store_raw<float, N>(rows[r].e + rows[r].n, fill<float, N>(-kInfinity<float>));
  }
  SingleGeneral form(beta);
  bool any = true;
  for (int i = 0; any && i < kSteps; ++i) {
    double before[kTurns];
    for (size_t r = 0; r < count; ++r) {
      before[r] = at.log_top[r];
      if (!open[r]) continue;
      form.log_top = at.log_top[r];
      form.s = at.s[r];
      form.inverse_s = at.inverse_s[r];
      const NewtonSums sums = single_sums<N>(form, rows[r].e, rows[r].n, sampled[r] ? kSample : 1);
      const auto vectors = static_cast<double>((rows[r].n + N - 1) / N);
      const auto taken = static_cast<double>((rows[r].n + kSample * N - 1) / (kSample * N));
      const double weight = sampled[r] ? vectors / taken : 1;
      at.f[r] = sums.f * weight;
      at.g[r] = sums.g > 0 ? sums.g * weight : 1;
      at.count[r] = sums.count;
    }
    at.step<N / 2>(beta);
    any = false;
    for (size_t r = 0; r < count; ++r) {
      SingleInTurn& row = rows[r];
      if (!open[r]) continue;
      if (!sampled[r] && (!(at.far[r] > kNearEnough) || i == kSteps - 1)) {
        open[r] = false;
        row.log_top = before[r];
        row.total = at.f[r];
        continue;
      }
      any = true;
      if (sampled[r]) {
        if (at.far[r] > kSampled && i < kSteps / 2) continue;
        sampled[r] = false;
        at.move_to(r, beta, at.log_top[r] + 0.25);  // from above, most can be dropped at once
        continue;
      }
      // From above, entries without weight stay without.
      if (at.f[r] < 1 || row.n <= 2 * N || at.count[r] > 0.75 * static_cast<double>(row.n)) {
        continue;
      }
      size_t kept = 0;
      const float floor = static_cast<float>(-at.s[r] * (1 + 0x1p-20));
      for (size_t j = 0; j < row.n; j += N) {
        kept += store_above<float, N>(row.e + kept, load_raw<float, N>(row.e + j), floor);
      }
      row.n = kept;
      store_raw<float, N>(row.e + kept, fill<float, N>(-kInfinity<float>));
    }
  }
}

}  // namespace
}  // namespace softscope
