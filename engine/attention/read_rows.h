// The reading of rows of attention: what each says of itself, and of the gradient that reaches it.
// The definition is in src/softscope/_backends/reference/row_reading.py.
//
// A row has to lie in memory as a whole for this: its maximum comes before its exponentials, the
// gradient's mean before its spread. So the scores and gradients of a group of rows are written to
// scratch first, a block of keys at a time, and then each row is read while a cache holds it.
#pragma once

#include <type_traits>

#include "attention/mask.h"
#include "attention/multiply.h"
#include "attention/pack.h"
#include "attention/write_results.h"

namespace softscope {
namespace {

constexpr size_t kReadingBlock = 256;  // keys packed at a time

// Lanes are added up in the type that computes over no more entries than this, and then in float64.
constexpr size_t kReadingChunk = 1024;

// The same multiple of a rounding as in the definition.
template <class C>
constexpr double kRoundings = 64 * (sizeof(C) == 4 ? 0x1p-23 : 0x1p-52);

template <class S, int N>
class ReadRows {
  using C = Compute<S>;
  using V = Vec<C, N>;
  static constexpr size_t kTile = 2 * N;

 public:
  ReadRows(const AttentionReading& reading, const AttentionTask& rows)
      : r(reading),
        a(reading.forward),
        task(rows),
        has_gradient(reading.grad.data != nullptr),
        width(reading_width(a.m)) {
    char* memory = static_cast<char*>(rows.scratch);
    const auto take = [&]<class T>(T*& to, size_t entries) {
      to = reinterpret_cast<T*>(memory);
      memory += round_up(entries * sizeof(T), 64);
    };
    take(row, task.count);
    take(packed, kReadingBlock * (a.d > a.dv ? a.d : a.dv));
    take(scores.data, task.count * width);
    take(gradients.data, has_gradient ? task.count * width : 0);
    take(exponentials, width);
    take(bias, width);
    take(slope, width);
    take(key_lengths, width);
    take(queries.data, sizeof(S) == sizeof(C) ? 0 : task.count * a.d);
    take(demands.data, sizeof(S) == sizeof(C) ? 0 : task.count * a.dv);
    for (size_t s = 0; s < task.count; ++s) set_up(s, task.first + s);
    for (size_t j = 0; j < width; ++j) {
      key_lengths[j] = r.key_lengths == nullptr || j >= a.m ? C(0) : lengths_given()[j];
    }
  }

  void run() {
    multiply_all({.data = row_of<const S>(a.k, 0, 0), .row = a.k.row, .count = a.m, .width = a.d},
                 &Row::q, scores);
    if (has_gradient) {
      multiply_all(
          {.data = row_of<const S>(a.v, 0, 0), .row = a.v.row, .count = a.m, .width = a.dv},
          &Row::grad, gradients);
    }
    for (size_t s = 0; s < task.count; ++s) read(s);
  }

 private:
  struct Row {
    size_t head, i;
    KeyRange visible;
    const C* q;
    const C* grad;
  };

  // Sums of a row that are no part of its state; see ReadingNumber.
  struct Sums {
    double distance = 0, squares = 0, aligned = 0;
    double mean = 0, demand = 0, lowest = 0, expected = 0, supply = 0;
    double visible = 0;    // keys
    double gradients = 0;  // their sum
    C strongest = 0;       // the largest of them in size
  };

  const AttentionReading& r;
  const Attention& a;
  const AttentionTask& task;
  const bool has_gradient;
  const size_t width;  // entries of a row of scores, rounded up
  Row* row;
  C* packed;
  Strided<C> scores{nullptr, width}, gradients{nullptr, width};
  Strided<C> queries{nullptr, a.d}, demands{nullptr, a.dv};
  C *exponentials, *bias, *slope, *key_lengths;  // of one row

  const C* lengths_given() const { return static_cast<const C*>(r.key_lengths); }

  void set_up(size_t s, size_t index) {
    const size_t head = index / a.n, i = index % a.n;
    const int64_t from = a.positions[i] - a.left, to = a.positions[i] + a.right + 1;
    const auto m = static_cast<int64_t>(a.m);
    row[s] = {.head = head,
              .i = i,
              .visible = {.begin = static_cast<size_t>(from > 0 ? from : 0),
                          .end = static_cast<size_t>(to < m ? (to < 0 ? 0 : to) : m)},
              .q = widened_row(row_of<const S>(a.q, head, i), a.d, queries, s),
              .grad = nullptr};
    if (has_gradient) {
      row[s].grad = widened_row(row_of<const S>(r.grad, head, i), a.dv, demands, s);
    }
  }

  // A row in the type that computes: where it lies, or a copy.
  const C* widened_row(const S* from, size_t n, const Strided<C>& copies, size_t s) const {
    if constexpr (sizeof(S) == sizeof(C)) {
      return from;
    } else {
      C* to = copies[s];
      for (size_t c = 0; c < n; c += N) {
        const size_t left = n - c;
        if (left >= N) {
          store_raw<C, N>(to + c, load<S, N>(from + c));
        } else {
          store_first<C, N>(to + c, left, load_first<S, N>(from + c, left, 0));
        }
      }
      return to;
    }
  }

  // to[s][j] = row s · key j for the keys that a strip of rows may see, rounded up to whole tiles.
  void multiply_all(const Unpacked<S>& keys, const C* Row::* side, const Strided<C>& to) {
    KeyRange seen = {.begin = a.m, .end = 0};  // by any row
    for (size_t s = 0; s < task.count; ++s) widen(seen, row[s].visible);
    for (size_t first = seen.begin / kReadingBlock * kReadingBlock; first < seen.end;
         first += kReadingBlock) {
      const KeyBlock block = block_at(first, kReadingBlock, a);
      pack_rows_as_lanes<S, N>({.data = keys.data + offset(first, keys.row),
                                .row = keys.row,
                                .count = block.count,
                                .width = keys.width},
                               packed);
      for (size_t s = 0; s < task.count; s += kStrip) {
        with_rows(task.count - s, [&]<int R>() { strip<R>(s, block, keys.width, side, to); });
      }
    }
  }

  template <int R>
  void strip(size_t s, const KeyBlock& block, size_t depth, const C* Row::* side,
             const Strided<C>& to) {
    KeyRange seen = {.begin = kReadingBlock, .end = 0};
    const C* left[R];
    for (size_t i = 0; i < R; ++i) {
      widen(seen, within(block, row[s + i].visible));
      left[i] = row[s + i].*side;
    }
    for (size_t j = seen.begin / kTile * kTile; j < seen.end; j += kTile) {
      V sum[R][2] = {};
      multiply<C, N, R>(left, packed + j * depth, depth, sum);
      for (size_t i = 0; i < R; ++i) {
        C* at = to[s + i] + block.first + j;
        store_raw<C, N>(at, sum[i][0]);
        store_raw<C, N>(at + N, sum[i][1]);
      }
    }
  }

  // body(i) for every vector of the keys, and after each chunk flush().
  template <class Body, class Flush>
  SOFTSCOPE_INLINE static void in_chunks(const KeyRange& keys, Body body, Flush flush) {
    for (size_t first = keys.begin; first < keys.end; first += kReadingChunk) {
      const size_t end = first + kReadingChunk < keys.end ? first + kReadingChunk : keys.end;
      for (size_t i = first; i < end; i += N) body(i);
      flush();
    }
  }

  SOFTSCOPE_INLINE static void flush_into(double& sum, V& lanes) {
    sum += static_cast<double>(sum_lanes<C, N>(lanes));
    lanes = V{};
  }

  SOFTSCOPE_INLINE static V if_visible(V logit, V v) { return logit == -kInfinity<C> ? V{} : v; }

  void read(size_t s) {
    const Row& at = row[s];
    RunningState state = kNoKeys;
    Sums sums;
    if (empty(at.visible)) {
      write(at, state, sums);
      return write_weights(at, {.begin = 0, .end = 0}, 0);
    }
    const KeyRange keys = {.begin = at.visible.begin / kTile * kTile,
                           .end = round_up(at.visible.end, kTile)};
    state.m = static_cast<double>(logits(s, keys, state.highest, sums));
    if (state.m > -kInfinity<double>) {
      exponentiate(s, keys, state, sums);
    } else {
      state.count = sums.visible;  // each of them NaN
      state.nan = state.count > 0;
      for (size_t j = keys.begin; j < keys.end; ++j) exponentials[j] = 0;
    }
    if (state.z() != state.z() && state.m != kInfinity<double>) state.nan = true;
    const Factors factors = output_factors(a, at.head, state);
    if (has_gradient && state.count > 0) read_gradient(s, keys, state, factors, sums);
    write(at, state, sums);
    write_weights(at, keys, factors.keys);
  }

  // Turns the scores of a row into logits, −inf where hidden, also in `exponentials`; returns the
  // largest.
  C logits(size_t s, const KeyRange& keys, double& highest, Sums& sums) {
    const Row& at = row[s];
    C* x = scores[s];
    const C scale = static_cast<C>(a.scale[at.head]), cap = static_cast<C>(a.softcap);
    if (a.mask.type != kNoMask) {
      read_mask<C>(a.mask, at.head, at.i, {.first = 0, .count = a.m}, bias);
      for (size_t j = a.m; j < keys.end; ++j) bias[j] = -kInfinity<C>;
    } else {
      for (size_t j = keys.begin; j < keys.end; ++j) bias[j] = 0;
    }
    hide(bias, keys, at.visible);
    const V hidden = fill<C, N>(-kInfinity<C>);
    const C* g = has_gradient ? gradients[s] : nullptr;
    V m = hidden, top = hidden, aligned{}, total{}, visible{}, strongest{};
    const auto each = [&](size_t i, auto with_cap) __attribute__((always_inline)) {
      const V score = load_raw<C, N>(x + i) * scale, add = load_raw<C, N>(bias + i);
      V y = score;
      if constexpr (decltype(with_cap)::value) {
        V curve;
        y = capped<C, N>(score, cap, curve);
        store_raw<C, N>(slope + i, curve);
      }
      const V logit = add == -kInfinity<C> ? hidden : y + add;
      store_raw<C, N>(x + i, logit);
      store_raw<C, N>(exponentials + i, logit);
      m = max(logit, m);
      top = max(logit == -kInfinity<C> ? hidden : score, top);
      const V length = load_raw<C, N>(key_lengths + i);
      aligned += if_visible(logit, (score < C(0) ? -score : score) * length);
      visible += if_visible(logit, fill<C, N>(1));
      if (g != nullptr) {
        const V gradient = if_visible(logit, load_raw<C, N>(g + i));
        total += gradient;
        strongest = max(strongest, gradient < C(0) ? -gradient : gradient);
      }
    };
    const auto flush = [&] {
      flush_into(sums.aligned, aligned);
      flush_into(sums.visible, visible);
      flush_into(sums.gradients, total);
    };
    if (cap == 0) {
      in_chunks(keys, [&](size_t i) { each(i, std::false_type()); }, flush);
    } else {
      in_chunks(keys, [&](size_t i) { each(i, std::true_type()); }, flush);
    }
    sums.strongest = max_lane<C, N>(strongest);
    highest = static_cast<double>(max_lane<C, N>(top));
    return max_lane<C, N>(m);
  }

  // exp and its sums, and the distances Σd and Σd² of the logits from their maximum.
  void exponentiate(size_t s, const KeyRange& keys, RunningState& state, Sums& sums) {
    const C* x = scores[s];
    const V maximum = fill<C, N>(static_cast<C>(state.m));
    V distance{}, squares{};
    for (size_t first = keys.begin; first < keys.end; first += kReadingChunk) {
      const size_t end = first + kReadingChunk < keys.end ? first + kReadingChunk : keys.end;
      for (size_t i = first; i < end; i += N) {
        const V logit = load_raw<C, N>(x + i), d = if_visible(logit, logit - maximum);
        distance += d;
        squares += d * d;
      }
      RowSums<C, N, true> chunk;
      size_t j = first;
      for (; j + 4 * N <= end; j += 4 * N) chunk.template step<4>(exponentials + j, maximum);
      for (; j < end; j += kTile) chunk.template step<2>(exponentials + j, maximum);
      chunk.add_to(state);
      flush_into(sums.distance, distance);
      flush_into(sums.squares, squares);
    }
  }

  // What the loss asks for, and what of it gets through: everything is counted from the gradient at
  // the largest weight, so that nothing cancels near one-hot, and in units of the largest gradient,
  // so that no square leaves the range of its type. A sink is one more key, with gradient 0 and
  // without a cap.
  void read_gradient(size_t s, const KeyRange& keys, const RunningState& state,
                     const Factors& factors, Sums& sums) {
    const C* x = scores[s];
    C* g = gradients[s];
    const bool sink = a.sink != nullptr;
    const C unit = power_of_two_above(sums.strongest), per_unit = C(1) / unit;
    const double mean_in_units =
        sums.gradients * static_cast<double>(per_unit) / (state.count + (sink ? 1 : 0));
    const C mean = static_cast<C>(mean_in_units), at_sink = -mean;
    size_t largest = keys.begin;
    while (largest + 1 < keys.end && !(static_cast<double>(x[largest]) == state.m)) ++largest;
    const bool sink_on_top = sink && a.sink[row[s].head] > state.m;
    const C at_top = sink_on_top ? at_sink : g[largest] * per_unit - mean;

    V squares{}, weighted{}, depth{};
    double demand = 0, away = 0;
    in_chunks(
        keys,
        [&](size_t i) {
          const V centred =
              if_visible(load_raw<C, N>(x + i), load_raw<C, N>(g + i) * per_unit - mean);
          store_raw<C, N>(g + i, centred);
          squares += centred * centred;
          depth = max(depth, -centred);
          weighted += load_raw<C, N>(exponentials + i) * (centred - at_top);
        },
        [&] {
          flush_into(demand, squares);
          flush_into(away, weighted);
        });
    away = away * factors.keys + factors.sink * static_cast<double>(at_sink - at_top);
    sums.lowest = -static_cast<double>(max_lane<C, N>(depth));
    if (sink) {
      demand += static_cast<double>(at_sink) * static_cast<double>(at_sink);
      if (static_cast<double>(at_sink) < sums.lowest) sums.lowest = static_cast<double>(at_sink);
    }
    demand = __builtin_sqrt(demand);
    const double size = __builtin_fabs(mean_in_units) + demand;
    sums.demand = demand <= kRoundings<C> * size ? 0 : demand;
    sums.mean = mean_in_units;
    sums.expected = away + static_cast<double>(at_top);

    const C by = static_cast<C>(factors.keys), rest = static_cast<C>(away);
    V through_squares{};
    double supply = 0;
    in_chunks(
        keys,
        [&](size_t i) {
          const V p = load_raw<C, N>(exponentials + i) * by;
          V through = p * ((load_raw<C, N>(g + i) - at_top) - rest);
          if (a.softcap != 0) through *= load_raw<C, N>(slope + i);
          through = if_visible(load_raw<C, N>(x + i), through);
          through_squares += through * through;
        },
        [&] { flush_into(supply, through_squares); });
    const double through_sink = factors.sink * (static_cast<double>(at_sink - at_top) - away);
    sums.supply = __builtin_sqrt(supply + through_sink * through_sink);
    const auto whole = static_cast<double>(unit);
    sums.mean *= whole;
    sums.demand *= whole;
    sums.lowest *= whole;
    sums.expected *= whole;
    sums.supply *= whole;
  }

  // The power of two at or just above x > 0, of which the inverse is finite too; 1 if x is 0 or not
  // finite.
  static C power_of_two_above(C x) {
    if (!(x > 0) || x == kInfinity<C>) return 1;
    constexpr int most = sizeof(C) == 4 ? 126 : 1022;
    int exponent;
    __builtin_frexp(static_cast<double>(x), &exponent);
    exponent = exponent > most ? most : exponent < -most ? -most : exponent;
    return static_cast<C>(__builtin_ldexp(1.0, exponent));
  }

  void write(const Row& at, const RunningState& state, const Sums& sums) {
    double* to = row_of<double>(a.state, at.head, at.i);
    write_state(state, to);
    // What the loss asks for does not depend on the logits.
    const bool lost = state.nan || state.m == kInfinity<double>;
    const auto known = [=](double sum) { return lost ? __builtin_nan("") : sum; };
    const double numbers[] = {
        known(sums.distance), known(sums.squares), known(sums.aligned),  sums.mean,
        sums.demand,          sums.lowest,         known(sums.expected), known(sums.supply)};
    static_assert(sizeof numbers == (kReadingNumbers - kAttentionNumbers) * sizeof(double));
    __builtin_memcpy(to + kAttentionNumbers, numbers, sizeof numbers);
  }

  void write_weights(const Row& at, const KeyRange& keys, double factor) {
    if (r.weights.data == nullptr) return;
    C* to = row_of<C>(r.weights, at.head, at.i);
    const C by = static_cast<C>(factor);
    const size_t end = keys.end < a.m ? keys.end : a.m;
    for (size_t j = 0; j < keys.begin; ++j) to[j] = 0;
    for (size_t j = keys.begin; j < end; ++j) to[j] = exponentials[j] * by;
    for (size_t j = end; j < a.m; ++j) to[j] = 0;
  }
};

}  // namespace
}  // namespace softscope
