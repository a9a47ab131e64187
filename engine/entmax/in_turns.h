// sparsemax and 1.5-entmax of a few rows in turns, on behalf of float32: one step of newton.h for
// each. A row alone would wait for its sums, its root and its division at every step.
#pragma once

#include "entmax/newton.h"
#include "simd/compress.h"

namespace softscope {
namespace {

struct RowInTurn {
  double* e;  // β·(x − max) of the entries that may have weight, with room for a vector more
  size_t n;   // 0: nothing to do
  double s, total;
};

// Squared: α = 1.5, else 2. Leaves s and Σ p of each row. Plain sums will do for float32.
template <int D, bool Squared>
void solve_in_turns(RowInTurn* rows, size_t count) {
  using V = Vec<double, D>;
  constexpr double kNearEnough = 0x1p-32;
  constexpr size_t kMany = 8 * D;
  const auto pad = [](RowInTurn& row) {
    store_raw<double, D>(row.e + row.n, fill<double, D>(-2));  // below −s, so without weight
  };
  bool open[8] = {};
  for (size_t r = 0; r < count; ++r) {
    open[r] = rows[r].n != 0;
    rows[r].s = rows[r].total = 1;
    pad(rows[r]);
  }
  bool any = true;
  for (int step = 0; any; ++step) {
    double sums[8][2] = {};  // g and h
    for (size_t r = 0; r < count; ++r) {
      if (!open[r]) continue;
      V f{}, g{}, h{};
      const double *e = rows[r].e, s = rows[r].s;
      for (size_t i = 0; i < rows[r].n; i += D) {
        const V at = load_raw<double, D>(e + i), w = max(at + s, V{});
        const V u = Squared ? w : (w > 0.0 ? fill<double, D>(1) : V{});
        f += Squared ? w * w : w;
        g += u;
        h -= u * at;
      }
      rows[r].total = sum_lanes<double, D>(f);
      sums[r][0] = sum_lanes<double, D>(g);
      sums[r][1] = sum_lanes<double, D>(h);
    }
    any = false;
    for (size_t r = 0; r < count; ++r) {
      RowInTurn& row = rows[r];
      if (!open[r]) continue;
      const double next = ((Squared ? __builtin_sqrt(row.total) : 1) + sums[r][1]) / sums[r][0];
      open[r] = next < row.s * (1 - kNearEnough) && step < kMostSteps;
      any |= open[r];
      if (!open[r]) continue;
      row.s = next;
      if (row.n <= kMany) continue;
      size_t kept = 0;
      for (size_t i = 0; i < row.n; i += D) {
        kept += store_above<double, D>(row.e + kept, load_raw<double, D>(row.e + i), -next);
      }
      row.n = kept;
      pad(row);
    }
  }
}

}  // namespace
}  // namespace softscope
