// Attention without its matrix of weights (Dao et al. 2022): keys and values a block at a time, for
// each row the output so far and its state, which move whenever a larger logit comes.
//
// The statistics ride along: three multiply-adds for N scores, beside the 2·(d + dv) that scores
// and output take.
#pragma once

#include "attention/few_queries.h"
#include "attention/mask_and_softcap.h"
#include "attention/multiply.h"
#include "attention/pack.h"
#include "attention/running_state.h"
#include "attention/write_results.h"

namespace softscope {
namespace {

constexpr size_t kKeys = 256;   // in a block: a strip's scores of it fit the first-level cache
constexpr size_t kChain = 128;  // products that are added up before they join the output
constexpr size_t kFew = 4;      // rows for which packing the keys costs more than it saves

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
      : a(attention),
        task(rows),
        count(rows.count),
        direct(rows.count <= kFew),
        wide(Output ? round_up(a.dv, kTile) : 0) {
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
    take(block_output, kStrip * wide);
    C* copy = nullptr;
    if constexpr (sizeof(S) != sizeof(C)) take(copy, count * a.d);
    for (size_t s = 0; s < count; ++s) {
      const size_t head = (rows.first + s) / a.n, i = (rows.first + s) % a.n;
      const S* q = static_cast<const S*>(a.q) + offset(head, a.q_head) + offset(i, a.q_row);
      states[s] = RowState();
      row[s] = {head, i, 0, 0, nullptr};
      visible_keys(row[s]);
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
      shared_bias = false;
      if (direct) {
        with_rows(count, [&]<int R>() { strip<R>(0, first, many); });
        continue;
      }
      pack_rows_as_lanes<S, N>(static_cast<const S*>(a.k) + offset(first, a.k_row), a.k_row, many,
                               a.d, keys);
      broken = false;
      if constexpr (Output) {
        broken = !pack_columns_as_lanes<S, N>(static_cast<const S*>(a.v) + offset(first, a.v_row),
                                              a.v_row, many, a.dv, values, kKeys);
        if (broken) clear_broken(many);
      }
      for (size_t s = 0; s < count; s += kStrip) {
        with_rows(count - s, [&]<int R>() { strip<R>(s, first, many); });
      }
    }
    for (size_t s = 0; s < count; ++s) {
      if (task.part == nullptr) {
        finish<S, N, Output>(a, row[s].head, row[s].i, states[s], output + s * wide);
      } else {
        char* to_part = static_cast<char*>(task.part) + s * part_bytes(a);
        __builtin_memcpy(to_part, &states[s], sizeof(RowState));
        if (Output) __builtin_memcpy(to_part + kPartOutput, output + s * wide, a.dv * sizeof(C));
      }
    }
  }

 private:
  struct Row {
    size_t head, i;
    size_t from, to;  // the keys that it may see
    const C* q;
  };

  const Attention& a;
  const AttentionRows& task;
  const size_t count;
  const bool direct;  // keys and values are read where they are
  const size_t wide;
  RowState* states;
  Row* row;
  C *keys, *values, *scores, *bias, *own_bias, *output, *block_output;
  bool broken = false;       // some value of the block is infinite or NaN
  bool shared_bias = false;  // `bias` holds what the mask adds for every row of the block

  void visible_keys(Row& at) const {
    const int64_t from = a.positions[at.i] - a.left, to = a.positions[at.i] + a.right + 1;
    at.from = from > static_cast<int64_t>(task.from) ? static_cast<size_t>(from) : task.from;
    at.to = to < static_cast<int64_t>(task.to) ? (to < 0 ? 0 : static_cast<size_t>(to)) : task.to;
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
    if (direct) {
      dots<S, N, R>(a, q, scale, first, from, end, many, scores, kKeys);
    } else {
      for (size_t j = from; j < end; j += kTile) {
        V sum[R][2] = {};
        multiply<C, N, R>(q, keys + j * a.d, a.d, sum);
        for (int r = 0; r < R; ++r) {
          C* x = scores + static_cast<size_t>(r) * kKeys + j;
          store_raw<C, N>(x, sum[r][0] * scale[r]);
          store_raw<C, N>(x + N, sum[r][1] * scale[r]);
        }
      }
    }
    for (int r = 0; r < R; ++r) {
      weigh(s + static_cast<size_t>(r), scores + static_cast<size_t>(r) * kKeys, from, end,
            begins[r], ends[r], first);
    }
    if constexpr (Output) {
      if (direct) {
        add_few<R>(s, first, from, to);
        return;
      }
      const C* p[R];
      for (int r = 0; r < R; ++r) p[r] = scores + static_cast<size_t>(r) * kKeys + from;
      for (size_t c = 0; c < wide; c += kTile) {
        // Each from 0, and then added: what is rounded away grows with the length of a chain.
        for (size_t j = from; j < to; j += kChain) {
          const size_t depth = to - j < kChain ? to - j : kChain;
          V sum[R][2] = {};
          const C* at[R];
          for (int r = 0; r < R; ++r) at[r] = p[r] + (j - from);
          multiply<C, N, R>(at, values + c * kKeys + j * kTile, depth, sum);
          add_tile(sum, output + s * wide + c, wide);
        }
      }
    }
  }

  // The outputs of R rows from s on gain Σ p·v over keys [from, to) of the block.
  template <int R>
  SOFTSCOPE_INLINE void add_few(size_t s, size_t first, size_t from, size_t to) {
    for (size_t i = 0; i < R * wide; ++i) block_output[i] = 0;
    add_values<S, N, R>(a, scores, kKeys, first, from, to, block_output, wide);
    for (size_t r = 0; r < R; ++r) {
      C* out = output + (s + r) * wide;
      const C* sums = block_output + r * wide;
      V odd = {};
      for (size_t c = 0; c < wide; c += N) {
        const V sum = load_raw<C, N>(sums + c);
        odd += sum - sum;
      }
      if (!(sum_lanes<C, N>(odd) == 0)) {
        add_broken_values(s + r, scores + r * kKeys, first, from, to);
        continue;
      }
      for (size_t c = 0; c < wide; c += N) {
        store_raw<C, N>(out + c, load_raw<C, N>(out + c) + load_raw<C, N>(sums + c));
      }
    }
  }

  // The same where values are infinite or NaN, which must not reach who does not see them. Who sees
  // them has to be found out again, as weights have taken the place of the logits.
  void add_broken_values(size_t s, const C* x, size_t first, size_t from, size_t to) {
    const size_t many = a.m - first < kKeys ? a.m - first : kKeys, end = round_up(to, kTile);
    const Row& at = row[s];
    C* again = scores + (kStrip - 1) * kKeys;  // no strip of few rows uses this
    const C* const q[1] = {at.q};
    const C scale[1] = {static_cast<C>(a.scale[at.head])};
    dots<S, N, 1>(a, q, scale, first, from, end, many, again, kKeys);
    shared_bias = false;
    const size_t begin = at.from > first ? at.from - first : 0;
    const size_t stop = at.to - first < many ? at.to - first : many;
    logits(s, again, from, end, begin, stop, first);
    for (size_t j = from; j < to; ++j) {
      const S* v = static_cast<const S*>(a.v) + offset(first + j, a.v_row);
      for (size_t c = 0; c < a.dv; ++c) {
        const C value = load_first<S, N>(v + c, 1, 0)[0];
        if (value - value == 0) output[s * wide + c] += x[j] * value;
      }
    }
    poison(s, again, first, begin, stop);
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
};

}  // namespace
}  // namespace softscope
