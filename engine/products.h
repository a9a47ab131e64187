// J·v/T without J: s·(v − Σ s·v/Σs)/T, with s = p^(2−α) of the weights p. The backward pass of
// softmax, sparsemax and entmax. The error of an entry is that of 4 roundings, and of s·Σ s|d|/Σs·u
// for d = v − Σ s·v/Σs a few more.
#pragma once

#include "moments.h"
#include "pairs.h"
#include "sensitivity.h"

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

  // Lanes of Σs, Σ s·v and the largest s of a row of a few vectors.
  SOFTSCOPE_INLINE void first(const S* p, const S* v, size_t n, V& total, V& sum, V& top) const {
    V totals[2] = {}, sums[2] = {};
    top = V{};
    size_t i = 0;
    const auto meet = [&](V here, V beside, int c) __attribute__((always_inline)) {
      totals[c] += here;
      sums[c] += here * beside;
      top = max(here, top);
    };
    for (; i + 2 * N <= n; i += 2 * N) {
      meet(s.of(load<S, N>(p + i)), load<S, N>(v + i), 0);
      meet(s.of(load<S, N>(p + i + N)), load<S, N>(v + i + N), 1);
    }
    if (i + N <= n) meet(s.of(load<S, N>(p + i)), load<S, N>(v + i), 0);
    if (n % N != 0) {
      meet(uncovered<C, N>(s.of(load_last<S, N>(p, n, 0)), n),
           uncovered<C, N>(load_last<S, N>(v, n, 0), n), 1);
    }
    total = totals[0] + totals[1];
    sum = sums[0] + sums[1];
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

  // The same sums of many entries, that the first-level cache holds: vectors are added up by fours
  // before the careful sum takes over.
  Moments stretch(const S* p, const S* v, size_t n) const {
    Sum<C, N> total, product;
    V sums[4] = {}, top = {};
    size_t i = 0;
    const auto meet = [&](size_t k, int c) __attribute__((always_inline)) {
      const V here = s.of(load<S, N>(p + k));
      sums[c] += here * load<S, N>(v + k);
      top = max(here, top);
      return here;
    };
    for (; i + 4 * N <= n; i += 4 * N) {
      total.add((meet(i, 0) + meet(i + N, 1)) + (meet(i + 2 * N, 2) + meet(i + 3 * N, 3)));
    }
    V rest_total, rest_sum, rest_top;
    first(p + i, v + i, n - i, rest_total, rest_sum, rest_top);
    total.add(rest_total);
    sums[0] += rest_sum;

    Moments m = {static_cast<double>(max_lane<C, N>(max(top, rest_top))), 0, total.value(), 0};
    m.centre = static_cast<double>(sum_lanes<C, N>((sums[0] + sums[1]) + (sums[2] + sums[3]))) /
               (m.total == 0 ? 1 : m.total);
    const bool known = m.centre - m.centre == 0 && m.top <= kDominant<double> * m.total;
    if (!known) m.centre = static_cast<double>(at_top(p, v, n));
    const C centre = static_cast<C>(m.centre);
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

  SOFTSCOPE_INLINE void map(const S* p, const S* v, S* out, size_t n, Place<C> place,
                            double temperature) const {
    const Scale<C> scale(temperature);
    const auto one = [&](V weights, V beside) __attribute__((always_inline)) {
      const V d = (beside * C(0.5) - place.upper) - place.lower;
      return ((s.of(weights) * scale.before) * d) * scale.after;
    };
    // Before `out`, which may be p or v, is written.
    const V tail = one(load_last<S, N>(p, n, 0), load_last<S, N>(v, n, 0));
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
      product.map(p, v, out, n, place_of<C>(product.moments(p, v, n)), numbers[0]);
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
      size_t count = 1;
      while (count < N && r + count < b.rows && numbers_of(b, r + count)[1] == alpha) ++count;
      with_sensitivity<S, N>(alpha, [&](const auto& product) __attribute__((always_inline)) {
        together(b, r, count, product);
      });
      r += count;
    }
  }

  template <class A>  // S, or the type that computes in a transposed tile
  static void columns(Columns<A> p, Columns<A> v, A* out, ptrdiff_t out_step, const Lanes& lanes) {
    if (lanes.plain) {
      side_by_side<A, true>(p, v, out, out_step, lanes);
    } else {
      side_by_side<A, false>(p, v, out, out_step, lanes);
    }
  }

 private:
  SOFTSCOPE_INLINE static V sum_of_all(V (&lanes)[N]) {
    transpose<C, N>(lanes);
    for (int step = N / 2; step > 0; step /= 2) {
      for (int k = 0; k < step; ++k) lanes[k] += lanes[k + step];
    }
    return lanes[0];
  }

  // N rows at once, one lane for the sums of each: nothing waits for the sum of the lanes of one
  // row. No lane meets another, so a row computes as if it were alone.
  template <class Product>
  SOFTSCOPE_INLINE static void together(const Block& b, size_t first, size_t count,
                                        const Product& product) {
    const S* p[N];
    const S* v[N];
    for (size_t r = 0; r < N; ++r) {
      const size_t row = first + (r < count ? r : 0);
      p[r] = at<S>(b.x, row, b.x_row);
      v[r] = at<S>(b.y, row, b.y_row);
    }
    V totals[N], sums[N], tops[N];
    for (size_t r = 0; r < N; ++r) product.first(p[r], v[r], b.n, totals[r], sums[r], tops[r]);
    const V total = sum_of_all(totals), sum = sum_of_all(sums);
    transpose<C, N>(tops);
    for (int k = 1; k < N; ++k) tops[0] = max(tops[0], tops[k]);

    const V mean = sum / (total == 0 ? fill<C, N>(1) : total);
    const V doubt = tops[0] <= kDominant<C> * total ? mean - mean : fill<C, N>(1);
    C centres[N];
    store_raw<C, N>(centres, mean);
    if (sum_lanes<C, N>(doubt) != 0) {
      for (size_t r = 0; r < count; ++r) {
        if (doubt[r] != 0) centres[r] = product.at_top(p[r], v[r], b.n);
      }
    }
    const V centre = load_raw<C, N>(centres);
    for (size_t r = 0; r < N; ++r) sums[r] = product.second(p[r], v[r], b.n, origin(centres[r]));
    const Place<V> place = place_of(centre, total, sum_of_all(sums));
    for (size_t r = 0; r < count; ++r) {
      product.map(p[r], v[r], at<S>(b.out, first + r, b.out_row), b.n,
                  {place.upper[r], place.lower[r]}, *numbers_of(b, first + r));
    }
  }

  template <class A>
  SOFTSCOPE_INLINE static V entry(Columns<A> in, size_t i, int g) {
    return load<A, N>(in.x + static_cast<ptrdiff_t>(i) * in.step + g * N);
  }

  template <class A, bool Plain>
  static void side_by_side(Columns<A> p, Columns<A> v, A* out, ptrdiff_t out_step,
                           const Lanes& lanes) {
    constexpr int K = kGroups;
    Sensitivity<C, N, Plain> s[K];
    LaneSum<C, N> totals[K], products[K];
    V sums[K] = {}, tops[K] = {};
    for (int l = 0; l < K * N; ++l) s[l / N].set(l % N, lanes.exponents[l]);
    for (size_t i = 0; i < p.n; ++i) {
      for (int g = 0; g < K; ++g) {
        const V here = s[g].of(entry(p, i, g));
        totals[g].add(here);
        sums[g] += here * entry(v, i, g);
        tops[g] = max(here, tops[g]);
      }
    }
    C centres[K * N];
    V total[K], from[K];
    for (int g = 0; g < K; ++g) {
      total[g] = totals[g].value();
      const V mean = sums[g] / (total[g] == 0 ? fill<C, N>(1) : total[g]);
      const V doubt = tops[g] <= kDominant<C> * total[g] ? mean - mean : fill<C, N>(1);
      store_raw<C, N>(centres + g * N, mean);
      for (int l = 0; l < N; ++l) {
        if (doubt[l] != 0) centres[g * N + l] = at_top(p, v, g * N + l);
      }
      from[g] = origin(load_raw<C, N>(centres + g * N)) / 2;
    }
    for (size_t i = 0; i < p.n; ++i) {
      for (int g = 0; g < K; ++g) {
        products[g].add(s[g].of(entry(p, i, g)) * (entry(v, i, g) * C(0.5) - from[g]));
      }
    }
    Place<V> place[K];
    for (int g = 0; g < K; ++g) {
      V product = products[g].value();
      if constexpr (sizeof(C) == 8) product = or_endless(product, products[g].total);
      place[g] = place_of(load_raw<C, N>(centres + g * N), total[g], product);
    }
    for (size_t i = 0; i < p.n; ++i, out += out_step) {
      for (int g = 0; g < K; ++g) {
        const V here = s[g].of(entry(p, i, g)) * load_raw<C, N>(lanes.before + g * N);
        const V d = (entry(v, i, g) * C(0.5) - place[g].upper) - place[g].lower;
        store<A, N>(out + g * N, (here * d) * load_raw<C, N>(lanes.after + g * N));
      }
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
    product.map(static_cast<const S*>(p.x), static_cast<const S*>(p.y), static_cast<S*>(p.out), p.n,
                place_of<Compute<S>>(m), p.numbers[0]);
  });
}

}  // namespace
}  // namespace softscope
