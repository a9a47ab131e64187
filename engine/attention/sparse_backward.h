// The backward pass of sparse attention. Logits are computed again, all of them; the rest only for
// tiles of keys that have weight.
//
//   dp = grad·vᵀ   ds = J·dp·cap'   dq = scale·ds·k   dk = scale·dsᵀ·q   dv = pᵀ·grad
//   dscale = q·(ds·k)
#pragma once

#include "attention/sparse_jacobian.h"
#include "attention/sparse_rows.h"

namespace softscope {
namespace {

template <class S, int N>
class SparseBackward : SparseRows<S, N> {
  using Base = SparseRows<S, N>;
  using Base::a, Base::count, Base::group, Base::live, Base::peaks, Base::row, Base::seen,
      Base::slopes, Base::tiles, Base::width, Base::x, Base::kPair;
  using typename Base::C;
  using typename Base::Row;
  using typename Base::V;
  static constexpr int D = sizeof(C) == 8 ? N : N / 2;

 public:
  SparseBackward(const AttentionBackward& backward, const AttentionTask& rows)
      : SparseBackward(backward, rows, Arena(rows.scratch)) {}

  void run() {
    pack();
    for (size_t s = 0; s < count; s += group) {
      const size_t many = count - s < group ? count - s : group;
      Base::score(s, many);
      for (size_t r = 0; r < many; ++r) read_root(row[s + r]);
      for (size_t i = 0; i < many * d_wide; ++i) dq.data[i] = 0;
      for (size_t r = 0; r < many; r += kStrip) {
        const size_t rows = many - r < kStrip ? many - r : kStrip;
        with_rows(rows, [&]<int R>() { strip<R>(s + r, r); });
      }
      const size_t found = Base::find_live(s, 0, many, Base::tiles_of(s, many));
      clear_dead_tiles(s, many, found);
      for (size_t i = 0, end; i < found; i = end) {  // neighbouring tiles together
        end = i + 1;
        while (end < found && tiles[end] == tiles[end - 1] + 1) ++end;
        const KeyRange run = {.begin = tiles[i] * kSparseTile,
                              .end = (tiles[end - 1] + 1) * kSparseTile};
        add_transposed(x, {grad[s], dv_wide}, many, run, dv);
        add_transposed(dx, {scaled[s], d_wide}, many, run, dk);
      }
      for (size_t r = 0; r < many; ++r) write(row[s + r], dq[r]);
    }
  }

 private:
  SparseBackward(const AttentionBackward& backward, const AttentionTask& rows, Arena arena)
      : Base(backward.forward, rows, true, arena),
        b(backward),
        d_wide(sum_width(a.d, backward.width)),
        dv_wide(sum_width(a.dv, backward.width)) {
    arena.take(value_lanes, width * a.dv);
    arena.take(key_columns, width * round_up(a.d, kPair));
    arena.take(dx.data, group * width);
    arena.take(s_row, width);
    arena.take(picked, width + 64);
    arena.take(places, width + 64);
    arena.take(log_p, width + 64);
    arena.take(given, width + 64);
    arena.take(product, width + 64);
    arena.take(pull, width + 64);
    arena.take(dq.data, group * d_wide);
    arena.take(grad.data, count * dv_wide);
    arena.take(scaled.data, count * d_wide);
    dk.data = static_cast<C*>(b.dk_sum);
    dv.data = static_cast<C*>(b.dv_sum);
    for (size_t s = 0; s < count; ++s) {
      const Row& at = row[s];
      widen_row(row_of<const S>(b.grad, at.head, at.i), grad[s], a.dv, dv_wide);
      widen_row(row_of<const S>(a.q, at.head, at.i), scaled[s], a.d, d_wide);
      // A row with NaN or infinity here has NaN weights, or sees nothing.
      clear_not_finite(scaled[s], d_wide);
      const C scale = static_cast<C>(a.scale[at.head]);
      for (size_t c = 0; c < d_wide; ++c) scaled[s][c] *= scale;
    }
  }

  const AttentionBackward& b;
  const size_t d_wide, dv_wide;  // entries of a row of sums
  C *value_lanes, *key_columns;
  C* s_row;   // s = p^(2−α) of one row
  C* picked;  // logits of a row with weight
  uint32_t* places;
  double *log_p, *given, *product, *pull;
  Strided<C> dx{nullptr, width};  // of the rows of a group: dp, which becomes ds
  Strided<C> dq{nullptr, d_wide}, grad{nullptr, dv_wide}, scaled{nullptr, d_wide};
  Strided<C> dk{nullptr, d_wide}, dv{nullptr, dv_wide};  // of all keys

  // n entries in the type that computes, and zeros up to `wide`.
  static void widen_row(const S* from, C* to, size_t n, size_t wide) {
    for (size_t c = 0; c < wide; c += N) {
      V v = {};
      if (c < n) v = n - c >= N ? load<S, N>(from + c) : load_first<S, N>(from + c, n - c, 0);
      store_raw<C, N>(to + c, v);
    }
  }
  static void clear_not_finite(C* values, size_t n) {
    for (size_t i = 0; i < n; i += N) {
      const V v = load_raw<C, N>(values + i);
      store_raw<C, N>(values + i, v - v == C(0) ? v : V{});
    }
  }

  void pack() {
    for (size_t first = seen.begin / kSparseBlock * kSparseBlock; first < seen.end;
         first += kSparseBlock) {
      const KeyBlock block = block_at(first, kSparseBlock, a);
      const Unpacked<S> v = {.data = row_of<const S>(a.v, 0, first),
                             .row = a.v.row,
                             .count = block.count,
                             .width = a.dv};
      const Unpacked<S> k = {.data = row_of<const S>(a.k, 0, first),
                             .row = a.k.row,
                             .count = block.count,
                             .width = a.d};
      pack_rows_as_lanes<S, N>(v, value_lanes + first * a.dv);
      C* columns = key_columns + first * kPair;
      // 0·NaN would reach rows that do not see it; rows that do have NaN in ds already.
      const bool finite = pack_columns_as_lanes<S, N>(k, columns, width);
      for (size_t c = 0; c < a.d; c += kPair) {
        C* column = columns + c * width;
        for (size_t i = block.count * kPair; i < kSparseBlock * kPair; ++i) column[i] = 0;
        if (!finite) clear_not_finite(column, block.count * kPair);
      }
    }
  }

  void read_root(Row& at) {
    const double* numbers = row_of<const double>(a.state, at.head, at.i);
    if (at.nan || at.root.maximum == -kInfinity<double>) return;
    at.root.root = numbers[kRoot];
    at.root.lowest = numbers[kLowest];
    at.root.total = numbers[kTotal];
    with_root<C>(at.root,
                 [&](const auto& rooted) { at.floor = floor_of(rooted.reach, rooted.form); });
  }

  // Weights and ds of R rows from s on, which are rows r … of their group, and their dq.
  template <int R>
  void strip(size_t s, size_t r) {
    const size_t found = Base::find_live(s, r, R, Base::tiles_of(s, R));
    const C *given_rows[R], *slope[R];
    for (size_t i = 0; i < R; ++i) given_rows[i] = grad[s + i];
    for (size_t i = 0; i < found; ++i) {
      const size_t first = tiles[i] * kSparseTile;
      for (size_t j = first; j < first + kSparseTile; j += kPair) {
        V sum[R][2] = {};
        if (j < a.m) multiply<C, N, R>(given_rows, value_lanes + j * a.dv, a.dv, sum);
        for (size_t k = 0; k < R; ++k) {
          store_raw<C, N>(dx[r + k] + j, sum[k][0]);
          store_raw<C, N>(dx[r + k] + j + N, sum[k][1]);
        }
      }
    }
    for (size_t i = 0; i < R; ++i) through_weights(s + i, r + i, found);
    for (size_t c = 0; c < a.d; c += kPair) {
      for (size_t first = 0; first < found; first += kChainTiles) {
        const size_t end = found - first < kChainTiles ? found : first + kChainTiles;
        V sum[R][2] = {};
        for (size_t i = first; i < end; ++i) {
          const size_t j = tiles[i] * kSparseTile;
          for (size_t k = 0; k < R; ++k) slope[k] = dx[r + k] + j;
          multiply<C, N, R>(slope, key_columns + c * width + j * kPair, kSparseTile, sum);
        }
        add_tile(sum, Strided<C>{dq[r] + c, d_wide});
      }
    }
  }

  // Turns the logits and dp of a row into weights and ds, in the live tiles of its strip.
  void through_weights(size_t s, size_t r, size_t found) {
    Row& at = row[s];
    double* dalpha = b.dalpha == nullptr ? nullptr : b.dalpha + at.head * a.n + at.i;
    if (dalpha != nullptr) *dalpha = at.nan ? __builtin_nan("") : 0;
    if (at.nan) return spread_nan(r, found);
    for (size_t i = 0; i < found; ++i) {
      if (has_weight(at, r, tiles[i])) continue;
      const size_t first = tiles[i] * kSparseTile;
      for (size_t j = first; j < first + kSparseTile; j += N) {
        store_raw<C, N>(x[r] + j, V{});
        store_raw<C, N>(dx[r] + j, V{});
      }
    }
    if (at.root.maximum == -kInfinity<double>) return;
    if (at.root.alpha > 2) {
      steep(at, r, found, dalpha);
    } else {
      with_root<C>(at.root, [&](const auto& rooted) { gentle(rooted, at, r, found, dalpha); });
    }
  }

  SOFTSCOPE_INLINE bool has_weight(const Row& at, size_t r, size_t tile) const {
    return peaks[r][tile] > at.floor;
  }

  void spread_nan(size_t r, size_t found) {
    const V nan = fill<C, N>(static_cast<C>(__builtin_nan("")));
    for (size_t i = 0; i < found; ++i) {
      const size_t first = tiles[i] * kSparseTile;
      for (size_t j = first; j < first + kSparseTile; j += N) {
        const V all = load_raw<C, N>(x[r] + j) == -kInfinity<C> ? V{} : nan;
        store_raw<C, N>(x[r] + j, all);
        store_raw<C, N>(dx[r] + j, all);
      }
    }
  }

  // For α ≤ 2.
  template <class Rooted>
  SOFTSCOPE_INLINE void gentle(const Rooted& rooted, const Row& at, size_t r, size_t found,
                               double* dalpha) {
    C *p = x[r], *dp = dx[r];
    const C base = dp[place_of_maximum(at, r, found)];
    Sum<C, N> total, moved;
    for (size_t i = 0; i < found; ++i) {
      if (!has_weight(at, r, tiles[i])) continue;
      const size_t first = tiles[i] * kSparseTile;
      for (size_t j = first; j < first + kSparseTile; j += N) {
        const Weighed<C, N> w = weigh<C, N>(rooted, load_raw<C, N>(p + j));
        const V beside = w.s > C(0) ? load_raw<C, N>(dp + j) - base : V{};
        store_raw<C, N>(p + j, w.p);
        store_raw<C, N>(s_row + j, w.s);
        store_raw<C, N>(dp + j, beside);
        total.add(w.s);
        moved.add(w.s * beside);
      }
    }
    const C mean = static_cast<C>(moved.value() / total.value());
    for (size_t i = 0; i < found; ++i) {
      if (!has_weight(at, r, tiles[i])) continue;
      const size_t first = tiles[i] * kSparseTile;
      for (size_t j = first; j < first + kSparseTile; j += N) {
        const V back = load_raw<C, N>(s_row + j) * (load_raw<C, N>(dp + j) - mean);
        store_raw<C, N>(dp + j, back);
      }
    }
    if (dalpha != nullptr) *dalpha = -pulled(at, r, found);
    if (!Base::keeps_slopes) return;
    for (size_t i = 0; i < found; ++i) {
      if (!has_weight(at, r, tiles[i])) continue;
      const size_t first = tiles[i] * kSparseTile;
      for (size_t j = first; j < first + kSparseTile; j += N) {
        const V back = load_raw<C, N>(dp + j), slope = load_raw<C, N>(slopes[r] + j);
        store_raw<C, N>(dp + j, back == C(0) ? back : back * slope);
      }
    }
  }

  size_t place_of_maximum(const Row& at, size_t r, size_t found) const {
    const C maximum = static_cast<C>(at.root.maximum);
    for (size_t i = 0; i < found; ++i) {
      if (peaks[r][tiles[i]] != maximum) continue;
      const size_t first = tiles[i] * kSparseTile;
      for (size_t j = first; j < first + kSparseTile; ++j) {
        if (x[r][j] == maximum) return j;
      }
    }
    return 0;  // there always is one
  }

  // Σ ds·(g − g at the largest weight).
  double pulled(const Row& at, size_t r, size_t found) const {
    using W = Vec<double, D>;
    const double beta = at.root.alpha - 1;
    C peak = 0;
    for (size_t i = 0; i < found; ++i) {
      if (!has_weight(at, r, tiles[i])) continue;
      for (size_t j = 0; j < kSparseTile; ++j) {
        const C p = x[r][tiles[i] * kSparseTile + j];
        peak = p > peak ? p : peak;
      }
    }
    const double base = alpha_pull<2>(fill<double, 2>(static_cast<double>(peak)), beta)[0];
    W sum{};
    for (size_t i = 0; i < found; ++i) {
      if (!has_weight(at, r, tiles[i])) continue;
      const size_t first = tiles[i] * kSparseTile;
      for (size_t j = first; j < first + kSparseTile; j += D) {
        const W p = load_wide<C, D>(x[r] + j), ds = load_wide<C, D>(dx[r] + j);
        const W g = alpha_pull<D>(p > 0.0 ? p : fill<double, D>(1), beta) - base;
        sum += p > 0.0 ? ds * g : W{};
      }
    }
    return sum_lanes<double, D>(sum);
  }

  // For α > 2, in float64 from the logits with weight alone.
  void steep(const Row& at, size_t r, size_t found, double* dalpha) {
    using W = Vec<double, D>;
    size_t many = 0;
    for (size_t i = 0; i < found; ++i) {
      if (!has_weight(at, r, tiles[i])) continue;
      const size_t first = tiles[i] * kSparseTile;
      for (size_t j = first; j < first + kSparseTile; ++j) {
        const bool some = static_cast<double>(x[r][j]) >= at.root.lowest;
        picked[many] = x[r][j];
        places[many] = static_cast<uint32_t>(j);
        given[many] = static_cast<double>(dx[r][j]);
        many += some;
        x[r][j] = 0;
        dx[r][j] = 0;
      }
    }
    for (size_t i = many; i < many + D; ++i) {
      picked[i] = static_cast<C>(at.root.lowest);
      given[i] = 0;
    }
    Steep form(at.root.alpha - 1, 1);
    restore(form, at.root);
    const double log_total = ::log(at.root.total);
    size_t peak = 0;
    for (size_t i = 0; i < many; i += D) {
      const W log = form.template log_p<D>(form.template log_b<D>(load_wide<C, D>(picked + i)));
      store_raw<double, D>(log_p + i, log - log_total);
    }
    for (size_t i = 1; i < many; ++i) peak = log_p[i] > log_p[peak] ? i : peak;
    steep_product<D>(log_p, given, many, at.root.alpha, product);
    for (size_t i = 0; i < many; ++i) {
      const size_t j = places[i];
      const W one = exp_nonpositive<D>(fill<double, D>(log_p[i]));
      x[r][j] = static_cast<C>(one[0]);
      const double back = product[i] * (Base::keeps_slopes ? static_cast<double>(slopes[r][j]) : 1);
      dx[r][j] = static_cast<C>(back);
    }
    if (dalpha == nullptr) return;
    // (dp − dp at the largest weight)·(J·g): J·g stays below 1 where J·dp may overflow.
    const double base = given[peak];
    for (size_t i = 0; i < many; ++i) given[i] -= base;
    for (size_t i = 0; i < many; i += D) {
      store_raw<double, D>(pull + i,
                           steep_alpha_pull<D>(load_raw<double, D>(log_p + i), at.root.alpha - 1));
    }
    steep_product<D>(log_p, pull, many, at.root.alpha, product);
    double sum = 0;
    for (size_t i = 0; i < many; ++i) sum += given[i] * product[i];
    *dalpha = -sum;
  }

  // Tiles that are live for other strips of the group only.
  void clear_dead_tiles(size_t s, size_t many, size_t found) {
    for (size_t r = 0; r < many; r += kStrip) {
      const size_t rows = many - r < kStrip ? many - r : kStrip;
      const KeyRange of = Base::tiles_of(s + r, rows);
      for (size_t i = 0; i < found; ++i) {
        const size_t t = tiles[i];
        bool some = false;
        for (size_t k = r; k < r + rows && t >= of.begin && t < of.end; ++k) {
          some |= row[s + k].nan || peaks[k][t] > row[s + k].floor;
        }
        if (some) continue;
        for (size_t k = r; k < r + rows; ++k) {
          for (size_t j = t * kSparseTile; j < (t + 1) * kSparseTile; j += N) {
            store_raw<C, N>(x[k] + j, V{});
            store_raw<C, N>(dx[k] + j, V{});
          }
        }
      }
    }
  }

  // sums[key] += Σ weights[row][key]·of[row] over the `rows` of a group, for some keys.
  void add_transposed(Strided<C> weights, Strided<const C> of, size_t rows, KeyRange run,
                      Strided<C> sums) {
    const size_t end = run.end < a.m ? run.end : a.m;
    for (size_t j = run.begin; j < end; j += kStrip) {
      const Strided<const C> by = {weights.data + j, weights.row};
      const Strided<C> to = {sums[j], sums.row};
      // Captures copies: through references, every store would make the compiler load them again.
      with_rows(end - j, [by, of, to, rows]<int R>() {
        for (size_t c = 0; c < of.row; c += kPair) {
          V sum[R][2] = {};
          multiply_transposed<C, N, R>(by, {of.data + c, of.row}, rows, sum);
          add_tile(sum, Strided<C>{to.data + c, to.row});
        }
      });
    }
  }

  void write(const Row& at, C* sums) {
    const C scale = static_cast<C>(a.scale[at.head]);
    double dscale = 0;
    for (size_t c = 0; c < a.d; ++c) {
      const C q = at.q[c], finite = q - q == 0 ? q : C(0);
      dscale += static_cast<double>(sums[c]) * static_cast<double>(finite);
      sums[c] *= scale;
    }
    b.dscale[at.head * a.n + at.i] = dscale;
    S* to = row_of<S>(b.dq, at.head, at.i);
    size_t c = 0;
    for (; c + N <= a.d; c += N) store<S, N>(to + c, load_raw<C, N>(sums + c));
    if (c < a.d) store_first<S, N>(to + c, a.d - c, load_raw<C, N>(sums + c));
  }
};

}  // namespace
}  // namespace softscope
