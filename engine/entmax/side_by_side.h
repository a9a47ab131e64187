// sparsemax and 1.5-entmax of rows side by side, one row per lane, in float64.
#pragma once

#include "entmax/newton.h"
#include "rows/side_by_side.h"
#include "rows/transposed_tile.h"

namespace softscope {
namespace {

SOFTSCOPE_INLINE double alpha_of(const Block& b, size_t row) { return numbers_of(b, row)[kAlpha]; }

// Through memory: taken lane by lane, the compiler would compute one root at a time.
template <int M>
SOFTSCOPE_INLINE Vec<double, M> square_root(Vec<double, M> v) {
  alignas(sizeof v) double lanes[M];
  store_raw<double, M>(lanes, v);
  for (double& lane : lanes) lane = __builtin_sqrt(lane);
  return load_raw<double, M>(lanes);
}

// K·M rows side by side. Lanes never mix, so a row computes as if it were alone.
template <int M, int K>
struct EntmaxColumns {
  using V = Vec<double, M>;
  static constexpr size_t kRows = K * M;
  V scale[K] = {}, s[K] = {}, total[K] = {}, maximum[K] = {};
  V squared[K] = {};       // 1 where alpha is 1.5, else 0
  V keep[K] = {};          // 1 where the row is alone, else 0
  bool alone[kRows] = {};  // alpha is neither 1.5 nor 2: leave this row to entmax_row
  bool any_alone = false, all_alone = false;

  // Lanes past the last row repeat it.
  SOFTSCOPE_INLINE void read(const Block& b, size_t first) {
    any_alone = false;
    all_alone = true;
    for (size_t r = 0; r < kRows; ++r) {
      const size_t row = first + r < b.rows ? first + r : b.rows - 1;
      const double alpha = alpha_of(b, row);
      alone[r] = alpha != 2 && alpha != 1.5;
      any_alone |= alone[r];
      all_alone &= alone[r];
      scale[r / M][r % M] = (alpha - 1) / temperature_of(b, row);
      squared[r / M][r % M] = alpha == 1.5 ? 1 : 0;
      keep[r / M][r % M] = alone[r] ? 1 : 0;
    }
  }

  template <class A>
  SOFTSCOPE_INLINE static V wide(const A* x) {
    const Vec<Compute<A>, M> narrow = load<A, M>(x);
    V v;
    for (int l = 0; l < M; ++l) v[l] = static_cast<double>(narrow[l]);
    return v;
  }

  template <class A>
  SOFTSCOPE_INLINE void find_maximum(Columns<A> in) {
    for (auto& m : maximum) m = fill<double, M>(-kInfinity<double>);
    const A* x = in.x;
    for (size_t i = 0; i < in.n; ++i, x += in.step) {
      for (int k = 0; k < K; ++k) maximum[k] = max(wide(x + k * M), maximum[k]);
    }
  }

  // e = β·(x − max)/T, but no less than −2, where there is no weight either: else 0·(−inf) would be
  // NaN. A real NaN stays: the maximum may lose it, and this brings it back into the row's sums.
  SOFTSCOPE_INLINE V e_of(V x, int k) const {
    return max(fill<double, M>(-2), (x - maximum[k]) * scale[k]);
  }

  // The steps of newton.h for all lanes, until the last has arrived; further steps change nothing.
  // Ready: x is e already. Summed: LaneSum, or PlainLaneSum on behalf of float32.
  template <class A, bool Ready, class Summed>
  void solve(Columns<A> in) {
    for (auto& v : s) v = fill<double, M>(1);
    for (int step = 0;; ++step) {
      Summed f[K];
      V g[K] = {}, h[K] = {};
      const A* x = in.x;
      for (size_t i = 0; i < in.n; ++i, x += in.step) {
        for (int k = 0; k < K; ++k) {
          const V v = wide(x + k * M);
          const V e = Ready ? v : e_of(v, k);
          const V w = max(V{}, e + s[k]);
          const V one = w > 0.0 ? fill<double, M>(1) : V{};
          const V u = squared[k] > 0.0 ? w : one;
          f[k].add(u * w);
          g[k] += u;
          h[k] -= u * e;
        }
      }
      Vec<int64_t, M> changed = {};
      for (int k = 0; k < K; ++k) {
        total[k] = f[k].value();
        const V root = squared[k] > 0.0 ? square_root<M>(total[k]) : fill<double, M>(1);
        const V next = (root + h[k]) / g[k];
        const auto lower = (next < s[k] * (1 - kNear)) & (keep[k] == 0.0);
        s[k] = lower ? next : s[k];
        changed |= lower;
      }
      int64_t any = 0;
      for (int l = 0; l < M; ++l) any |= changed[l];
      if (any == 0 || step == kMostSteps) return;
    }
  }

  // The weights. Rows that are alone stay as they are, because out may be x.
  template <class A, bool Ready>
  void write(Columns<A> in, ColumnsOut<A> out) const {
    V inverse[K];
    for (int k = 0; k < K; ++k) inverse[k] = 1.0 / total[k];
    const A* x = in.x;
    for (size_t i = 0; i < in.n; ++i, x += in.step, out.x += out.step) {
      for (int k = 0; k < K; ++k) {
        const V v = wide(x + k * M);
        const V w = max(V{}, (Ready ? v : e_of(v, k)) + s[k]);
        V p = (squared[k] > 0.0 ? w * w : w) * inverse[k];
        p = keep[k] > 0.0 ? v : p;
        Vec<Compute<A>, M> narrow;
        for (int l = 0; l < M; ++l) narrow[l] = static_cast<Compute<A>>(p[l]);
        store<A, M>(out.x + k * M, narrow);
      }
    }
  }

  // A copy in float64, replaced by its weights.
  template <class Summed>
  void replace(double* x, ptrdiff_t step, size_t n) {
    const Columns<double> in = {.x = x, .step = step, .n = n};
    find_maximum(in);
    for (size_t i = 0; i < n; ++i) {
      double* from = x + static_cast<ptrdiff_t>(i) * step;
      for (int k = 0; k < K; ++k) {
        store_raw<double, M>(from + k * M, e_of(load_raw<double, M>(from + k * M), k));
      }
    }
    solve<double, true, Summed>(in);
    write<double, true>(in, {.x = x, .step = step});
  }
};

}  // namespace
}  // namespace softscope
