#include "rows/temperature.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "threads/parallel_for.h"

namespace softscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kWorthThreads = size_t{1} << 12;  // entries
constexpr size_t kSumEntries = 256;                // summed one after the other; their sums, too
constexpr int kMostSteps = 300;                    // halving alone takes 60

// How far the entries below the maximum lie below it, and what else the search asks of a row.
struct Row {
  std::vector<double> gaps;
  double ties = 0, smallest = kInfinity, largest = 0;
  double unit = 1;  // of the gaps: 2 where they would overflow

  Row(const double* x, size_t n) {
    double highest = -kInfinity;
    for (size_t i = 0; i < n; ++i) {
      if (std::isnan(x[i])) return;
      highest = std::max(highest, x[i]);
    }
    if (std::isinf(highest)) return;
    for (size_t i = 0; i < n; ++i) {
      if (std::isinf(highest - x[i]) && !std::isinf(x[i])) unit = 2;
    }
    for (size_t i = 0; i < n; ++i) {
      if (x[i] == -kInfinity) continue;
      const double gap = highest / unit - x[i] / unit;
      if (gap > 0) {
        gaps.push_back(gap);
        smallest = std::min(smallest, gap);
        largest = std::max(largest, gap);
      } else {
        ties += 1;
      }
    }
  }
};

// The reading at a temperature, and its slope in log T; it rises from log c to log n.
struct Point {
  double value, slope;
};
Point reading(const Row& row, double temperature, bool peak) {
  double r = 0, u = 0, t = 0;
  for (size_t first = 0; first < row.gaps.size(); first += kSumEntries) {
    const size_t end = std::min(row.gaps.size(), first + kSumEntries);
    double some_r = 0, some_u = 0, some_t = 0;
    for (size_t i = first; i < end; ++i) {
      const double d = -row.gaps[i] / temperature, e = std::exp(d);
      if (e == 0) continue;  // d may be −inf
      some_r += e;
      some_u += e * d;
      some_t += e * d * d;
    }
    r += some_r;
    u += some_u;
    t += some_t;
  }
  const double c = row.ties, z = c + r, mean = u / z;
  const double log_z = std::log(c) + std::log1p(r / c);
  if (peak) return {.value = log_z, .slope = -mean};
  return {.value = log_z - mean, .slope = t / z - mean * mean};
}

// Newton's method in log(T/largest) within a bracket, which is halved where the method leaves it or
// is slow.
double temperature(const Row& row, double target, bool peak) {
  const double n = row.ties + static_cast<double>(row.gaps.size());
  if (!(row.ties > 0 && std::log(row.ties) < target && target < std::log(n))) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  // At T = smallest/800 every other weight underflows; at T = largest·2⁶⁰ all are equal.
  double low = std::log(row.smallest) - std::log(row.largest) - std::log(800.0);
  double high = 60 * std::log(2.0);
  double at = 0, step = high - low, before = step;
  for (int i = 0; i < kMostSteps; ++i) {
    const Point found = reading(row, row.largest * std::exp(at), peak);
    (found.value > target ? high : low) = at;
    double next = at + (target - found.value) / found.slope;
    const double tiny = 2e-16 * std::max(1.0, std::abs(at));
    const double wanted = std::abs(next - at);
    if (wanted <= tiny) return row.largest * std::exp(next);
    if (!(next > low && next < high && wanted < before / 2)) next = low + (high - low) / 2;
    if (!(high - low > tiny)) break;
    before = step;
    step = std::abs(next - at);
    at = next;
  }
  return row.largest * std::exp(low + (high - low) / 2);
}

}  // namespace

void find_temperatures(const Searches& searches, double* out, int threads) {
  const WideRows& x = searches.x;
  const bool one = x.count * x.n < kWorthThreads;
  parallel_for(x.count, one ? 1 : threads, [&](size_t i) {
    std::vector<double> room;
    const Row row(x.row(i, room), x.n);
    const double target = searches.targets[static_cast<ptrdiff_t>(i) * searches.targets_row];
    out[i] = row.unit * temperature(row, target, searches.peak);
  });
}

}  // namespace softscope
