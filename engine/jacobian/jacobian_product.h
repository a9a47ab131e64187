// J·v/T without J: s·(v − Σ s·v/Σs)/T, with s = p^(2−α) of the weights p. The backward pass of
// softmax, sparsemax and entmax. The error of an entry is that of a few roundings of s·d/T, with
// d = v − Σ s·v/Σs, and of s·σ/T, with σ the root of Σ s·d²/Σs. So it does not matter where v lies,
// nor how close to one-hot the weights are.
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
  static constexpr size_t kGoes = 4;
  static constexpr size_t kFew = 32 * N;  // entries that a sum in each lane is exact enough for

  using Lanes = ProductLanes<C, N>;

  static void row(const S* p, const S* v, S* out, size_t n, const double* numbers) {
    with_sensitivity<S, N>(numbers[1], [&](const auto& product) {
      C mean;
      if (product.quick(p, v, n, mean)) {
        product.template map<true>(p, v, out, n, {mean / 2, 0}, Scale<C>(numbers[0]));
      } else {
        product.template map<false>(p, v, out, n, place_of<C>(product.moments(p, v, n)),
                                    Scale<C>(numbers[0]));
      }
    });
  }

  // Contiguous rows; short ones several at a time, where they share α.
  static void rows(const Block& b, size_t first) {
    if (b.n > kFew) {
      each_row<S, JacobianProduct>(b, first);
      return;
    }
    for (size_t r = first; r < b.rows;) {
      const double alpha = numbers_of(b, r)[1];
      size_t alike = 1;
      while (alike < kGoes * N && r + alike < b.rows &&
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
      } else if (b.n <= 4 * N && b.n > 3 * N) {
        r += together<4>(b, r, alike, RowProduct<S, N, true>{});
      } else {
        r += together<0>(b, r, alike, RowProduct<S, N, true>{});
      }
    }
  }

  template <class A>  // S, or the type that computes in a transposed tile
  static void columns(Columns<A> p, Columns<A> v, A* out, ptrdiff_t out_step, const Lanes& lanes) {
    ColumnsProduct<C, N>::run(p, v, out, out_step, lanes);
  }

 private:
  SOFTSCOPE_INLINE static V sum_of_each(const V (&rows)[N]) {
    return fold<C, N>(rows, [](V a, V b) { return a + b; });
  }

  // Of N rows from `first` on, or what there are and the first again: counted from their means, or
  // from v at the largest weight.
  template <class Product>
  [[gnu::noinline]] static Place<V> careful(const Block& b, size_t first, size_t count, V total,
                                            V half, const Product& product) {
    const S* p[N];
    const S* v[N];
    V tops[N], products[N];
    for (size_t r = 0; r < N; ++r) {
      p[r] = at<S>(b.x, first + (r < count ? r : 0), b.x_row);
      v[r] = at<S>(b.y, first + (r < count ? r : 0), b.y_row);
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
    return place_of(load_raw<C, N>(centres), total, sum_of_each(products));
  }

  // N rows at once, one lane for the sums of each: nothing waits for the sum of the lanes of one
  // row; and of rows of Few vectors several times N, so that little waits for the division. No lane
  // meets another, so a row computes as if it were alone. Returns how many of the rows it did.
  template <int Few, class Product>
  SOFTSCOPE_INLINE static size_t together(const Block& b, size_t first, size_t rows,
                                          const Product& product) {
    constexpr size_t many = Few == 0 ? N : kGoes * N;
    const size_t count = rows < many ? rows : many;
    const V fresh = b.n % N == 0 ? fill<C, N>(1) : uncovered<C, N>(fill<C, N>(1), b.n);
    C uppers[many], lowers[many];
    V all[many / N], doubts[many / N], doubt = {};
    for (size_t go = 0; go < count; go += N) {
      V totals[N], sums[N], squares[N];
      for (size_t r = 0; r < N; ++r) {
        const size_t row = first + (go + r < count ? go + r : go);
        const S* p = at<S>(b.x, row, b.x_row);
        const S* v = at<S>(b.y, row, b.y_row);
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
      all[go / N] = total;
      doubts[go / N] = near_zero(total, sum, sum_of_each(squares)) ? V{} : fill<C, N>(1);
      doubt += doubts[go / N];
      store_raw<C, N>(uppers + go, sum / (total == 0 ? fill<C, N>(1) : total) * C(0.5));
    }
    const bool known = sum_lanes<C, N>(doubt) == 0;
    for (size_t go = 0; !known && go < count; go += N) {
      store_raw<C, N>(lowers + go, V{});
      if (sum_lanes<C, N>(doubts[go / N]) == 0) continue;
      const V half = load_raw<C, N>(uppers + go);
      const Place<V> place = careful(b, first + go, count - go, all[go / N], half, product);
      store_raw<C, N>(uppers + go, doubts[go / N] == 0 ? half : place.upper);
      store_raw<C, N>(lowers + go, doubts[go / N] == 0 ? V{} : place.lower);
    }
    Scale<C> scale(*numbers_of(b, first));
    for (size_t r = 0; r < count; ++r) {
      const S* p = at<S>(b.x, first + r, b.x_row);
      const S* v = at<S>(b.y, first + r, b.y_row);
      S* out = at<S>(b.out, first + r, b.out_row);
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

// A row too long for one thread, in parts: the moments of each, which merge, and then the map.
template <class S, int N>
void part_moments(const PairPart& p, double* sums) {
  with_sensitivity<S, N>(p.numbers[1], [&](const auto& product) {
    const Moments m = product.moments(static_cast<const S*>(p.x), static_cast<const S*>(p.y), p.n);
    __builtin_memcpy(sums, &m, sizeof m);
  });
}

void merge_moments(double* into, const double* from) {
  Moments a, b;
  __builtin_memcpy(&a, into, sizeof a);
  __builtin_memcpy(&b, from, sizeof b);
  a = merged(a, b);
  __builtin_memcpy(into, &a, sizeof a);
}

template <class S, int N>
void part_product(const PairPart& p, const double* sums) {
  Moments m;
  __builtin_memcpy(&m, sums, sizeof m);
  with_sensitivity<S, N>(p.numbers[1], [&](const auto& product) {
    product.template map<false>(static_cast<const S*>(p.x), static_cast<const S*>(p.y),
                                static_cast<S*>(p.out), p.n, place_of<Compute<S>>(m),
                                Scale<Compute<S>>(p.numbers[0]));
  });
}

}  // namespace
}  // namespace softscope
