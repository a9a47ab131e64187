// The way back of attention: weights are computed again, a block of keys against a group of rows.
//
//   p = exp(x − m)/z   dp = grad·vᵀ   ds = p·(dp − Σ grad·out)·cap'·scale
//   dq = ds·k   dk = dsᵀ·q   dv = pᵀ·grad
#pragma once

#include "attention/mask_and_softcap.h"
#include "attention/multiply.h"
#include "attention/pack.h"
#include "attention/problem.h"

namespace softscope {
namespace {

constexpr size_t kBackKeys = 128;  // in a block
constexpr size_t kGroup = 48;  // rows against it: their weights and ds fit the second-level cache

template <class S, int N>
class AttendBack {
  using C = Compute<S>;
  using V = Vec<C, N>;
  static constexpr size_t kTile = 2 * N;

 public:
  AttendBack(const AttentionBack& back, const AttentionRows& rows)
      : b(back),
        a(back.forward),
        count(rows.count),
        d_wide(sum_width(a.d)),
        dv_wide(sum_width(a.dv)) {
    char* memory = static_cast<char*>(rows.scratch);
    const auto take = [&]<class T>(T*& to, size_t entries) {
      to = reinterpret_cast<T*>(memory);
      memory += round_up(entries * sizeof(T), 64);
    };
    take(row, count);
    take(keys_across, kBackKeys * a.d);
    take(values_across, kBackKeys * a.dv);
    take(keys, kBackKeys * d_wide);
    take(p, kBackKeys * kGroup);
    take(ds, kBackKeys * kGroup);
    take(bias, kBackKeys);
    take(q, count * d_wide);
    take(dq, count * d_wide);
    take(grad, count * dv_wide);
    dk = static_cast<C*>(b.dk_sum);
    dv = static_cast<C*>(b.dv_sum);
    for (size_t s = 0; s < count; ++s) read_row(s, rows.first + s);
    for (size_t i = 0; i < count * d_wide; ++i) dq[i] = 0;
  }

  void run() {
    for (size_t first = 0; first < a.m; first += kBackKeys) {
      const size_t many = a.m - first < kBackKeys ? a.m - first : kBackKeys;
      bool packed = false;
      for (size_t s = 0; s < count; s += kGroup) {
        const size_t group = count - s < kGroup ? count - s : kGroup;
        size_t from = many, to = 0;
        for (size_t r = s; r < s + group; ++r) {
          const size_t begin = start(row[r], first, many), end = stop(row[r], first, many);
          if (begin >= end) continue;
          from = begin < from ? begin : from;
          to = end > to ? end : to;
        }
        if (from >= to) continue;
        if (!packed) pack(first, many);
        packed = true;
        from = from / kTile * kTile;
        to = round_up(to, kTile);  // keys beyond the last have weight 0
        for (size_t r = 0; r < group; r += kStrip) {
          with_rows(group - r, [&]<int R>() { weights<R>(s + r, r, first, many, from, to); });
        }
        add_transposed(p, grad + s * dv_wide, dv_wide, dv + first * dv_wide, group, from, to, many);
        add_transposed(ds, q + s * d_wide, d_wide, dk + first * d_wide, group, from, to, many);
      }
    }
    for (size_t s = 0; s < count; ++s) {
      S* to = static_cast<S*>(b.dq) + offset(row[s].head, b.dq_head) + offset(row[s].i, b.dq_row);
      copy(dq + s * d_wide, to, a.d);
      b.dscale[row[s].head * a.n + row[s].i] = row[s].dscale;
    }
  }

 private:
  struct Row {
    size_t head, i;
    size_t from, to;           // the keys that it may see
    C maximum, inverse, mean;  // what weights count from; 1/z; Σ grad·out
    C scale;
    double dscale;
  };

  const AttentionBack& b;
  const Attention& a;
  const size_t count, d_wide, dv_wide;
  Row* row;
  C *keys_across, *values_across, *keys, *p, *ds, *bias, *q, *dq, *grad, *dk, *dv;

  static size_t start(const Row& r, size_t first, size_t many) {
    return r.from > first ? (r.from - first < many ? r.from - first : many) : 0;
  }
  static size_t stop(const Row& r, size_t first, size_t many) {
    return r.to > first ? (r.to - first < many ? r.to - first : many) : 0;
  }

  static void copy(const C* from, S* to, size_t n) {
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
  static void clear_broken(C* x, size_t n) {
    for (size_t i = 0; i < n; i += N) {
      const V v = load_raw<C, N>(x + i);
      store_raw<C, N>(x + i, v - v == C(0) ? v : V{});
    }
  }

  void read_row(size_t s, size_t index) {
    const size_t head = index / a.n, i = index % a.n;
    widen_row(static_cast<const S*>(a.q) + offset(head, a.q_head) + offset(i, a.q_row),
              q + s * d_wide, a.d, d_wide);
    clear_broken(q + s * d_wide, d_wide);  // where it was, the state is NaN or sees nothing
    widen_row(static_cast<const S*>(b.grad) + offset(head, b.grad_head) + offset(i, b.grad_row),
              grad + s * dv_wide, a.dv, dv_wide);
    const S* out = static_cast<const S*>(a.out) + offset(head, a.out_head) + offset(i, a.out_row);
    double mean = 0;
    for (size_t c = 0; c < a.dv; ++c) {
      const C at = load_first<S, N>(out + c, 1, 0)[0];
      mean += static_cast<double>(at) * static_cast<double>(grad[s * dv_wide + c]);
    }
    const double* state = a.state + offset(head, a.state_head) + offset(i, a.state_row);
    const double m = state[2], z = state[1] + state[3];
    double top = m, inverse = 1 / z;
    if (!(m > -kInfinity<double>) && m == m) {
      top = inverse = mean = 0;  // sees nothing
    } else if (a.sink != nullptr) {
      const double sink = a.sink[head];
      top = sink > m ? sink : m;
      const Vec<double, 2> e = exp_nonpositive<2>(Vec<double, 2>{m - top, sink - top});
      inverse = 1 / (z * e[0] + e[1]);
    }
    const int64_t from = a.positions[i] - a.left;
    const int64_t to = inverse == 0 ? 0 : a.positions[i] + a.right + 1;
    row[s] = {head,
              i,
              from < 0 ? 0 : static_cast<size_t>(from),
              to < 0 ? 0 : (static_cast<size_t>(to) < a.m ? static_cast<size_t>(to) : a.m),
              static_cast<C>(top),
              static_cast<C>(inverse),
              static_cast<C>(mean),
              static_cast<C>(a.scale[head]),
              0};
  }

  void pack(size_t first, size_t many) {
    const S* k = static_cast<const S*>(a.k) + offset(first, a.k_row);
    const S* v = static_cast<const S*>(a.v) + offset(first, a.v_row);
    pack_rows_as_lanes<S, N>(k, a.k_row, many, a.d, keys_across);
    pack_rows_as_lanes<S, N>(v, a.v_row, many, a.dv, values_across);
    const size_t width = round_up(a.d, kTile);
    // 0·NaN would reach who does not see it; who does has NaN in ds already.
    if (!pack_columns_as_lanes<S, N>(k, a.k_row, many, a.d, keys, kBackKeys)) {
      clear_broken(keys, kBackKeys * width);
    }
    for (size_t j = many; j < round_up(many, kTile); ++j) {
      for (size_t c = 0; c < width; ++c) {
        keys[c / kTile * kTile * kBackKeys + j * kTile + c % kTile] = 0;
      }
    }
  }

  // p and ds of R rows, the strip at `r` of the group, and what they add to dq.
  template <int R>
  void weights(size_t s, size_t r, size_t first, size_t many, size_t from, size_t to) {
    const C *query[R], *given[R], *slope[R];
    for (size_t i = 0; i < R; ++i) {
      query[i] = q + (s + i) * d_wide;
      given[i] = grad + (s + i) * dv_wide;
      slope[i] = ds + (r + i) * kBackKeys + from;
    }
    for (size_t j = from; j < to; j += kTile) {
      V x[R][2] = {};
      multiply<C, N, R>(query, keys_across + j * a.d, a.d, x);
      store_tile(p + r * kBackKeys + j, x);
    }
    for (size_t j = from; j < to; j += kTile) {
      V x[R][2] = {};
      multiply<C, N, R>(given, values_across + j * a.dv, a.dv, x);
      store_tile(ds + r * kBackKeys + j, x);
    }
    for (size_t i = 0; i < R; ++i) one_row(s + i, r + i, first, many, from, to);
    for (size_t c = 0; c < a.d; c += kTile) {
      V sum[R][2] = {};
      multiply<C, N, R>(slope, keys + c * kBackKeys + from * kTile, to - from, sum);
      add_tile(sum, dq + s * d_wide + c, d_wide);
    }
  }

  template <int R>
  SOFTSCOPE_INLINE static void store_tile(C* to, const V (&x)[R][2]) {
    for (size_t i = 0; i < R; ++i) {
      store_raw<C, N>(to + i * kBackKeys, x[i][0]);
      store_raw<C, N>(to + i * kBackKeys + N, x[i][1]);
    }
  }

  // From scores and dp in the buffers to weights and ds.
  SOFTSCOPE_INLINE void one_row(size_t s, size_t r, size_t first, size_t many, size_t from,
                                size_t to) {
    Row& at = row[s];
    const size_t begin = start(at, first, many), end = stop(at, first, many);
    C* x = p + r * kBackKeys;
    C* dx = ds + r * kBackKeys;
    const bool plain = a.mask_type == kNoMask && begin <= from && end >= to;
    if (!plain) {
      read_mask<C>(a, at.head, at.i, first, many, bias);
      for (size_t j = from; j < begin && j < to; ++j) bias[j] = -kInfinity<C>;
      for (size_t j = end > from ? end : from; j < to; ++j) bias[j] = -kInfinity<C>;
    }
    const C cap = static_cast<C>(a.softcap);
    const V hidden = fill<C, N>(-kInfinity<C>), none = {};
    V dscale = {};
    for (size_t j = from; j < to; j += kTile) {
      V raw[2], score[2], e[2], slope[2];
      for (size_t h = 0; h < 2; ++h) {
        raw[h] = load_raw<C, N>(x + j + h * N);
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
        const V back = weight * (load_raw<C, N>(dx + j + h * N) - at.mean) * slope[h];
        dscale += score[h] == hidden ? none : back * raw[h];
        store_raw<C, N>(x + j + h * N, weight);
        store_raw<C, N>(dx + j + h * N, score[h] == hidden ? none : back * at.scale);
      }
    }
    at.dscale += static_cast<double>(sum_lanes<C, N>(dscale));
  }

  // sum[key] += Σ over the rows of the group weight[row][key]·of[row].
  void add_transposed(const C* weight, const C* of, size_t wide, C* sum, size_t group, size_t from,
                      size_t to, size_t many) {
    to = to < many ? to : many;
    for (size_t j = from; j < to; j += kStrip) {
      with_rows(to - j, [&]<int R>() {
        for (size_t c = 0; c < wide; c += kTile) {
          V x[R][2] = {};
          multiply_transposed<C, N, R>(weight + j, kBackKeys, of + c, wide, group, x);
          add_tile(x, sum + j * wide + c, wide);
        }
      });
    }
  }
};

// A row of sums over all tasks, rounded to the type of the arrays.
template <class S, int N>
void add_up(const void* sums, size_t parts, size_t stride, size_t n, void* out) {
  using C = Compute<S>;
  const C* from = static_cast<const C*>(sums);
  S* to = static_cast<S*>(out);
  for (size_t c = 0; c < n; c += N) {
    Vec<C, N> total = {};
    for (size_t i = 0; i < parts; ++i) total += load_raw<C, N>(from + i * stride + c);
    if (n - c >= N) {
      store<S, N>(to + c, total);
    } else {
      store_first<S, N>(to + c, n - c, total);
    }
  }
}

}  // namespace
}  // namespace softscope
