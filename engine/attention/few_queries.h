// One query or a few against many keys: what decoding is. Packing would cost more than it saves, so
// keys and values are read where they are, once, and memory sets the pace. The processor looks
// ahead within a page only, so it is told what comes; little by little, as it can wait for some
// twenty lines at a time. Telling reads nothing: any address will do.
#pragma once

#include "attention/problem.h"
#include "simd/fold.h"
#include "simd/storage.h"

namespace softscope {
namespace {

// x = scale·q·k for keys [from, end) of the `many` of a block that begins with key `first`, N at a
// time; for those past the last, of that.
template <class S, int N, int R, class C = Compute<S>>
SOFTSCOPE_INLINE void dots(const Attention& a, const C* const (&q)[R], const C (&scale)[R],
                           size_t first, size_t from, size_t end, size_t many, C* x, size_t x_row) {
  using V = Vec<C, N>;
  const size_t whole = a.d / N * N, rest = a.d - whole;
  constexpr size_t kLine = 64 / sizeof(S);
  const ptrdiff_t ahead = 16 * a.k_row;
  for (size_t j = from; j < end; j += N) {
    const S* k[N];
    for (size_t i = 0; i < N; ++i) {
      const size_t key = j + i < many ? j + i : many - 1;
      k[i] = static_cast<const S*>(a.k) + offset(first + key, a.k_row);
    }
    V sum[R][N];
    for (size_t i = 0; i < N; i += 2) {  // key after key, as they lie in memory
      V s0[R] = {}, s1[R] = {};
      for (size_t c = 0; c < whole; c += N) {
        if (c % kLine == 0) {
          __builtin_prefetch(k[i] + ahead + c);
          __builtin_prefetch(k[i + 1] + ahead + c);
        }
        const V k0 = load<S, N>(k[i] + c), k1 = load<S, N>(k[i + 1] + c);
        for (size_t r = 0; r < R; ++r) {
          const V at = load_raw<C, N>(q[r] + c);
          s0[r] += at * k0;
          s1[r] += at * k1;
        }
      }
      if (rest != 0) {
        const V k0 = load_first<S, N>(k[i] + whole, rest, 0);
        const V k1 = load_first<S, N>(k[i + 1] + whole, rest, 0);
        for (size_t r = 0; r < R; ++r) {
          const V at = load_first<C, N>(q[r] + whole, rest, 0);
          s0[r] += at * k0;
          s1[r] += at * k1;
        }
      }
      for (size_t r = 0; r < R; ++r) {
        sum[r][i] = s0[r];
        sum[r][i + 1] = s1[r];
      }
    }
    for (size_t r = 0; r < R; ++r) {
      store_raw<C, N>(x + r * x_row + j,
                      fold<C, N>(sum[r], [](V u, V w) { return u + w; }) * scale[r]);
    }
  }
}

// `all_sums` of R rows gain Σ p·v over keys [from, to) of the block. Some keys at a time: their
// values then stay in the first-level cache for all rows.
template <class S, int N, int R, class C = Compute<S>>
SOFTSCOPE_INLINE void add_values(const Attention& a, const C* weights, size_t weights_row,
                                 size_t first, size_t from, size_t to, C* all_sums, size_t wide) {
  using V = Vec<C, N>;
  constexpr size_t kWide = 8;   // vectors of the output at a time, in registers
  constexpr size_t kSome = 32;  // keys
  constexpr size_t kLine = 64 / sizeof(S);
  const ptrdiff_t ahead = kSome * a.v_row;
  for (size_t begin = from; begin < to; begin += kSome) {
    const size_t stop = to - begin < kSome ? to : begin + kSome;
    const S* v = static_cast<const S*>(a.v) + offset(first + begin, a.v_row);
    for (size_t r = 0; r < R; ++r) {
      const C* p = weights + r * weights_row;
      C* sums = all_sums + r * wide;
      size_t c = 0;
      for (; c + kWide * N <= a.dv; c += kWide * N) {
        V sum[kWide];
        for (size_t i = 0; i < kWide; ++i) sum[i] = load_raw<C, N>(sums + c + i * N);
        const S* at = v + c;
        for (size_t j = begin; j < stop; ++j, at += a.v_row) {
          const V weight = fill<C, N>(p[j]);
          if ((j - begin) % R == r) {
            for (size_t i = 0; i < kWide * N; i += kLine) __builtin_prefetch(at + ahead + i);
          }
          for (size_t i = 0; i < kWide; ++i) sum[i] += weight * load<S, N>(at + i * N);
        }
        for (size_t i = 0; i < kWide; ++i) store_raw<C, N>(sums + c + i * N, sum[i]);
      }
      for (; c < a.dv; c += N) {
        V sum = load_raw<C, N>(sums + c);
        const S* at = v + c;
        const size_t left = a.dv - c;
        for (size_t j = begin; j < stop; ++j, at += a.v_row) {
          sum += p[j] * (left >= N ? load<S, N>(at) : load_first<S, N>(at, left, 0));
        }
        store_raw<C, N>(sums + c, sum);
      }
    }
  }
}

}  // namespace
}  // namespace softscope
