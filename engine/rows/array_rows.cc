#include "rows/array_rows.h"

namespace softscope {

std::vector<Axis> axes_of(const Rows& rows) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < rows.lead.size(); ++i) {
    const Axis a = {.size = rows.lead[i],
                    .x = rows.x.strides[i],
                    .y = rows.y.strides[i],
                    .out = rows.out.strides[i],
                    .numbers = rows.numbers_strides[i]};
    if (a.size == 1) continue;
    const auto size = static_cast<ptrdiff_t>(a.size);
    if (!axes.empty() && axes.back().x == a.x * size && axes.back().y == a.y * size &&
        axes.back().out == a.out * size && axes.back().numbers == a.numbers * size) {
      const size_t joined = axes.back().size * a.size;
      axes.back() = a;
      axes.back().size = joined;
    } else {
      axes.push_back(a);
    }
  }
  return axes;
}

size_t count_of(const std::vector<Axis>& axes) {
  size_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  return count;
}

Offsets offsets_of(const std::vector<Axis>& axes, size_t index) {
  Offsets at;
  for (size_t i = axes.size(); i-- > 0;) {
    at.walk(axes[i], index % axes[i].size);
    index /= axes[i].size;
  }
  return at;
}

}  // namespace softscope
