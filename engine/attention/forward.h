// Attention without its matrix of weights (Dao et al. 2022): keys and values a block at a time.
// Each row keeps its output and its state so far, and both are rescaled when a larger logit comes.
//
// The statistics come along cheaply: three multiply-adds for N scores, beside the 2·(d + dv) for
// scores and output.
#pragma once

#include "attention/few_queries.h"
#include "attention/mask.h"
#include "attention/multiply.h"
#include "attention/pack.h"
#include "attention/running_state.h"
#include "attention/write_results.h"

namespace softscope {
namespace {

constexpr size_t kKeys = 256;   // in a block: its scores for one strip fit the first-level cache
constexpr size_t kChain = 128;  // products that are added up before they join the output
constexpr int kFewRows = 4;     // rows for which packing the keys costs more than it saves

template <class S, int N, bool Output, bool Statistics>
class Forward {
  using C = Compute<S>;
  using V = Vec<C, N>;
  static constexpr size_t kTile = 2 * N;

 public:
  Forward(const Attention& attention, const AttentionTask& rows)
      : a(attention),
        task(rows),
        count(rows.count),
        in_place(a.heads * a.n <= kFewRows),
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
    take(scores.data, kKeys * kStrip);
    take(bias, kKeys);
    take(own_bias, kKeys);
    take(output.data, count * wide);
    take(totals, count);
    take(total_output.data, count * wide);
    take(block_output.data, kStrip * wide);
    C* copy = nullptr;
    if constexpr (sizeof(S) != sizeof(C)) take(copy, count * a.d);
    for (size_t s = 0; s < count; ++s) {
      const size_t head = (rows.first + s) / a.n, i = (rows.first + s) % a.n;
      states[s] = totals[s] = kNoKeys;
      row[s] = {.head = head, .i = i, .visible = visible_keys(i), .q = nullptr};
      const S* q = row_of<const S>(a.q, head, i);
      if constexpr (sizeof(S) == sizeof(C)) {
        row[s].q = q;
      } else {
        row[s].q = copy;
        widen_query(q, copy);
        copy += a.d;
      }
    }
    for (size_t i = 0; i < count * wide; ++i) output.data[i] = 0;
  }

  void run() {
    KeyRange seen = {.begin = a.m, .end = 0};  // by any row
    for (size_t s = 0; s < count; ++s) widen(seen, row[s].visible);
    static_assert(kPartKeys % kKeys == 0);
    const bool several = !empty(seen) && seen.begin / kPartKeys != (seen.end - 1) / kPartKeys;
    for (size_t i = 0; several && i < count * wide; ++i) total_output.data[i] = 0;
    if (task.part != nullptr) leave_nothing(seen);
    for (size_t first = round_down(seen.begin, kKeys); first < seen.end; first += kKeys) {
      const KeyBlock block = block_at(first, kKeys, a);
      bias_is_shared = false;
      if (in_place) {
        with_rows(count, [&]<int R>() { strip<R>(0, block); });
      } else {
        pack(block);
        for (size_t s = 0; s < count; s += kStrip) {
          with_rows(count - s, [&]<int R>() { strip<R>(s, block); });
        }
      }
      const size_t next = first + kKeys;
      const bool ends = next % kPartKeys == 0 || next >= seen.end;
      if (ends && (several || task.part != nullptr)) end_part(first);
    }
    for (size_t s = 0; task.part == nullptr && s < count; ++s) {
      write_results<S, N, Output>(a, row[s].head, row[s].i, (several ? totals : states)[s],
                                  (several ? total_output : output)[s]);
    }
  }

 private:
  struct Row {
    size_t head, i;
    KeyRange visible;
    const C* q;
  };

  const Attention& a;
  const AttentionTask& task;
  const size_t count;
  const bool in_place;            // keys and values are read where they are, and not packed
  const size_t wide;              // entries of a row of output, rounded up
  RunningState *states, *totals;  // over a part of the keys, and over the parts before it
  Row* row;
  C *keys, *values;  // of a block, packed
  C *bias, *own_bias;
  Buffer<C, kKeys> scores;  // of a strip
  Strided<C> output{nullptr, wide}, total_output{nullptr, wide}, block_output{nullptr, wide};
  bool values_not_finite = false;  // some value of the block is infinite or NaN
  bool bias_is_shared = false;     // `bias` holds what the mask adds in every row of the block

  // Where to leave the result of a row for the part with this key.
  char* left(size_t key, size_t s) const {
    const size_t part = (key - task.keys.begin) / kPartKeys;
    return static_cast<char*>(task.part) + part * task.stride + s * part_bytes(a, sizeof(C));
  }

  // Leaves empty states for the parts of which no key is seen.
  void leave_nothing(KeyRange seen) const {
    for (size_t first = task.keys.begin; first < task.keys.end; first += kPartKeys) {
      if (first < seen.end && first + kPartKeys > seen.begin) continue;
      for (size_t s = 0; s < count; ++s) __builtin_memcpy(left(first, s), &kNoKeys, sizeof kNoKeys);
    }
  }

  // Puts away the sums over the part of the keys that this key is in, and begins the next.
  void end_part(size_t key) {
    for (size_t s = 0; s < count; ++s) {
      if (task.part == nullptr) {
        merge_part<Output>(totals[s], total_output[s], states[s], output[s], wide);
      } else {
        char* to = left(key, s);
        __builtin_memcpy(to, &states[s], sizeof(RunningState));
        if (Output) __builtin_memcpy(to + kPartOutput, output[s], a.dv * sizeof(C));
      }
      states[s] = kNoKeys;
    }
    for (size_t i = 0; i < count * wide; ++i) output.data[i] = 0;
  }

  KeyRange visible_keys(size_t i) const {
    const int64_t from = a.positions[i] - a.left, to = a.positions[i] + a.right + 1;
    const auto begin = static_cast<int64_t>(task.keys.begin);
    const auto end = static_cast<int64_t>(task.keys.end);
    return {.begin = static_cast<size_t>(from > begin ? from : begin),
            .end = static_cast<size_t>(to < end ? (to < 0 ? 0 : to) : end)};
  }

  void widen_query(const S* q, C* to) const {
    for (size_t c = 0; c < a.d; c += N) {
      const size_t left = a.d - c;
      if (left >= N) {
        store_raw<C, N>(to + c, load<S, N>(q + c));
      } else {
        store_first<C, N>(to + c, left, load_first<S, N>(q + c, left, 0));
      }
    }
  }

  void pack(KeyBlock block) {
    pack_rows_as_lanes<S, N>({.data = row_of<const S>(a.k, 0, block.first),
                              .row = a.k.row,
                              .count = block.count,
                              .width = a.d},
                             keys);
    values_not_finite = false;
    if constexpr (Output) {
      values_not_finite =
          !pack_columns_as_lanes<S, N>({.data = row_of<const S>(a.v, 0, block.first),
                                        .row = a.v.row,
                                        .count = block.count,
                                        .width = a.dv},
                                       values, kKeys);
      if (values_not_finite) clear_not_finite(block.count);
    }
  }

  // R rows from s on against a block of keys.
  template <int R>
  void strip(size_t s, KeyBlock block) {
    KeyRange visible[R], seen = {.begin = kKeys, .end = 0};
    Queries<C, R> queries;
    for (int r = 0; r < R; ++r) {
      const Row& at = row[s + static_cast<size_t>(r)];
      visible[r] = within(block, at.visible);
      widen(seen, visible[r]);
      queries.q[r] = at.q;
      queries.scale[r] = static_cast<C>(a.scale[at.head]);
    }
    if (empty(seen)) return;
    seen.begin = round_down(seen.begin, kTile);
    const KeyRange computed = {.begin = seen.begin, .end = round_up(seen.end, kTile)};
    if constexpr (R <= kFewRows) {
      if (in_place) {
        dots<S, N, R>(a, queries, block, computed, scores);
        weigh_rows(s, visible, computed, block);
        if constexpr (Output) add_in_place<R>(s, block, seen);
        return;
      }
    }
    for (size_t j = computed.begin; j < computed.end; j += kTile) {
      V sum[R][2] = {};
      multiply<C, N, R>(queries.q, keys + j * a.d, a.d, sum);
      for (int r = 0; r < R; ++r) {
        C* x = scores[static_cast<size_t>(r)] + j;
        store_raw<C, N>(x, sum[r][0] * queries.scale[r]);
        store_raw<C, N>(x + N, sum[r][1] * queries.scale[r]);
      }
    }
    weigh_rows(s, visible, computed, block);
    if constexpr (Output) add_packed<R>(s, seen);
  }

  template <int R>
  SOFTSCOPE_INLINE void weigh_rows(size_t s, const KeyRange (&visible)[R], KeyRange computed,
                                   KeyBlock block) {
    for (size_t r = 0; r < R; ++r) weigh(s + r, scores[r], computed, visible[r], block);
  }

  // The outputs of R rows from s on gain Σ p·v over some keys of the packed block.
  template <int R>
  SOFTSCOPE_INLINE void add_packed(size_t s, KeyRange seen) {
    for (size_t c = 0; c < wide; c += kTile) {
      // Each chain starts from 0 and is added at its end: rounding errors grow with a chain's
      // length. Chains end at multiples of kChain wherever they begin, so that a row's sums do not
      // depend on what the other rows of its strip see.
      for (size_t j = seen.begin, end; j < seen.end; j = end) {
        end = round_down(j, kChain) + kChain;
        if (end > seen.end) end = seen.end;
        const size_t depth = end - j;
        V sum[R][2] = {};
        const C* p[R];
        for (size_t r = 0; r < R; ++r) p[r] = scores[r] + j;
        multiply<C, N, R>(p, values + c * kKeys + j * kTile, depth, sum);
        add_tile(sum, Strided<C>{output[s] + c, wide});
      }
    }
  }

  // The same where the values are not packed.
  template <int R>
  SOFTSCOPE_INLINE void add_in_place(size_t s, KeyBlock block, KeyRange seen) {
    for (size_t i = 0; i < R * wide; ++i) block_output.data[i] = 0;
    add_values<S, N, R>(a, scores, block, seen, block_output);
    for (size_t r = 0; r < R; ++r) {
      C* out = output[s + r];
      const C* sums = block_output[r];
      V odd = {};
      for (size_t c = 0; c < wide; c += N) {
        const V sum = load_raw<C, N>(sums + c);
        odd += sum - sum;
      }
      if (!(sum_lanes<C, N>(odd) == 0)) {
        add_finite_values(s + r, scores[r], block, seen);
        continue;
      }
      for (size_t c = 0; c < wide; c += N) {
        store_raw<C, N>(out + c, load_raw<C, N>(out + c) + load_raw<C, N>(sums + c));
      }
    }
  }

  // The same where values are infinite or NaN, which must not reach rows that do not see them.
  // Weights have taken the place of the logits, so what the row sees has to be found out again.
  void add_finite_values(size_t s, const C* weights, KeyBlock block, KeyRange seen) {
    const Row& at = row[s];
    C* again = scores[kStrip - 1];  // rows read in place never use this one
    const KeyRange computed = {.begin = seen.begin, .end = round_up(seen.end, kTile)};
    const Queries<C, 1> query = {.q = {at.q}, .scale = {static_cast<C>(a.scale[at.head])}};
    dots<S, N, 1>(a, query, block, computed, {again, kKeys});
    bias_is_shared = false;
    const KeyRange visible = within(block, at.visible);
    logits(s, again, computed, visible, block);
    for (size_t j = seen.begin; j < seen.end; ++j) {
      const S* v = row_of<const S>(a.v, 0, block.first + j);
      for (size_t c = 0; c < a.dv; ++c) {
        const C value = load_first<S, N>(v + c, 1, 0)[0];
        if (value - value == 0) output[s][c] += weights[j] * value;
      }
    }
    poison(s, again, visible, block);
  }

  // Turns the scores of a row into weights, which count from its maximum so far.
  SOFTSCOPE_INLINE void weigh(size_t s, C* x, KeyRange computed, KeyRange visible, KeyBlock block) {
    RunningState& state = states[s];
    const C m = logits(s, x, computed, visible, block);
    if (!(m > -kInfinity<C>)) {  // nothing to see, or only NaN
      for (size_t j = computed.begin; j < computed.end; ++j) {
        if (x[j] != x[j]) {
          state.nan = true;
          state.count += 1;  // visible all the same
        }
        x[j] = 0;
      }
      return;
    }
    if (values_not_finite) poison(s, x, visible, block);
    if (static_cast<double>(m) > state.m) {
      const double shrink = state.raise(static_cast<double>(m));
      if constexpr (Output) {
        C* out = output[s];
        for (size_t c = 0; c < wide; c += N) {
          store_raw<C, N>(out + c, load_raw<C, N>(out + c) * static_cast<C>(shrink));
        }
      }
    }
    if (state.m == kInfinity<double>) {
      for (size_t j = computed.begin; j < computed.end; ++j) state.nan |= x[j] != x[j];
    }
    const V maximum = fill<C, N>(static_cast<C>(state.m));
    RowSums<C, N, Statistics> sums;
    size_t j = computed.begin;
    for (; j + 4 * N <= computed.end; j += 4 * N) sums.template step<4>(x + j, maximum);
    if (j < computed.end) sums.template step<2>(x + j, maximum);
    sums.add_to(state);
  }

  // Turns the scores of a row into logits. Returns the largest.
  SOFTSCOPE_INLINE C logits(size_t s, C* x, KeyRange computed, KeyRange visible, KeyBlock block) {
    Largest<C> largest;
    if (a.mask.type != kNoMask || a.softcap != 0) {
      read_bias(s, block);
      const C* add = bias;
      if (visible.begin > computed.begin || visible.end < computed.end) {
        for (size_t k = computed.begin; k < computed.end; ++k) own_bias[k] = bias[k];
        hide(own_bias, computed, visible);
        add = own_bias;
      }
      largest = cap_and_mask<C, N>(x, computed, add, static_cast<C>(a.softcap));
    } else {
      hide(x, computed, visible);
      const C m = maximum_of(x, computed);
      largest = {.logit = m, .score = m};
    }
    double& highest = states[s].highest;
    if (static_cast<double>(largest.score) > highest) highest = static_cast<double>(largest.score);
    return largest.logit;
  }

  // `bias` for a row; read once for the whole block if all rows share it.
  SOFTSCOPE_INLINE void read_bias(size_t s, KeyBlock block) {
    if (bias_is_shared) return;
    read_mask<C>(a.mask, row[s].head, row[s].i, block, bias);
    for (size_t j = block.count; j < round_up(block.count, kTile); ++j) bias[j] = -kInfinity<C>;
    bias_is_shared = a.mask.row == 0 && a.mask.head == 0;
  }

  SOFTSCOPE_INLINE static C maximum_of(const C* x, KeyRange keys) {
    V m0 = fill<C, N>(-kInfinity<C>), m1 = m0;
    for (size_t j = keys.begin; j < keys.end; j += kTile) {
      m0 = max(load_raw<C, N>(x + j), m0);
      m1 = max(load_raw<C, N>(x + j + N), m1);
    }
    return max_lane<C, N>(max(m0, m1));
  }

  // Takes infinite values and NaN out of the packed block: 0·NaN would reach rows that do not see
  // them.
  void clear_not_finite(size_t packed) {
    for (size_t c = 0; c < wide; c += kTile) {
      for (size_t i = 0; i < packed * kTile; ++i) {
        C& value = values[c * kKeys + i];
        if (!(value - value == 0)) value = 0;
      }
    }
  }

  // A row that sees such a value gets NaN there.
  void poison(size_t s, const C* x, KeyRange visible, KeyBlock block) {
    for (size_t j = visible.begin; j < visible.end; ++j) {
      if (x[j] == -kInfinity<C>) continue;
      const S* v = row_of<const S>(a.v, 0, block.first + j);
      for (size_t c = 0; c < a.dv; ++c) {
        const C value = load_first<S, N>(v + c, 1, 0)[0];
        if (!(value - value == 0)) output[s][c] = static_cast<C>(__builtin_nan(""));
      }
    }
  }
};

}  // namespace
}  // namespace softscope
