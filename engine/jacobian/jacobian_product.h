// J·v/T without J: s·(v − Σ s·v/Σs)/T, with s = p^(2−α) of the weights p. This is the backward pass
// of softmax, sparsemax and entmax. With d = v − Σ s·v/Σs, and σ the root of Σ s·d²/Σs, the error
// of an entry is a few roundings of s·d/T and of s·σ/T. So neither an offset of v nor weights close
// to one-hot cost any accuracy.
#pragma once

#include "jacobian/contiguous.h"
#include "jacobian/side_by_side.h"
#include "rows/walk_block_two_inputs.h"
#include "simd/fold.h"

namespace softscope {
namespace {

template <class S, int N>
struct JacobianProduct {
  using C = Compute<S>;
  using V = Vec<C, N>;
  static constexpr bool kTwo = true;
  static constexpr size_t kTile = N;
  static constexpr size_t kBatches = 4;
  static constexpr size_t kFew = 32 * N;  // entries for which a plain sum per lane is exact enough

  using Lanes = ProductLanes<C, N>;

  static void row(const S* p, const S* v, S* out, size_t n, const double* numbers) {
    with_sensitivity<S, N>(numbers[kAlpha], [&](const auto& product) {
      C mean;
      if (product.quick(p, v, n, mean)) {
        product.template map<true>(p, v, out, n, {mean / 2, 0}, Scale<C>(numbers[kTemperature]));
      } else {
        product.template map<false>(p, v, out, n, half_mean<C>(product.moments(p, v, n)),
                                    Scale<C>(numbers[kTemperature]));
      }
    });
  }

  // Contiguous rows; short ones that share α several at a time.
  static void rows(const Block& b, size_t first) {
    if (b.n > kFew) {
      each_row<S, JacobianProduct>(b, first);
      return;
    }
    for (size_t r = first; r < b.rows;) {
      const double alpha = numbers_of(b, r)[1];
      size_t alike = 1;
      while (alike < kBatches * N && r + alike < b.rows &&
             (b.numbers_row == 0 || numbers_of(b, r + alike)[1] == alpha)) {
        ++alike;
      }
      if (alpha != 1) {
        with_sensitivity<S, N>(alpha, [&](const auto& product) __attribute__((always_inline)) {
          r += together<0>(b, r, alike, product);
        });
      } else if (b.n <= N) {
        r += together<1>(b, r, alike, RowProduct<S, N, true>{});
      } else if (b.n <= 2 * N) {
        r += together<2>(b, r, alike, RowProduct<S, N, true>{});
      } else if (b.n <= 3 * N) {
        r += together<3>(b, r, alike, RowProduct<S, N, true>{});
      } else if (b.n <= 4 * N) {
        r += together<4>(b, r, alike, RowProduct<S, N, true>{});
      } else if (b.n <= 12 * N) {
        r += together<0, kBatches>(b, r, alike, RowProduct<S, N, true>{});
      } else {
        r += together<0>(b, r, alike, RowProduct<S, N, true>{});
      }
    }
  }

  template <class A>  // S, or the type that computes in a transposed tile
  SOFTSCOPE_INLINE static void columns(Columns<A> p, Columns<A> v, ColumnsOut<A> out,
                                       const Lanes& lanes) {
    ColumnsProduct<C, N>::run(p, v, out, lanes);
  }

 private:
  SOFTSCOPE_INLINE static V sum_of_each(const V (&rows)[N]) {
    return fold<C, N>(rows, [](V a, V b) { return a + b; });
  }

  // The means of N rows from `first` on (lanes past the last row repeat the first), in a second
  // pass counted from those of the first pass, or from v at the largest weight.
  template <class Product>
  [[gnu::noinline]] static HalfMean<V> careful(const Block& b, size_t first, size_t count, V total,
                                               V half, const Product& product) {
    const S* p[N];
    const S* v[N];
    V tops[N], products[N];
    for (size_t r = 0; r < N; ++r) {
      p[r] = row_at<S>(b.x, first + (r < count ? r : 0));
      v[r] = row_at<S>(b.y, first + (r < count ? r : 0));
      tops[r] = product.top(p[r], b.n);
    }
    const V top = fold<C, N>(tops, [](V x, V y) { return max(x, y); });
    const V doubt = top <= kDominant<C> * total ? half - half : fill<C, N>(1);
    C centres[N];
    store_raw<C, N>(centres, half * C(2));
    for (size_t r = 0; r < N; ++r) {
      if (doubt[r] != 0) centres[r] = product.at_top(p[r], v[r], b.n);
      products[r] = product.second(p[r], v[r], b.n, origin(centres[r]));
    }
    return half_mean(load_raw<C, N>(centres), total, sum_of_each(products));
  }

  // N rows at once, with one lane for the sums of each, so that nothing waits for adding up the
  // lanes of a row. Rows of Few vectors several times N at once, so that little waits for the
  // division. Lanes never mix, so a row computes as if it were alone. Returns how many rows it did.
  template <int Few, size_t Batches = Few == 0 ? 1 : kBatches, class Product>
  SOFTSCOPE_INLINE static size_t together(const Block& b, size_t first, size_t rows,
                                          const Product& product) {
    constexpr size_t many = Batches * N;
    const size_t count = rows < many ? rows : many;
    const V fresh = b.n % N == 0 ? fill<C, N>(1) : uncovered<C, N>(fill<C, N>(1), b.n);
    C uppers[many], lowers[many];
    V all[many / N], doubts[many / N], doubt = {};
    for (size_t batch = 0; batch < count; batch += N) {
      V totals[N], sums[N], squares[N];
      for (size_t r = 0; r < N; ++r) {
        const size_t row = first + (batch + r < count ? batch + r : batch);
        const S* p = row_at<S>(b.x, row);
        const S* v = row_at<S>(b.y, row);
        typename Product::Sums found;
        if constexpr (Few == 0) {
          found = product.sums(p, v, b.n);
        } else {
          found = product.template sums<Few>(p, v, b.n, fresh);
        }
        totals[r] = found.total;
        sums[r] = found.sum;
        squares[r] = found.square;
      }
      const V total = sum_of_each(totals), sum = sum_of_each(sums);
      all[batch / N] = total;
      doubts[batch / N] = near_zero(total, sum, sum_of_each(squares)) ? V{} : fill<C, N>(1);
      doubt += doubts[batch / N];
      store_raw<C, N>(uppers + batch, sum / (total == 0 ? fill<C, N>(1) : total) * C(0.5));
    }
    const bool known = sum_lanes<C, N>(doubt) == 0;
    for (size_t batch = 0; !known && batch < count; batch += N) {
      store_raw<C, N>(lowers + batch, V{});
      if (sum_lanes<C, N>(doubts[batch / N]) == 0) continue;
      const V half = load_raw<C, N>(uppers + batch);
      const HalfMean<V> mean =
          careful(b, first + batch, count - batch, all[batch / N], half, product);
      store_raw<C, N>(uppers + batch, doubts[batch / N] == 0 ? half : mean.upper);
      store_raw<C, N>(lowers + batch, doubts[batch / N] == 0 ? V{} : mean.lower);
    }
    Scale<C> scale(*numbers_of(b, first));
    for (size_t r = 0; r < count; ++r) {
      const S* p = row_at<S>(b.x, first + r);
      const S* v = row_at<S>(b.y, first + r);
      S* out = row_at<S>(b.out, first + r);
      if (b.numbers_row != 0) scale = Scale<C>(*numbers_of(b, first + r));
      if (known) {
        product.template map<true, Few>(p, v, out, b.n, {uppers[r], 0}, scale);
      } else {
        product.template map<false, Few>(p, v, out, b.n, {uppers[r], lowers[r]}, scale);
      }
    }
    return count;
  }
};

// Of a row too long for one thread: the moments of each part, which merge, then the map.
template <class S, int N>
void part_moments(const TwoInputPart& p, BackwardSums& sums) {
  with_sensitivity<S, N>(p.numbers[kAlpha], [&](const auto& product) {
    sums = product.moments(static_cast<const S*>(p.x), static_cast<const S*>(p.y), p.n);
  });
}

void merge_moments(BackwardSums& into, const BackwardSums& from) { into = merged(into, from); }

template <class S, int N>
void part_product(const TwoInputPart& p, const BackwardSums& sums) {
  with_sensitivity<S, N>(p.numbers[kAlpha], [&](const auto& product) {
    product.template map<false>(static_cast<const S*>(p.x), static_cast<const S*>(p.y),
                                static_cast<S*>(p.out), p.n, half_mean<Compute<S>>(sums),
                                Scale<Compute<S>>(p.numbers[kTemperature]));
  });
}

}  // namespace
}  // namespace softscope
