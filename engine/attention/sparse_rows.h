// The rows of a task of sparse attention and their logits, which both passes compute with the same
// code: the backward pass must see the same bits to find the same weights.
//
// A threshold needs the whole of its row. So a group of rows at a time writes all its logits to
// scratch, a block of keys after the other, and the peak of each tile of keys beside them: a tile
// whose peak lies below a row's threshold has no weight there, and is not looked at again.
#pragma once

#include "attention/mask.h"
#include "attention/multiply.h"
#include "attention/pack.h"
#include "attention/sparse_root.h"

namespace softscope {
namespace {

constexpr size_t kSparseBlock = 256;  // keys that are packed together
constexpr size_t kChainTiles = 4;     // tiles whose products are added up before they join a sum

// Hands out pieces of a task's scratch.
class Arena {
 public:
  explicit Arena(void* memory) : at(static_cast<char*>(memory)) {}

  template <class T>
  void take(T*& to, size_t entries) {
    to = reinterpret_cast<T*>(at);
    at += round_up(entries * sizeof(T), 64);
  }

 private:
  char* at;
};

template <class C>
struct SparseRow {
  size_t head, i;
  KeyRange visible;
  const C* q;
  bool nan;  // some visible logit is NaN
  SparseRoot root;
  C floor;  // tiles whose peak is not above have no weight
};

template <class S, int N>
class SparseRows {
 protected:
  using C = Compute<S>;
  using V = Vec<C, N>;
  using Row = SparseRow<C>;
  static constexpr size_t kPair = 2 * N;  // keys that are multiplied at a time
  static_assert(kSparseTile % kPair == 0 && kSparseBlock % kSparseTile == 0);

  // `slopes_wanted`: the backward pass needs the soft cap's derivatives. No template parameter,
  // since two instances might round differently.
  SparseRows(const Attention& attention, const AttentionTask& rows, bool slopes_wanted,
             Arena& arena)
      : a(attention),
        keeps_slopes(slopes_wanted && attention.softcap != 0),
        count(rows.count),
        width(sparse_width(a.m)),
        group(sparse_group(a.m, sizeof(C))) {
    arena.take(row, count);
    arena.take(queries.data, count * a.d);
    arena.take(keys, width * a.d);
    arena.take(bias, kSparseBlock);
    arena.take(x.data, group * width);
    arena.take(slopes.data, keeps_slopes ? group * width : 0);
    arena.take(peaks.data, group * (width / kSparseTile));
    arena.take(live, width / kSparseTile);
    arena.take(tiles, width / kSparseTile);
    for (size_t s = 0; s < count; ++s) set_up(s, rows.first + s);
    for (size_t s = 0; s < count; ++s) widen(seen, row[s].visible);
    for (size_t first = seen.begin / kSparseBlock * kSparseBlock; first < seen.end;
         first += kSparseBlock) {
      const KeyBlock block = block_at(first, kSparseBlock, a);
      pack_rows_as_lanes<S, N>({.data = row_of<const S>(a.k, 0, first),
                                .row = a.k.row,
                                .count = block.count,
                                .width = a.d},
                               keys + first * a.d);
    }
  }

  const Attention& a;
  const bool keeps_slopes;
  const size_t count;
  const size_t width;  // entries of a row of logits: all keys, rounded up to whole blocks
  const size_t group;  // rows whose logits are in scratch at a time
  Row* row;
  KeyRange seen = {.begin = a.m, .end = 0};  // by any row of the task
  C* keys;                                   // packed with keys as lanes
  C* bias;
  Strided<C> queries{nullptr, a.d};
  // Of the rows of a group:
  Strided<C> x{nullptr, width}, slopes{nullptr, width};
  Strided<C> peaks{nullptr, width / kSparseTile};
  // Of a strip of rows, or of a group: whether a tile has weight, and the tiles that have.
  uint8_t* live;
  uint32_t* tiles;

  void set_up(size_t s, size_t index) {
    const size_t head = index / a.n, i = index % a.n;
    const int64_t from = a.positions[i] - a.left, to = a.positions[i] + a.right + 1;
    const auto m = static_cast<int64_t>(a.m);
    C* q = queries[s];
    row[s] = {.head = head,
              .i = i,
              .visible = {.begin = from < 0 ? 0 : static_cast<size_t>(from),
                          .end = to < 0 ? 0 : static_cast<size_t>(to < m ? to : m)},
              .q = q,
              .nan = false,
              .root = {.alpha = a.alpha[head],
                       .maximum = -kInfinity<double>,
                       .root = 0,
                       .lowest = 0,
                       .total = 1},
              .floor = kInfinity<C>};
    const S* given = row_of<const S>(a.q, head, i);
    for (size_t c = 0; c < a.d; c += N) {
      const size_t left = a.d - c;
      if (left >= N) {
        store_raw<C, N>(q + c, load<S, N>(given + c));
      } else {
        store_first<C, N>(q + c, left, load_first<S, N>(given + c, left, 0));
      }
    }
  }

  // The tiles that some of `many` rows from s on may see.
  KeyRange tiles_of(size_t s, size_t many) const {
    KeyRange keys_seen = {.begin = a.m, .end = 0};
    for (size_t r = s; r < s + many; ++r) widen(keys_seen, row[r].visible);
    if (empty(keys_seen)) return {.begin = 0, .end = 0};
    return {.begin = keys_seen.begin / kSparseTile,
            .end = (keys_seen.end + kSparseTile - 1) / kSparseTile};
  }

  // The logits and peaks of `many` rows from s on.
  [[gnu::noinline]] void score(size_t s, size_t many) {
    const KeyRange all = tiles_of(s, many);
    constexpr size_t kTiles = kSparseBlock / kSparseTile;
    for (size_t first = all.begin / kTiles * kTiles; first < all.end; first += kTiles) {
      const KeyBlock block = block_at(first * kSparseTile, kSparseBlock, a);
      bool shared = false;  // `bias` holds what the mask adds in every row of the block
      for (size_t r = 0; r < many; r += kStrip) {
        const size_t rows = many - r < kStrip ? many - r : kStrip;
        const KeyRange strip = tiles_of(s + r, rows);
        const KeyRange part = {
            .begin = strip.begin > first ? (strip.begin - first) * kSparseTile : 0,
            .end = strip.end > first ? (strip.end - first) * kSparseTile : 0};
        const KeyRange computed = {.begin = part.begin,
                                   .end = part.end < kSparseBlock ? part.end : kSparseBlock};
        if (empty(computed)) continue;
        with_rows(rows, [&]<int R>() { multiply_strip<R>(s + r, r, block, computed); });
        for (size_t i = r; i < r + rows; ++i) logits(s + i, i, block, computed, shared);
      }
    }
    for (size_t r = 0; r < many; ++r) find_maximum(s + r, r);
  }

  // Whether each tile has weight in one of the rows [r, r + many) of the group, whose first is row
  // s of the task; and a list of those. Returns how many they are.
  size_t find_live(size_t s, size_t r, size_t many, KeyRange of) {
    for (size_t t = of.begin; t < of.end; ++t) live[t] = 0;
    for (size_t i = 0; i < many; ++i) {
      const C* peak = peaks[r + i];
      const C floor = row[s + i].floor;
      const bool all = row[s + i].nan;
      const KeyRange own = tiles_of(s + i, 1);
      for (size_t t = own.begin; t < own.end; ++t) live[t] |= all | (peak[t] > floor);
    }
    size_t found = 0;
    for (size_t t = of.begin; t < of.end; ++t) {
      tiles[found] = static_cast<uint32_t>(t);
      found += live[t];
    }
    return found;
  }

 private:
  template <int R>
  void multiply_strip(size_t s, size_t r, KeyBlock block, KeyRange computed) {
    const C* q[R];
    C scale[R];
    for (size_t i = 0; i < R; ++i) {
      q[i] = row[s + i].q;
      scale[i] = static_cast<C>(a.scale[row[s + i].head]);
    }
    C* to = x[r] + block.first;
    for (size_t j = computed.begin; j < computed.end; j += kPair) {
      V sum[R][2] = {};
      if (j < block.count) multiply<C, N, R>(q, keys + (block.first + j) * a.d, a.d, sum);
      for (size_t i = 0; i < R; ++i) {
        store_raw<C, N>(to + i * width + j, sum[i][0] * scale[i]);
        store_raw<C, N>(to + i * width + j + N, sum[i][1] * scale[i]);
      }
    }
  }

  // Turns the scores of a row into logits, −inf where hidden.
  void logits(size_t s, size_t r, KeyBlock block, KeyRange computed, bool& shared) {
    Row& at = row[s];
    C* to = x[r] + block.first;
    const KeyRange visible = within(block, at.visible);
    if (keeps_slopes) keep_slopes(to, slopes[r] + block.first, computed);
    if (a.mask.type != kNoMask || a.softcap != 0) {
      if (!shared) {
        read_mask<C>(a.mask, at.head, at.i, block, bias);
        for (size_t j = block.count; j < kSparseBlock; ++j) bias[j] = -kInfinity<C>;
        shared = a.mask.row == 0 && a.mask.head == 0;
      }
      cap_and_mask<C, N>(to, computed, bias, static_cast<C>(a.softcap));
    }
    hide(to, computed, visible);
    V nan = {};
    for (size_t j = computed.begin; j < computed.end; j += kSparseTile) {
      V top = load_raw<C, N>(to + j);
      V odd = top;
      for (size_t i = N; i < kSparseTile; i += N) {
        const V v = load_raw<C, N>(to + j + i);
        odd = v == v ? odd : v;
        top = max(v, top);
      }
      nan = odd == odd ? nan : odd;
      // A NaN may be lost here; the row knows of it.
      peaks[r][(block.first + j) / kSparseTile] = max_lane<C, N>(top);
    }
    at.nan |= !(sum_lanes<C, N>(nan) == 0);
  }

  void keep_slopes(const C* scores, C* to, KeyRange computed) const {
    const C cap = static_cast<C>(a.softcap);
    for (size_t j = computed.begin; j < computed.end; j += N) {
      V slope;
      capped<C, N>(load_raw<C, N>(scores + j), cap, slope);
      store_raw<C, N>(to + j, slope);
    }
  }

  void find_maximum(size_t s, size_t r) {
    Row& at = row[s];
    C m = -kInfinity<C>;
    const KeyRange of = tiles_of(s, 1);
    for (size_t t = of.begin; t < of.end; ++t) m = peaks[r][t] > m ? peaks[r][t] : m;
    at.nan |= m == kInfinity<C>;
    at.root.maximum = at.nan ? __builtin_nan("") : static_cast<double>(m);
  }
};

}  // namespace
}  // namespace softscope
