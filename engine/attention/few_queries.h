// One query or a few against many keys: decoding. Packing would cost more than it saves, so keys
// and values are read in place, once, and memory sets the pace. The processor's own prefetcher
// stops at the end of a page, so the kernels prefetch; little by little, since only some twenty
// lines can be in flight. A prefetch reads nothing, so any address will do.
#pragma once

#include "attention/key_block.h"
#include "attention/multiply.h"
#include "simd/fold.h"
#include "simd/storage.h"

namespace softscope {
namespace {

// R rows of queries, and the scale of each.
template <class C, int R>
struct Queries {
  const C* q[R];
  C scale[R];
};

// x = scale·q·k for some keys of a block, N at a time; past the block's last key, for that one
// again.
template <class S, int N, int R>
SOFTSCOPE_INLINE void dots(const Attention& a, const Queries<Compute<S>, R>& queries,
                           KeyBlock block, KeyRange keys, Strided<Compute<S>> x) {
  using C = Compute<S>;
  using V = Vec<C, N>;
  const size_t whole = a.d / N * N, rest = a.d - whole;
  constexpr size_t kLine = 64 / sizeof(S);
  const ptrdiff_t ahead = 16 * a.k.row;
  for (size_t j = keys.begin; j < keys.end; j += N) {
    const S* k[N];
    for (size_t i = 0; i < N; ++i) {
      const size_t key = j + i < block.count ? j + i : block.count - 1;
      k[i] = row_of<const S>(a.k, 0, block.first + key);
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
          const V at = load_raw<C, N>(queries.q[r] + c);
          s0[r] += at * k0;
          s1[r] += at * k1;
        }
      }
      if (rest != 0) {
        const V k0 = load_first<S, N>(k[i] + whole, rest, 0);
        const V k1 = load_first<S, N>(k[i + 1] + whole, rest, 0);
        for (size_t r = 0; r < R; ++r) {
          const V at = load_first<C, N>(queries.q[r] + whole, rest, 0);
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
      store_raw<C, N>(x[r] + j,
                      fold<C, N>(sum[r], [](V u, V w) { return u + w; }) * queries.scale[r]);
    }
  }
}

// The sums of R rows gain Σ p·v over some keys of a block. A few keys at a time: then their values
// stay in the first-level cache for all rows.
template <class S, int N, int R>
SOFTSCOPE_INLINE void add_values(const Attention& a, Strided<const Compute<S>> weights,
                                 KeyBlock block, KeyRange keys, Strided<Compute<S>> all_sums) {
  using C = Compute<S>;
  using V = Vec<C, N>;
  constexpr size_t kWide = 8;      // vectors of the output at a time, in registers
  constexpr size_t kFewKeys = 32;  // keys at a time
  constexpr size_t kLine = 64 / sizeof(S);
  const ptrdiff_t ahead = kFewKeys * a.v.row;
  for (size_t begin = keys.begin; begin < keys.end; begin += kFewKeys) {
    const size_t end = keys.end - begin < kFewKeys ? keys.end : begin + kFewKeys;
    const S* v = row_of<const S>(a.v, 0, block.first + begin);
    for (size_t r = 0; r < R; ++r) {
      const C* p = weights[r];
      C* sums = all_sums[r];
      size_t c = 0;
      for (; c + kWide * N <= a.dv; c += kWide * N) {
        V sum[kWide];
        for (size_t i = 0; i < kWide; ++i) sum[i] = load_raw<C, N>(sums + c + i * N);
        const S* at = v + c;
        for (size_t j = begin; j < end; ++j, at += a.v.row) {
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
        for (size_t j = begin; j < end; ++j, at += a.v.row) {
          sum += p[j] * (left >= N ? load<S, N>(at) : load_first<S, N>(at, left, 0));
        }
        store_raw<C, N>(sums + c, sum);
      }
    }
  }
}

}  // namespace
}  // namespace softscope
