// The backward pass of attention. Weights are computed again, a block of keys against a group of
// rows.
//
//   p = exp(x − m)/z   dp = grad·vᵀ   ds = p·(dp − Σ grad·out)·cap'·scale
//   dq = ds·k   dk = dsᵀ·q   dv = pᵀ·grad
#pragma once

#include "attention/mask.h"
#include "attention/multiply.h"
#include "attention/pack.h"
#include "rows/state.h"

namespace softscope {
namespace {

constexpr size_t kBackwardKeys = 128;  // in a block
constexpr size_t kGroup = 48;  // rows against it: their weights and ds fit the second-level cache

template <class S, int N>
class Backward {
  using C = Compute<S>;
  using V = Vec<C, N>;
  static constexpr size_t kTile = 2 * N;

 public:
  Backward(const AttentionBackward& backward, const AttentionTask& rows)
      : b(backward),
        a(backward.forward),
        count(rows.count),
        d_wide(sum_width(a.d, b.width)),
        dv_wide(sum_width(a.dv, b.width)) {
    char* memory = static_cast<char*>(rows.scratch);
    const auto take = [&]<class T>(T*& to, size_t entries) {
      to = reinterpret_cast<T*>(memory);
      memory += round_up(entries * sizeof(T), 64);
    };
    take(row, count);
    take(key_lanes, kBackwardKeys * a.d);
    take(value_lanes, kBackwardKeys * a.dv);
    take(keys, kBackwardKeys * d_wide);
    take(p.data, kBackwardKeys * kGroup);
    take(ds.data, kBackwardKeys * kGroup);
    take(bias, kBackwardKeys);
    take(q.data, count * d_wide);
    take(dq.data, count * d_wide);
    take(grad.data, count * dv_wide);
    dk.data = static_cast<C*>(b.dk_sum);
    dv.data = static_cast<C*>(b.dv_sum);
    for (size_t s = 0; s < count; ++s) read_row(s, rows.first + s);
    for (size_t i = 0; i < count * d_wide; ++i) dq.data[i] = 0;
  }

  void run() {
    for (size_t first = 0; first < a.m; first += kBackwardKeys) {
      const KeyBlock block = block_at(first, kBackwardKeys, a);
      bool packed = false;
      for (size_t s = 0; s < count; s += kGroup) {
        const size_t group = count - s < kGroup ? count - s : kGroup;
        KeyRange seen = {.begin = block.count, .end = 0};  // by any row of the group
        for (size_t r = s; r < s + group; ++r) widen(seen, within(block, row[r].visible));
        if (empty(seen)) continue;
        if (!packed) pack(block);
        packed = true;
        // Past the block's last key, weights are 0.
        const KeyRange computed = {.begin = seen.begin / kTile * kTile,
                                   .end = round_up(seen.end, kTile)};
        for (size_t r = 0; r < group; r += kStrip) {
          with_rows(group - r, [&]<int R>() { strip<R>(s + r, r, block, computed); });
        }
        add_transposed(p, {grad[s], dv_wide}, group, block, computed, dv);
        add_transposed(ds, {q[s], d_wide}, group, block, computed, dk);
      }
    }
    for (size_t s = 0; s < count; ++s) {
      narrow_row(dq[s], row_of<S>(b.dq, row[s].head, row[s].i), a.d);
      b.dscale[row[s].head * a.n + row[s].i] = row[s].dscale;
    }
  }

 private:
  struct Row {
    size_t head, i;
    KeyRange visible;
    C maximum;  // that weights count from
    C inverse;  // 1/z
    C mean;     // Σ grad·out
    C scale;
    double dscale;
  };

  const AttentionBackward& b;
  const Attention& a;
  const size_t count;
  const size_t d_wide, dv_wide;  // entries of a row of sums
  Row* row;
  C *key_lanes, *value_lanes;  // keys and values of a block, packed with rows as lanes
  C* keys;                     // the keys with columns as lanes
  C* bias;
  Buffer<C, kBackwardKeys> p, ds;  // of the rows of a group
  Strided<C> q{nullptr, d_wide}, dq{nullptr, d_wide}, grad{nullptr, dv_wide};  // of all rows
  Strided<C> dk{nullptr, d_wide}, dv{nullptr, dv_wide};                        // of all keys

  static void narrow_row(const C* from, S* to, size_t n) {
    size_t c = 0;
    for (; c + N <= n; c += N) store<S, N>(to + c, load_raw<C, N>(from + c));
    if (c < n) store_first<S, N>(to + c, n - c, load_raw<C, N>(from + c));
  }

  // n entries in the type that computes, and zeros up to `wide`.
  static void widen_row(const S* from, C* to, size_t n, size_t wide) {
    for (size_t c = 0; c < wide; c += N) {
      V v = {};
      if (c < n) v = n - c >= N ? load<S, N>(from + c) : load_first<S, N>(from + c, n - c, 0);
      store_raw<C, N>(to + c, v);
    }
  }
  static void clear_not_finite(C* x, size_t n) {
    for (size_t i = 0; i < n; i += N) {
      const V v = load_raw<C, N>(x + i);
      store_raw<C, N>(x + i, v - v == C(0) ? v : V{});
    }
  }

  void read_row(size_t s, size_t index) {
    const size_t head = index / a.n, i = index % a.n;
    widen_row(row_of<const S>(a.q, head, i), q[s], a.d, d_wide);
    clear_not_finite(q[s], d_wide);  // such a row has a NaN state, or sees nothing
    widen_row(row_of<const S>(b.grad, head, i), grad[s], a.dv, dv_wide);
    const S* out = row_of<const S>(a.out, head, i);
    double mean = 0;
    for (size_t c = 0; c < a.dv; ++c) {
      const C at = load_first<S, N>(out + c, 1, 0)[0];
      mean += static_cast<double>(at) * static_cast<double>(grad[s][c]);
    }
    State state;
    __builtin_memcpy(&state, row_of<const double>(a.state, head, i), sizeof state);
    const double m = state.m, z = state.c + state.r;
    double top = m, inverse = 1 / z;
    if (!(m > -kInfinity<double>) && m == m) {
      top = inverse = mean = 0;  // sees nothing
    } else if (a.sink != nullptr) {
      const double sink = a.sink[head];
      top = sink > m ? sink : m;
      const Vec<double, 2> e = exp_nonpositive<2>(Vec<double, 2>{m - top, sink - top});
      inverse = 1 / (z * e[0] + e[1]);
    }
    row[s] = {.head = head,
              .i = i,
              .visible = inverse == 0 ? KeyRange{0, 0} : visible_keys(i),
              .maximum = static_cast<C>(top),
              .inverse = static_cast<C>(inverse),
              .mean = static_cast<C>(mean),
              .scale = static_cast<C>(a.scale[head]),
              .dscale = 0};
  }

  KeyRange visible_keys(size_t i) const {
    const int64_t from = a.positions[i] - a.left, to = a.positions[i] + a.right + 1;
    const auto m = static_cast<int64_t>(a.m);
    return {.begin = from < 0 ? 0 : static_cast<size_t>(from),
            .end = to < 0 ? 0 : static_cast<size_t>(to < m ? to : m)};
  }

  void pack(KeyBlock block) {
    const Unpacked<S> k = {.data = row_of<const S>(a.k, 0, block.first),
                           .row = a.k.row,
                           .count = block.count,
                           .width = a.d};
    const Unpacked<S> v = {.data = row_of<const S>(a.v, 0, block.first),
                           .row = a.v.row,
                           .count = block.count,
                           .width = a.dv};
    pack_rows_as_lanes<S, N>(k, key_lanes);
    pack_rows_as_lanes<S, N>(v, value_lanes);
    const size_t width = round_up(a.d, kTile);
    // 0·NaN would reach rows that do not see it; rows that do have NaN in ds already.
    if (!pack_columns_as_lanes<S, N>(k, keys, kBackwardKeys)) {
      clear_not_finite(keys, kBackwardKeys * width);
    }
    for (size_t j = block.count; j < round_up(block.count, kTile); ++j) {
      for (size_t c = 0; c < width; ++c) {
        keys[c / kTile * kTile * kBackwardKeys + j * kTile + c % kTile] = 0;
      }
    }
  }

  // p and ds of R rows from s on, which are rows `r` … of their group, and what they add to dq.
  template <int R>
  void strip(size_t s, size_t r, KeyBlock block, KeyRange computed) {
    const C *query[R], *given[R], *slope[R];
    for (size_t i = 0; i < R; ++i) {
      query[i] = q[s + i];
      given[i] = grad[s + i];
      slope[i] = ds[r + i] + computed.begin;
    }
    for (size_t j = computed.begin; j < computed.end; j += kTile) {
      V x[R][2] = {};
      multiply<C, N, R>(query, key_lanes + j * a.d, a.d, x);
      store_tile(p[r] + j, x);
    }
    for (size_t j = computed.begin; j < computed.end; j += kTile) {
      V x[R][2] = {};
      multiply<C, N, R>(given, value_lanes + j * a.dv, a.dv, x);
      store_tile(ds[r] + j, x);
    }
    for (size_t i = 0; i < R; ++i) {
      weigh(row[s + i], {.x = p[r + i], .dx = ds[r + i]}, block, computed);
    }
    const size_t depth = computed.end - computed.begin;
    for (size_t c = 0; c < a.d; c += kTile) {
      V sum[R][2] = {};
      multiply<C, N, R>(slope, keys + c * kBackwardKeys + computed.begin * kTile, depth, sum);
      add_tile(sum, Strided<C>{dq[s] + c, d_wide});
    }
  }

  template <int R>
  SOFTSCOPE_INLINE static void store_tile(C* to, const V (&x)[R][2]) {
    for (size_t i = 0; i < R; ++i) {
      store_raw<C, N>(to + i * kBackwardKeys, x[i][0]);
      store_raw<C, N>(to + i * kBackwardKeys + N, x[i][1]);
    }
  }

  // A row's buffers: q·k and dp, which become p and ds.
  struct Buffers {
    C *x, *dx;
  };
  SOFTSCOPE_INLINE void weigh(Row& at, const Buffers& of, KeyBlock block, KeyRange computed) {
    const KeyRange visible = within(block, at.visible);
    const bool all_visible = visible.begin <= computed.begin && visible.end >= computed.end;
    const bool plain = a.mask.type == kNoMask && all_visible;
    if (!plain) {
      read_mask<C>(a.mask, at.head, at.i, block, bias);
      hide(bias, computed, visible);
    }
    const C cap = static_cast<C>(a.softcap);
    const V hidden = fill<C, N>(-kInfinity<C>), none = {};
    V dscale = {};
    for (size_t j = computed.begin; j < computed.end; j += kTile) {
      V raw[2], score[2], e[2], slope[2];
      for (size_t h = 0; h < 2; ++h) {
        raw[h] = load_raw<C, N>(of.x + j + h * N);
        score[h] = raw[h] * at.scale;
        slope[h] = fill<C, N>(1);
        if (cap != 0) score[h] = capped<C, N>(score[h], cap, slope[h]);
        if (!plain) {
          const V add = load_raw<C, N>(bias + j + h * N);
          score[h] = add == hidden ? hidden : score[h] + add;
        }
        e[h] = score[h] - at.maximum;
      }
      exp_nonpositive<N, 2>(e);
      for (size_t h = 0; h < 2; ++h) {
        const V weight = score[h] == hidden ? none : e[h] * at.inverse;
        const V back = weight * (load_raw<C, N>(of.dx + j + h * N) - at.mean) * slope[h];
        dscale += score[h] == hidden ? none : back * raw[h];
        store_raw<C, N>(of.x + j + h * N, weight);
        store_raw<C, N>(of.dx + j + h * N, score[h] == hidden ? none : back * at.scale);
      }
    }
    at.dscale += static_cast<double>(sum_lanes<C, N>(dscale));
  }

  // sums[key] += Σ weights[row][key]·of[row] over the `rows` of a group.
  void add_transposed(Buffer<C, kBackwardKeys> weights, Strided<const C> of, size_t rows,
                      KeyBlock block, KeyRange computed, Strided<C> sums) {
    const size_t end = computed.end < block.count ? computed.end : block.count;
    for (size_t j = computed.begin; j < end; j += kStrip) {
      const Strided<const C> by = {weights.data + j, kBackwardKeys};
      const Strided<C> to = {sums[block.first + j], sums.row};
      // Captures copies: through references, every store would make the compiler load them again.
      with_rows(end - j, [by, of, to, rows]<int R>() {
        for (size_t c = 0; c < of.row; c += kTile) {
          V x[R][2] = {};
          multiply_transposed<C, N, R>(by, {of.data + c, of.row}, rows, x);
          add_tile(x, Strided<C>{to.data + c, to.row});
        }
      });
    }
  }
};

// Adds up the sums of all tasks, and rounds them to the type of the arrays. All rows in one call: a
// call for each would cost a backward pass of few queries a tenth of its time.
template <class S, int N>
void add_up_gradients(GradientParts parts, void* out) {
  using C = Compute<S>;
  const C* from = static_cast<const C*>(parts.sums);
  S* to = static_cast<S*>(out);
  for (size_t j = 0; j < parts.rows; ++j, from += parts.wide, to += parts.n) {
    for (size_t c = 0; c < parts.n; c += N) {
      Vec<C, N> total = {};
      for (size_t i = 0; i < parts.count; ++i) total += load_raw<C, N>(from + i * parts.stride + c);
      if (parts.n - c >= N) {
        store<S, N>(to + c, total);
      } else {
        store_first<S, N>(to + c, parts.n - c, total);
      }
    }
  }
}

}  // namespace
}  // namespace softscope
