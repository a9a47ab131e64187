// Attention with sparsemax or α-entmax in place of softmax, any α ≥ 1 for each head. Of a row, all
// logits are computed; but weights, and the products with values, only for tiles of keys that have
// weight.
#pragma once

#include <type_traits>

#include "attention/sparse_rows.h"
#include "attention/sparse_statistics.h"
#include "entmax/in_turns.h"

namespace softscope {
namespace {

// Reading values key by key costs so many times as much for each as in tiles (measured, Zen 5).
constexpr size_t kScattered = 4;

template <class S, int N>
class SparseForward : SparseRows<S, N> {
  using Base = SparseRows<S, N>;
  using Base::a, Base::count, Base::group, Base::live, Base::peaks, Base::row, Base::seen,
      Base::tiles, Base::width, Base::x, Base::kPair;
  using typename Base::C;
  using typename Base::Row;
  using typename Base::V;
  static constexpr int D = sizeof(C) == 8 ? N : N / 2;

 public:
  SparseForward(const Attention& attention, const AttentionTask& rows)
      : SparseForward(attention, rows, Arena(rows.scratch)) {}

  void run() {
    if (has_output()) pack_values();
    for (size_t s = 0; s < count; s += group) {
      const size_t many = count - s < group ? count - s : group;
      Base::score(s, many);
      for (size_t r = 0; r < many; r += kStrip) {
        const size_t rows = many - r < kStrip ? many - r : kStrip;
        with_rows(rows, [&]<int R>() { strip<R>(s + r, r); });
      }
    }
  }

 private:
  SparseForward(const Attention& attention, const AttentionTask& rows, Arena arena)
      : Base(attention, rows, false, arena), wide(round_up(attention.dv, Base::kPair)) {
    arena.take(values, has_output() ? width * wide : 0);
    arena.take(finite, width / kSparseBlock);
    arena.take(picked.data, kStrip * picked.row);
    arena.take(e.data, kStrip * e.row);
    arena.take(places, width + 64);
    arena.take(output.data, kStrip * wide);
  }

  const size_t wide;                       // entries of a row of output, rounded up
  C* values;                               // packed with columns as lanes
  bool* finite;                            // whether all values of a block are
  Strided<C> picked{nullptr, width + 64};  // the logits of each row that may have weight
  Strided<double> e{nullptr, width + 64};
  uint32_t* places;  // of the keys with weight
  Strided<C> output{nullptr, wide};

  bool has_output() const { return a.out.data != nullptr; }

  void pack_values() {
    for (size_t first = seen.begin / kSparseBlock * kSparseBlock; first < seen.end;
         first += kSparseBlock) {
      const KeyBlock block = block_at(first, kSparseBlock, a);
      C* to = values + first * kPair;
      finite[first / kSparseBlock] =
          pack_columns_as_lanes<S, N>({.data = row_of<const S>(a.v, 0, first),
                                       .row = a.v.row,
                                       .count = block.count,
                                       .width = a.dv},
                                      to, width);
      for (size_t c = 0; c < wide; c += kPair) {
        C* column = to + c * width;
        for (size_t i = block.count * kPair; i < kSparseBlock * kPair; ++i) column[i] = 0;
        if (finite[first / kSparseBlock]) continue;
        for (size_t i = 0; i < block.count * kPair; ++i) {  // 0·NaN would reach all rows
          if (!(column[i] - column[i] == 0)) column[i] = 0;
        }
      }
    }
  }

  // R rows from s on, which are rows r … of their group.
  template <int R>
  void strip(size_t s, size_t r) {
    solve_rows<R>(s, r);
    if (has_output()) {
      for (size_t i = 0; i < R * wide; ++i) output.data[i] = 0;
      for (size_t i = 0; i < R; ++i) poison(s + i, r + i, output[i]);
      const KeyRange of = Base::tiles_of(s, R);
      const size_t found = Base::find_live(s, r, R, of);
      size_t with = 0;  // how many weights are not 0
      for (size_t i = 0; i < R; ++i) with += write_weights(row[s + i], r + i, found);
      if (kScattered * with < R * found * kSparseTile) {
        for (size_t i = 0; i < R; ++i) add_scattered(row[s + i], r + i, found, output[i]);
      } else {
        add_values<R>(r, found);
      }
    }
    for (size_t i = 0; i < R; ++i) write(row[s + i], output[i]);
  }

  // Finds where the weights of each row sum to 1, and its statistics.
  template <int R>
  void solve_rows(size_t s, size_t r) {
    const double alpha = row[s].root.alpha;
    bool in_turns = sizeof(C) == 4 && (alpha == 1.5 || alpha == 2 || is_single(alpha));
    size_t many[R];
    for (size_t i = 0; i < R; ++i) {
      many[i] = pick(s + i, r + i, picked[i]);
      in_turns &= row[s + i].root.alpha == alpha;
    }
    if (in_turns) {
      find_roots(s, 0, R, many);
    } else {
      for (size_t i = 0; i < R; ++i) find_roots(s, i, i + 1, many);
    }
    for (size_t i = 0; i < R; ++i) write_numbers(row[s + i], picked[i], many[i]);
  }

  // The logits of a row that may have weight. Returns how many they are.
  size_t pick(size_t s, size_t r, C* to) {
    const Row& at = row[s];
    if (at.nan || at.root.maximum == -kInfinity<double>) return 0;
    const C floor = reach_from<C>(at.root).floor(1);
    const KeyRange of = Base::tiles_of(s, 1);
    const C* peak = peaks[r];
    size_t many = 0;
    for (size_t t = of.begin; t < of.end; ++t) {
      if (!(peak[t] > floor)) continue;
      const C* from = x[r] + t * kSparseTile;
      for (size_t j = 0; j < kSparseTile; j += N) {
        many += store_above<C, N>(to + many, load_raw<C, N>(from + j), floor);
      }
    }
    return many;
  }

  // Of rows [begin, end) of the strip, which have the same alpha.
  void find_roots(size_t s, size_t begin, size_t end, const size_t* many) {
    const double alpha = row[s + begin].root.alpha;
    if constexpr (sizeof(C) == 4) {
      if (alpha == 1.5 || alpha == 2) return find_closed_roots(s, begin, end, many);
      if (is_single(alpha)) return find_single_roots(s, begin, end, many);
    }
    for (size_t i = begin; i < end; ++i) {
      if (many[i] == 0) continue;
      SparseRoot& at = row[s + i].root;
      const Reach<C> reach = reach_from<C>(at);
      to_arguments(reach, picked[i], many[i], e[i]);
      with_any_form<C>(alpha, [&]<class Form>(Form& form) {
        if constexpr (!__is_same(Form, SingleGeneral)) at.total = solve<D>(form, e[i], many[i]);
        keep(form, at);
        row[s + i].floor = floor_of(reach, form);
      });
    }
  }

  void find_closed_roots(size_t s, size_t begin, size_t end, const size_t* many) {
    RowInTurn turns[kStrip];
    for (size_t i = begin; i < end; ++i) {
      turns[i - begin] = {.e = e[i], .n = many[i], .s = 1, .total = 1};
      to_arguments(reach_from<C>(row[s + i].root), picked[i], many[i], e[i]);
    }
    const bool squared = row[s + begin].root.alpha == 1.5;
    (squared ? solve_in_turns<D, true> : solve_in_turns<D, false>)(turns, end - begin);
    for (size_t i = begin; i < end; ++i) {
      const RowInTurn& found = turns[i - begin];
      if (many[i] != 0) set_root(row[s + i], found.s, found.total, found.s);
    }
  }

  void find_single_roots(size_t s, size_t begin, size_t end, const size_t* many) {
    SingleInTurn turns[kStrip];
    for (size_t i = begin; i < end; ++i) {
      float* to = reinterpret_cast<float*>(e[i]);
      turns[i - begin] = {.e = to, .n = many[i], .log_top = 0, .total = 1};
      to_arguments(reach_from<C>(row[s + i].root), picked[i], many[i], to);
    }
    const double beta = row[s + begin].root.alpha - 1;
    solve_in_turns<N>(beta, turns, end - begin);
    for (size_t i = begin; i < end; ++i) {
      const SingleInTurn& found = turns[i - begin];
      if (many[i] == 0) continue;
      set_root(row[s + i], found.log_top, found.total, ::exp(beta * found.log_top));
    }
  }

  // `top`: the largest weight to the power β.
  static void set_root(Row& at, double root, double total, double top) {
    at.root.root = root;
    at.root.total = total;
    at.floor = reach_from<C>(at.root).floor(top);
  }

  void write_numbers(const Row& at, C* from, size_t many) {
    if (a.state.data == nullptr) return;
    double* to = row_of<double>(a.state, at.head, at.i);
    if (many == 0) {
      for (size_t i = 0; i < kSparseNumbers; ++i) to[i] = __builtin_nan("");
      to[kSize] = 0;
      to[kMaximum] = at.root.maximum;
      return;
    }
    if (a.statistics) {
      size_t kept = 0;
      store_raw<C, N>(from + many, fill<C, N>(-kInfinity<C>));
      for (size_t i = 0; i < many; i += N) {
        kept += store_above<C, N>(from + kept, load_raw<C, N>(from + i), at.floor);
      }
      sparse_statistics<C, D>(at.root, from, kept, e[0], to);
    }
    to[kMaximum] = at.root.maximum;
    to[kRoot] = at.root.root;
    to[kLowest] = at.root.lowest;
    to[kTotal] = at.root.total;
  }

  template <class E>
  SOFTSCOPE_INLINE static void to_arguments(const Reach<C>& reach, const C* from, size_t many,
                                            E* to) {
    const E origin = static_cast<E>(reach.origin), scale = static_cast<E>(reach.scale);
    for (size_t i = 0; i < many; ++i) to[i] = (static_cast<E>(from[i]) - origin) * scale;
  }

  // Turns the logits of the tiles that are live in the strip into weights. Returns how many are not
  // 0.
  size_t write_weights(const Row& at, size_t r, size_t found) {
    C* to = x[r];
    if (at.nan) return 0;  // `write` knows
    using Index = typename IndexOf<C>::type;
    Vec<Index, N> with = {};  // negative: a true comparison is −1
    with_root<C>(at.root, [&](const auto& rooted) {
      for (size_t i = 0; i < found; ++i) {
        const size_t t = tiles[i];
        C* tile = to + t * kSparseTile;
        const bool some = peaks[r][t] > at.floor;
        for (size_t j = 0; j < kSparseTile; j += N) {
          const V p = some ? weigh<C, N>(rooted, load_raw<C, N>(tile + j)).p : V{};
          store_raw<C, N>(tile + j, p);
          with += p > C(0);
        }
      }
    });
    return static_cast<size_t>(-sum_lanes<Index, N>(with));
  }

  // The output of a row gains Σ p·v, one key after the other: if few of the strip's keys have
  // weight, that is faster than products of whole tiles.
  void add_scattered(const Row& at, size_t r, size_t found, C* out) {
    if (at.nan) return;
    C* weights = picked[0];
    size_t many = 0;
    for (size_t i = 0; i < found; ++i) {
      if (!(peaks[r][tiles[i]] > at.floor)) continue;
      const size_t first = tiles[i] * kSparseTile;
      for (size_t j = first; j < first + kSparseTile; j += N) {
        many += store_places_above<C, N>(weights + many, places + many, load_raw<C, N>(x[r] + j),
                                         C(0), static_cast<uint32_t>(j));
      }
    }
    constexpr size_t kWide = 4;  // vectors of the output at a time, in registers
    size_t c = 0;
    for (; c + kWide * N <= a.dv; c += kWide * N) {
      V sum[kWide] = {};
      for (size_t i = 0; i < many; ++i) {
        const S* v = row_of<const S>(a.v, 0, places[i]) + c;
        const V p = fill<C, N>(weights[i]);
        for (size_t k = 0; k < kWide; ++k) sum[k] += p * load<S, N>(v + k * N);
      }
      for (size_t k = 0; k < kWide; ++k) {
        store_raw<C, N>(out + c + k * N, load_raw<C, N>(out + c + k * N) + sum[k]);
      }
    }
    for (; c < a.dv; c += N) {
      const size_t left = a.dv - c;
      V sum = {};
      for (size_t i = 0; i < many; ++i) {
        const S* v = row_of<const S>(a.v, 0, places[i]) + c;
        sum += weights[i] * (left >= N ? load<S, N>(v) : load_first<S, N>(v, left, 0));
      }
      store_raw<C, N>(out + c, load_raw<C, N>(out + c) + sum);
    }
  }

  // The outputs of a strip gain Σ p·v over the live tiles.
  template <int R>
  void add_values(size_t r, size_t found) {
    for (size_t c = 0; c < wide; c += kPair) {
      for (size_t first = 0; first < found; first += kChainTiles) {
        const size_t end = found - first < kChainTiles ? found : first + kChainTiles;
        V sum[R][2] = {};
        for (size_t i = first; i < end; ++i) {
          const size_t j = tiles[i] * kSparseTile;
          const C* p[R];
          for (size_t k = 0; k < R; ++k) p[k] = x[r + k] + j;
          multiply<C, N, R>(p, values + c * width + j * kPair, kSparseTile, sum);
        }
        add_tile(sum, Strided<C>{output.data + c, wide});
      }
    }
  }

  // A row that sees an infinite value or a NaN gets NaN there, whatever its weight.
  void poison(size_t s, size_t r, C* out) {
    const KeyRange visible = row[s].visible;
    for (size_t j = visible.begin; j < visible.end; ++j) {
      if (finite[j / kSparseBlock]) {
        j = (j / kSparseBlock + 1) * kSparseBlock - 1;
        continue;
      }
      if (x[r][j] == -kInfinity<C>) continue;
      const S* v = row_of<const S>(a.v, 0, j);
      for (size_t c = 0; c < a.dv; ++c) {
        const C value = load_first<S, N>(v + c, 1, 0)[0];
        if (!(value - value == 0)) out[c] = static_cast<C>(__builtin_nan(""));
      }
    }
  }

  void write(const Row& at, const C* sums) const {
    if (!has_output()) return;
    S* out = row_of<S>(a.out, at.head, at.i);
    const C add = at.nan ? static_cast<C>(__builtin_nan("")) : C(0);
    size_t c = 0;
    for (; c + N <= a.dv; c += N) store<S, N>(out + c, load_raw<C, N>(sums + c) + add);
    if (c < a.dv) {
      store_first<S, N>(out + c, a.dv - c, load_first<C, N>(sums + c, a.dv - c, 0) + add);
    }
  }
};

}  // namespace
}  // namespace softscope
