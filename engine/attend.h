// Attention without its matrix of weights (Dao et al. 2022): keys and values a block at a time, for
// each row the output so far and its state, which move whenever a larger logit comes.
//
// The statistics ride along: three multiply-adds for N scores, beside the 2·(d + dv) that scores
// and output take.
#pragma once

#include "logits.h"
#include "multiply.h"
#include "pack.h"
#include "row_state.h"

namespace softscope {
namespace {

constexpr size_t kKeys = 256;  // in a block: a strip's scores of it fit the first-level cache

template <class S, int N, bool Output, bool Statistics>
class Attend {
  using C = Compute<S>;
  using V = Vec<C, N>;
  static constexpr size_t kTile = 2 * N;

 public:
  static size_t bytes(const Attention& a, size_t count) {
    const size_t wide = Output ? round_up(a.dv, kTile) : 0;
    const size_t copies = sizeof(S) == sizeof(C) ? 0 : count * a.d;
    return (kKeys * (a.d + wide + kStrip + 2) + count * wide + copies) * sizeof(C) +
           count * (sizeof(RowState) + sizeof(Row)) + 640;
  }

  Attend(const Attention& attention, const AttentionRows& rows)
      : a(attention), count(rows.count), wide(Output ? round_up(a.dv, kTile) : 0) {
    char* memory = static_cast<char*>(rows.scratch);
    const auto take = [&]<class T>(T*& to, size_t entries) {
      to = reinterpret_cast<T*>(memory);
      memory += round_up(entries * sizeof(T), 64);
    };
    take(states, count);
    take(row, count);
    take(keys, kKeys * a.d);
    take(values, kKeys * wide);
    take(scores, kKeys * kStrip);
    take(bias, kKeys);
    take(own_bias, kKeys);
    take(output, count * wide);
    C* copy = nullptr;
    if constexpr (sizeof(S) != sizeof(C)) take(copy, count * a.d);
    for (size_t s = 0; s < count; ++s) {
      const size_t head = (rows.first + s) / a.n, i = (rows.first + s) % a.n;
      const S* q = static_cast<const S*>(a.q) + offset(head, a.q_head) + offset(i, a.q_row);
      states[s] = RowState();
      row[s] = {head, i, lowest(i), highest(i), nullptr};
      if constexpr (sizeof(S) != sizeof(C)) {
        for (size_t c = 0; c < a.d; c += N) {
          const size_t left = a.d - c;
          if (left >= N) {
            store_raw<C, N>(copy + c, load<S, N>(q + c));
          } else {
            store_first<C, N>(copy + c, left, load_first<S, N>(q + c, left, 0));
          }
        }
        row[s].q = copy;
        copy += a.d;
      } else {
        row[s].q = q;
      }
    }
    for (size_t i = 0; i < count * wide; ++i) output[i] = 0;
  }

  void run() {
    size_t from = a.m, to = 0;
    for (size_t s = 0; s < count; ++s) {
      if (row[s].from >= row[s].to) continue;
      from = row[s].from < from ? row[s].from : from;
      to = row[s].to > to ? row[s].to : to;
    }
    for (size_t first = from / kKeys * kKeys; first < to; first += kKeys) {
      const size_t many = a.m - first < kKeys ? a.m - first : kKeys;
      pack_rows_as_lanes<S, N>(static_cast<const S*>(a.k) + offset(first, a.k_row), a.k_row, many,
                               a.d, keys);
      broken = false;
      if constexpr (Output) {
        broken = !pack_columns_as_lanes<S, N>(static_cast<const S*>(a.v) + offset(first, a.v_row),
                                              a.v_row, many, a.dv, values, kKeys);
        if (broken) clear_broken(many);
      }
      shared_bias = false;
      for (size_t s = 0; s < count; s += kStrip) {
        with_rows(count - s, [&]<int R>() { strip<R>(s, first, many); });
      }
    }
    for (size_t s = 0; s < count; ++s) finish(s);
  }

 private:
  struct Row {
    size_t head, i;
    size_t from, to;  // the keys that it may see
    const C* q;
  };

  const Attention& a;
  const size_t count, wide;
  RowState* states;
  Row* row;
  C *keys, *values, *scores, *bias, *own_bias, *output;
  bool broken = false;       // some value of the block is infinite or NaN
  bool shared_bias = false;  // `bias` holds what the mask adds for every row of the block

  static ptrdiff_t offset(size_t i, ptrdiff_t stride) { return static_cast<ptrdiff_t>(i) * stride; }

  size_t lowest(size_t i) const {
    const int64_t from = a.positions[i] - a.left;
    return from < 0 ? 0 : static_cast<size_t>(from);
  }
  size_t highest(size_t i) const {
    const int64_t to = a.positions[i] + a.right + 1;
    return to < 0 ? 0 : static_cast<size_t>(to) < a.m ? static_cast<size_t>(to) : a.m;
  }

  // R rows from s on against `many` keys from `first` on.
  template <int R>
  void strip(size_t s, size_t first, size_t many) {
    size_t from = kKeys, to = 0;
    size_t begins[R], ends[R];
    for (int r = 0; r < R; ++r) {
      const Row& at = row[s + static_cast<size_t>(r)];
      begins[r] = at.from > first ? (at.from - first < many ? at.from - first : many) : 0;
      ends[r] = at.to > first ? (at.to - first < many ? at.to - first : many) : 0;
      if (begins[r] >= ends[r]) continue;
      from = begins[r] < from ? begins[r] : from;
      to = ends[r] > to ? ends[r] : to;
    }
    if (from >= to) return;
    from = from / kTile * kTile;
    const size_t end = round_up(to, kTile);

    const C* q[R];
    C scale[R];
    for (int r = 0; r < R; ++r) {
      const Row& at = row[s + static_cast<size_t>(r)];
      q[r] = at.q;
      scale[r] = static_cast<C>(a.scale[at.head]);
    }
    for (size_t j = from; j < end; j += kTile) {
      V sum[R][2] = {};
      multiply<C, N, R>(q, keys + j * a.d, a.d, sum);
      for (int r = 0; r < R; ++r) {
        C* x = scores + static_cast<size_t>(r) * kKeys + j;
        store_raw<C, N>(x, sum[r][0] * scale[r]);
        store_raw<C, N>(x + N, sum[r][1] * scale[r]);
      }
    }
    for (int r = 0; r < R; ++r) {
      weigh(s + static_cast<size_t>(r), scores + static_cast<size_t>(r) * kKeys, from, end,
            begins[r], ends[r], first);
    }
    if constexpr (Output) {
      const C* p[R];
      for (int r = 0; r < R; ++r) p[r] = scores + static_cast<size_t>(r) * kKeys + from;
      for (size_t c = 0; c < wide; c += kTile) {
        V sum[R][2];
        C* out = output + s * wide + c;
        for (size_t r = 0; r < R; ++r) {
          sum[r][0] = load_raw<C, N>(out + r * wide);
          sum[r][1] = load_raw<C, N>(out + r * wide + N);
        }
        multiply<C, N, R>(p, values + c * kKeys + from * kTile, to - from, sum);
        for (size_t r = 0; r < R; ++r) {
          store_raw<C, N>(out + r * wide, sum[r][0]);
          store_raw<C, N>(out + r * wide + N, sum[r][1]);
        }
      }
    }
  }

  // Scores x[begin, end) of a row, of which it may see [from, to), become weights so far.
  SOFTSCOPE_INLINE void weigh(size_t s, C* x, size_t begin, size_t end, size_t from, size_t to,
                              size_t first) {
    RowState& state = states[s];
    const C m = logits(s, x, begin, end, from, to, first);
    if (!(m > -kInfinity<C>)) {  // nothing to see, or NaN alone
      for (size_t j = begin; j < end; ++j) {
        state.nan |= x[j] != x[j];
        x[j] = 0;
      }
      return;
    }
    if (broken) poison(s, x, first, from, to);
    if (static_cast<double>(m) > state.m) {
      const double shrink = state.move(static_cast<double>(m));
      if constexpr (Output) {
        C* out = output + s * wide;
        for (size_t c = 0; c < wide; c += N) {
          store_raw<C, N>(out + c, load_raw<C, N>(out + c) * static_cast<C>(shrink));
        }
      }
    }
    if (state.m == kInfinity<double>) {
      for (size_t j = begin; j < end; ++j) state.nan |= x[j] != x[j];
    }
    const V maximum = fill<C, N>(static_cast<C>(state.m));
    RowSums<C, N, 4, Statistics> sums;
    size_t j = begin;
    for (; j + 4 * N <= end; j += 4 * N) sums.step(x + j, maximum);
    if (j < end) {
      RowSums<C, N, 2, Statistics> rest;
      rest.step(x + j, maximum);
      rest.add_to(state);
    }
    sums.add_to(state);
  }

  // The logits in x; their maximum.
  SOFTSCOPE_INLINE C logits(size_t s, C* x, size_t begin, size_t end, size_t from, size_t to,
                            size_t first) {
    RowState& state = states[s];
    if (a.mask_type != kNoMask || a.softcap != 0) {
      const bool shared = a.mask_row == 0 && a.mask_head == 0;
      if (!shared || !shared_bias) {
        const size_t many = a.m - first < kKeys ? a.m - first : kKeys;
        read_mask<C>(a, row[s].head, row[s].i, first, many, bias);
        for (size_t j = many; j < round_up(many, kTile); ++j) bias[j] = -kInfinity<C>;
        shared_bias = shared;
      }
      const C* add = bias;
      if (from > begin || to < end) {  // the rows of a strip see different keys
        for (size_t k = begin; k < end; ++k) own_bias[k] = bias[k];
        hide(own_bias, begin, end, from, to);
        add = own_bias;
      }
      C top;
      const C m = shaped<C, N>(x, begin, end, add, static_cast<C>(a.softcap), top);
      if (static_cast<double>(top) > state.highest) state.highest = static_cast<double>(top);
      return m;
    }
    hide(x, begin, end, from, to);
    const C m = largest(x, begin, end);
    if (static_cast<double>(m) > state.highest) state.highest = static_cast<double>(m);
    return m;
  }

  SOFTSCOPE_INLINE static C largest(const C* x, size_t begin, size_t end) {
    V m0 = fill<C, N>(-kInfinity<C>), m1 = m0;
    for (size_t j = begin; j < end; j += kTile) {
      m0 = max(load_raw<C, N>(x + j), m0);
      m1 = max(load_raw<C, N>(x + j + N), m1);
    }
    return max_lane<C, N>(max(m0, m1));
  }

  SOFTSCOPE_INLINE static void hide(C* x, size_t begin, size_t end, size_t from, size_t to) {
    for (size_t j = begin; j < from && j < end; ++j) x[j] = -kInfinity<C>;
    for (size_t j = to > begin ? to : begin; j < end; ++j) x[j] = -kInfinity<C>;
  }

  // Infinite values and NaN out of the packed block: 0·NaN would reach who does not see them.
  void clear_broken(size_t many) {
    for (size_t c = 0; c < wide; c += kTile) {
      for (size_t i = 0; i < many * kTile; ++i) {
        C& value = values[c * kKeys + i];
        if (!(value - value == 0)) value = 0;
      }
    }
  }

  // Who sees such a value gets NaN there.
  void poison(size_t s, const C* x, size_t first, size_t from, size_t to) {
    for (size_t j = from; j < to; ++j) {
      if (x[j] == -kInfinity<C>) continue;
      const S* v = static_cast<const S*>(a.v) + offset(first + j, a.v_row);
      for (size_t c = 0; c < a.dv; ++c) {
        const C value = load_first<S, N>(v + c, 1, 0)[0];
        if (!(value - value == 0)) output[s * wide + c] = static_cast<C>(__builtin_nan(""));
      }
    }
  }

  void finish(size_t s) {
    RowState& state = states[s];
    const Row& at = row[s];
    const double z = state.z();
    if (z != z && state.m != kInfinity<double>) state.nan = true;
    if (Output) {
      double by = 0;
      if (state.nan) {
        by = __builtin_nan("");
      } else if (state.m > -kInfinity<double>) {
        by = 1 / z;
        if (a.sink != nullptr) {
          const double sink = a.sink[at.head], top = sink > state.m ? sink : state.m;
          const Vec<double, 2> e = exp_nonpositive<2>(Vec<double, 2>{state.m - top, sink - top});
          by = e[0] / (z * e[0] + e[1]);
        }
      }
      S* out = static_cast<S*>(a.out) + offset(at.head, a.out_head) + offset(at.i, a.out_row);
      const C* from = output + s * wide;
      const C factor = static_cast<C>(by);
      size_t c = 0;
      for (; c + N <= a.dv; c += N) store<S, N>(out + c, load_raw<C, N>(from + c) * factor);
      if (c < a.dv) store_first<S, N>(out + c, a.dv - c, load_raw<C, N>(from + c) * factor);
    }
    if (a.state != nullptr) {
      double* to = a.state + offset(at.head, a.state_head) + offset(at.i, a.state_row);
      const double nan = __builtin_nan("");
      if (state.nan) {
        state.m = state.highest = nan;
      }
      if (state.nan || state.m == kInfinity<double>) {
        state.c = state.r = state.u = state.t = state.w = nan;
      }
      const double all[] = {state.n, state.c, state.m, state.r,
                            state.u, state.t, state.w, state.highest};
      __builtin_memcpy(to, all, sizeof all);
    }
  }
};

}  // namespace
}  // namespace softscope
