// J·v/T without J: s·(v − Σ s·v/Σs)/T, with s = p^(2−α) of the weights p. The backward pass of
// softmax, sparsemax and entmax. The error of an entry is that of a few roundings of s·d/T, with
// d = v − Σ s·v/Σs, and of s·σ/T, with σ the root of Σ s·d²/Σs. So it does not matter where v lies,
// nor how close to one-hot the weights are.
#pragma once

#include "fold.h"
#include "moments.h"
#include "sensitivity.h"
#include "two_rows.h"

namespace softscope {
namespace {

// What a sum of float64 carries beside itself is NaN once the sum is infinite.
template <class V>
SOFTSCOPE_INLINE V or_endless(V sum, V plain) {
  return sum == sum ? sum : plain;
}

template <class S, int N, bool Plain>
struct RowProduct {
  using C = Compute<S>;
  using V = Vec<C, N>;
  Sensitivity<C, N, Plain> s;

  // Lanes of Σs, Σ s·v and Σ s·v².
  struct Sums {
    V total, sum, square;
  };
  SOFTSCOPE_INLINE Sums sums(const S* p, const S* v, size_t n) const {
    Sums two[2] = {};
    const auto meet = [&](V here, V beside, int c) __attribute__((always_inline)) {
      const V term = here * beside;
      two[c].total += here;
      two[c].sum += term;
      two[c].square += term * beside;
    };
    size_t i = 0;
    for (; i + 2 * N <= n; i += 2 * N) {
      meet(s.of(load<S, N>(p + i)), load<S, N>(v + i), 0);
      meet(s.of(load<S, N>(p + i + N)), load<S, N>(v + i + N), 1);
    }
    if (i + N <= n) meet(s.of(load<S, N>(p + i)), load<S, N>(v + i), 0);
    if (n % N != 0) {
      meet(uncovered<C, N>(s.of(load_last<S, N>(p, n, 0)), n),
           uncovered<C, N>(load_last<S, N>(v, n, 0), n), 1);
    }
    return {two[0].total + two[1].total, two[0].sum + two[1].sum, two[0].square + two[1].square};
  }

  // The same of exactly Few vectors, the last of which may overlap: `fresh` is 0 where it does.
  template <int Few>
  SOFTSCOPE_INLINE Sums sums(const S* p, const S* v, size_t n, V fresh) const {
    Sums all = {};
    for (size_t k = 0; k < Few; ++k) {
      const size_t i = k + 1 < Few ? k * N : n - N;
      V here = s.of(load<S, N>(p + i)), beside = load<S, N>(v + i);
      if (k + 1 == Few) {
        here = fresh != 0 ? here : V{};
        beside = fresh != 0 ? beside : V{};
      }
      const V term = here * beside;
      all.total += here;
      all.sum += term;
      all.square += term * beside;
    }
    return all;
  }

  // Lanes of Σ s·(v − centre)/2.
  SOFTSCOPE_INLINE V second(const S* p, const S* v, size_t n, C centre) const {
    const C half = centre / 2;
    V sums[2] = {};
    size_t i = 0;
    for (; i + 2 * N <= n; i += 2 * N) {
      sums[0] += s.of(load<S, N>(p + i)) * (load<S, N>(v + i) * C(0.5) - half);
      sums[1] += s.of(load<S, N>(p + i + N)) * (load<S, N>(v + i + N) * C(0.5) - half);
    }
    if (i + N <= n) sums[0] += s.of(load<S, N>(p + i)) * (load<S, N>(v + i) * C(0.5) - half);
    if (n % N != 0) {
      sums[1] += uncovered<C, N>(s.of(load_last<S, N>(p, n, 0)), n) *
                 (uncovered<C, N>(load_last<S, N>(v, n, 0), n) * C(0.5) - half);
    }
    return sums[0] + sums[1];
  }

  // Lanes of the largest s.
  SOFTSCOPE_INLINE V top(const S* p, size_t n) const {
    V top = s.of(load_last<S, N>(p, n, 0));
    for (size_t i = 0; i + N <= n; i += N) top = max(s.of(load<S, N>(p + i)), top);
    return top;
  }

  // v at the largest weight.
  C at_top(const S* p, const S* v, size_t n) const {
    V top = load_last<S, N>(p, n, -1), there = load_last<S, N>(v, n, 0);
    for (size_t i = 0; i + N <= n; i += N) {
      const V here = load<S, N>(p + i);
      there = here > top ? load<S, N>(v + i) : there;
      top = max(here, top);
    }
    int best = 0;
    for (int l = 1; l < N; ++l) best = top[l] > top[best] ? l : best;
    return there[best];
  }

  // The mean, if v may be counted from 0: vectors are added up by fours before the careful sum
  // takes over.
  bool quick(const S* p, const S* v, size_t n, C& mean) const {
    Sum<C, N> total, sum;
    V square[4] = {};
    size_t i = 0;
    for (; i + 4 * N <= n; i += 4 * N) {
      V here[4], term[4];
      for (size_t k = 0; k < 4; ++k) {
        const V beside = load<S, N>(v + i + k * N);
        here[k] = s.of(load<S, N>(p + i + k * N));
        term[k] = here[k] * beside;
        square[k] += term[k] * beside;
      }
      total.add((here[0] + here[1]) + (here[2] + here[3]));
      sum.add((term[0] + term[1]) + (term[2] + term[3]));
    }
    const Sums rest = sums(p + i, v + i, n - i);
    total.add(rest.total);
    sum.add(rest.sum);
    const double all = total.value(), found = sum.value();
    const V squares = ((square[0] + square[1]) + (square[2] + square[3])) + rest.square;
    mean = static_cast<C>(found / (all == 0 ? 1 : all));
    return near_zero(all, found, static_cast<double>(sum_lanes<C, N>(squares)));
  }

  // Of many entries, that the first-level cache holds.
  Moments stretch(const S* p, const S* v, size_t n) const {
    Sum<C, N> total, product;
    V sum = {}, top = {};
    size_t i = 0;
    for (; i + N <= n; i += N) {
      const V here = s.of(load<S, N>(p + i));
      total.add(here);
      sum += here * load<S, N>(v + i);
      top = max(here, top);
    }
    if (i < n) {
      const V here = uncovered<C, N>(s.of(load_last<S, N>(p, n, 0)), n);
      total.add(here);
      sum += here * uncovered<C, N>(load_last<S, N>(v, n, 0), n);
      top = max(here, top);
    }
    Moments m = {static_cast<double>(max_lane<C, N>(top)), 0, total.value(), 0};
    m.centre = static_cast<double>(sum_lanes<C, N>(sum)) / (m.total == 0 ? 1 : m.total);
    const bool known = m.centre - m.centre == 0 && m.top <= kDominant<double> * m.total;
    const C centre = known ? static_cast<C>(m.centre) : at_top(p, v, n);
    m.centre = static_cast<double>(centre);

    const C half = origin(centre) / 2;
    const auto term = [&](size_t k) __attribute__((always_inline)) {
      return s.of(load<S, N>(p + k)) * (load<S, N>(v + k) * C(0.5) - half);
    };
    for (i = 0; i + 4 * N <= n; i += 4 * N) {
      product.add((term(i) + term(i + N)) + (term(i + 2 * N) + term(i + 3 * N)));
    }
    product.add(second(p + i, v + i, n - i, origin(centre)));
    m.product = product.value();
    if constexpr (sizeof(C) == 8) {
      m.product = or_endless(m.product, sum_lanes<double, N>(product.total));
    }
    return m;
  }

  // A row of any length: memory is read once.
  Moments moments(const S* p, const S* v, size_t n) const {
    constexpr size_t many = kStretchBytes / 4 / sizeof(S);
    Moments total = kNoMoments;
    for (size_t i = 0; i < n; i += many) {
      total = merged(total, stretch(p + i, v + i, n - i < many ? n - i : many));
    }
    return total;
  }

  // Quick: the mean has no lower part. Few: how many vectors there are, or 0 for any number.
  template <bool Quick, int Few = 0>
  SOFTSCOPE_INLINE void map(const S* p, const S* v, S* out, size_t n, Place<C> place,
                            Scale<C> scale) const {
    const auto one = [&](V weights, V beside) __attribute__((always_inline)) {
      V d = beside * C(0.5) - place.upper;
      if constexpr (!Quick) d -= place.lower;
      return ((s.of(weights) * scale.before) * d) * scale.after;
    };
    // Before `out`, which may be p or v, is written.
    const V tail = one(load_last<S, N>(p, n, 0), load_last<S, N>(v, n, 0));
    if constexpr (Few != 0) {
      for (size_t i = 0; i + N < Few * N; i += N) {
        store<S, N>(out + i, one(load<S, N>(p + i), load<S, N>(v + i)));
      }
      store<S, N>(out + n - N, tail);
      return;
    }
    for (size_t i = 0; i + N <= n; i += N) {
      store<S, N>(out + i, one(load<S, N>(p + i), load<S, N>(v + i)));
    }
    if (n % N != 0) store_last<S, N>(out, n, tail);
  }
};

// Calls what computes at this α.
template <class S, int N, class Function>
SOFTSCOPE_INLINE void with_sensitivity(double alpha, Function&& function) {
  if (alpha == 1) {
    function(RowProduct<S, N, true>{});
  } else {
    RowProduct<S, N, false> product;
    for (int l = 0; l < N; ++l) product.s.set(l, 2 - alpha);
    function(product);
  }
}

template <class S, int N>
struct JacobianProduct {
  using C = Compute<S>;
  using V = Vec<C, N>;
  static constexpr bool kTwo = true;
  static constexpr size_t kTile = N;
  static constexpr size_t kGoes = 4;
  static constexpr size_t kFew = 32 * N;  // entries that a sum in each lane is exact enough for

  struct Lanes {
    C before[kWidth<N>], after[kWidth<N>];
    double exponents[kWidth<N>];
    bool plain;

    void read(const Block& b, size_t first, size_t rows) {
      plain = true;
      for (size_t r = 0; r < kWidth<N>; ++r) {
        const double* numbers = numbers_of(b, first + (r < rows ? r : 0));
        const Scale<C> scale(numbers[0]);
        before[r] = scale.before;
        after[r] = scale.after;
        exponents[r] = 2 - numbers[1];
        plain = plain && exponents[r] == 1;
      }
    }
  };

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
    if (p.n > kShort<C>) {
      side_by_side<A, false, LaneSum<C, N>>(p, v, out, out_step, lanes);
    } else if (lanes.plain) {
      side_by_side<A, true, ShortSum>(p, v, out, out_step, lanes);
    } else {
      side_by_side<A, false, ShortSum>(p, v, out, out_step, lanes);
    }
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

  template <class A>
  SOFTSCOPE_INLINE static V entry(Columns<A> in, size_t i, int g) {
    return load<A, N>(in.x + static_cast<ptrdiff_t>(i) * in.step + g * N);
  }

  // A sum for each lane; of a few entries it needs no care.
  struct ShortSum {
    V total{};
    SOFTSCOPE_INLINE void add(V v) { total += v; }
    SOFTSCOPE_INLINE V value() const { return total; }
  };

  template <class A, bool Plain, class LanesSum>
  static void side_by_side(Columns<A> p, Columns<A> v, A* out, ptrdiff_t out_step,
                           const Lanes& lanes) {
    constexpr int K = kGroups;
    Sensitivity<C, N, Plain> s[K];
    LanesSum totals[K], sums[K];
    V squares[K] = {}, total[K], upper[K], lower[K], near[K];
    for (int l = 0; l < K * N; ++l) s[l / N].set(l % N, lanes.exponents[l]);
    for (size_t i = 0; i < p.n; ++i) {
      for (int g = 0; g < K; ++g) {
        const V here = s[g].of(entry(p, i, g)), beside = entry(v, i, g), term = here * beside;
        totals[g].add(here);
        sums[g].add(term);
        squares[g] += term * beside;
      }
    }
    V doubt = {};
    for (int g = 0; g < K; ++g) {
      total[g] = totals[g].value();
      const V sum = sums[g].value();
      upper[g] = sum / (total[g] == 0 ? fill<C, N>(1) : total[g]) * C(0.5);
      lower[g] = V{};
      near[g] = near_zero(total[g], sum, squares[g]) ? V{} : fill<C, N>(1);
      doubt += near[g];
    }
    if (sum_lanes<C, N>(doubt) != 0) {
      Place<V> place[K];
      place_carefully<LanesSum>(p, v, s, total, upper, place);
      for (int g = 0; g < K; ++g) {
        upper[g] = near[g] == 0 ? upper[g] : place[g].upper;
        lower[g] = near[g] == 0 ? lower[g] : place[g].lower;
      }
    }
    for (size_t i = 0; i < p.n; ++i, out += out_step) {
      for (int g = 0; g < K; ++g) {
        const V here = s[g].of(entry(p, i, g)) * load_raw<C, N>(lanes.before + g * N);
        const V d = (entry(v, i, g) * C(0.5) - upper[g]) - lower[g];
        store<A, N>(out + g * N, (here * d) * load_raw<C, N>(lanes.after + g * N));
      }
    }
  }

  // Counted from the means, whose halves are given, or from v at the largest weight.
  template <class LanesSum, class A, bool Plain>
  static void place_carefully(Columns<A> p, Columns<A> v,
                              const Sensitivity<C, N, Plain> (&s)[kGroups],
                              const V (&total)[kGroups], const V (&halves)[kGroups],
                              Place<V> (&place)[kGroups]) {
    V tops[kGroups] = {};
    for (size_t i = 0; i < p.n; ++i) {
      for (int g = 0; g < kGroups; ++g) tops[g] = max(s[g].of(entry(p, i, g)), tops[g]);
    }
    for (int g = 0; g < kGroups; ++g) {
      C centres[N];
      const V doubt = tops[g] <= kDominant<C> * total[g] ? halves[g] - halves[g] : fill<C, N>(1);
      store_raw<C, N>(centres, halves[g] * C(2));
      for (int l = 0; l < N; ++l) {
        if (doubt[l] != 0) centres[l] = at_top(p, v, g * N + l);
      }
      const V centre = load_raw<C, N>(centres), half = origin(centre) / 2;
      LanesSum products;
      for (size_t i = 0; i < p.n; ++i) {
        products.add(s[g].of(entry(p, i, g)) * (entry(v, i, g) * C(0.5) - half));
      }
      V product = products.value();
      if constexpr (sizeof(C) == 8) product = or_endless(product, products.total);
      place[g] = place_of(centre, total[g], product);
    }
  }

  template <class A>
  static C at_top(Columns<A> p, Columns<A> v, int lane) {
    C top = -1, there = 0;
    for (size_t i = 0; i < p.n; ++i, p.x += p.step, v.x += v.step) {
      const C here = load_first<A, N>(p.x + lane, 1, 0)[0];
      if (here > top) {
        top = here;
        there = load_first<A, N>(v.x + lane, 1, 0)[0];
      }
    }
    return there;
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
