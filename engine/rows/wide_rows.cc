#include "rows/wide_rows.h"

#include "simd/storage.h"

namespace softscope {
namespace {

template <class S>
const double* copied(const void* data, size_t first, size_t n, std::vector<double>& room) {
  constexpr size_t lanes = 4;
  const S* x = static_cast<const S*>(data) + first;
  room.resize(n);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vec<float, lanes> some = load<S, lanes>(x + i);
    for (size_t k = 0; k < lanes; ++k) room[i + k] = static_cast<double>(some[k]);
  }
  for (; i < n; ++i) room[i] = static_cast<double>(load_first<S, lanes>(x + i, 1, 0)[0]);
  return room.data();
}

}  // namespace

const double* WideRows::row(size_t i, std::vector<double>& room) const {
  switch (type) {
    case kFloat16:
      return copied<Half>(data, i * n, n, room);
    case kBFloat16:
      return copied<Brain>(data, i * n, n, room);
    case kFloat32:
      return copied<float>(data, i * n, n, room);
    default:
      return static_cast<const double*>(data) + i * n;
  }
}

}  // namespace softscope
