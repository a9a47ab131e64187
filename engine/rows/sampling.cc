#include "rows/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "threads/parallel_for.h"

namespace softscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kWorthThreads = size_t{1} << 14;  // entries

std::vector<double> softmax(const double* x, size_t n, double highest, double temperature) {
  std::vector<double> p(n);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    if (x[i] == -kInfinity) continue;  // even at an infinite temperature
    const double gap = x[i] - highest;
    // The difference may overflow even if (x − m)/T does not.
    const double d =
        std::isinf(gap) ? 2 * ((x[i] / 2 - highest / 2) / temperature) : gap / temperature;
    p[i] = std::exp(d);
    sum += p[i];
  }
  for (double& weight : p) weight /= sum;
  return p;
}

// Sets the weights that the filters drop to 0.
void keep(std::vector<double>& p, const Draws& draws) {
  if (draws.top_k >= p.size() && draws.top_p == 0) {
    const double least = draws.min_p * *std::max_element(p.begin(), p.end());
    for (double& weight : p) weight = weight >= least ? weight : 0;
    return;
  }
  struct Entry {
    double weight;
    size_t index;
  };
  std::vector<Entry> order;
  order.reserve(p.size());
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] > 0) order.push_back({.weight = p[i], .index = i});
  }
  const auto before = [](const Entry& a, const Entry& b) {
    return a.weight > b.weight || (a.weight == b.weight && a.index < b.index);
  };
  const size_t k = std::min(draws.top_k, order.size());
  const auto end = order.begin() + static_cast<ptrdiff_t>(k);
  if (k == order.size()) {
    std::sort(order.begin(), end, before);  // quicker than the other where all are wanted
  } else {
    std::partial_sort(order.begin(), end, order.end(), before);
  }
  std::fill(p.begin(), p.end(), 0);
  const double least = draws.min_p * order[0].weight;
  double total = 0, reached = 0;
  for (size_t i = 0; i < k; ++i) total += order[i].weight;
  for (size_t i = 0; i < k; ++i) {
    const auto [weight, index] = order[i];
    if (weight < least || (draws.top_p != 0 && reached >= draws.top_p)) break;
    p[index] = weight;
    reached += weight / total;
  }
}

size_t drawn(const double* x, const Draws& draws, double temperature, double uniform) {
  const size_t n = draws.x.n;
  const double* top = std::max_element(x, x + n);
  if (temperature == 0) return static_cast<size_t>(top - x);
  std::vector<double> p = softmax(x, n, *top, temperature);
  keep(p, draws);
  std::partial_sum(p.begin(), p.end(), p.begin());
  // Where the running sum first exceeds its share of the total: weights of 0 are never drawn.
  const auto at = std::upper_bound(p.begin(), p.end(), uniform * p.back());
  return static_cast<size_t>(at - p.begin());
}

}  // namespace

size_t first_without_weights(const WideRows& x) {
  std::vector<double> room;
  for (size_t row = 0; row < x.count; ++row) {
    const double* entries = x.row(row, room);
    bool some = false;
    for (size_t i = 0; i < x.n; ++i) {
      if (std::isnan(entries[i]) || entries[i] == kInfinity) return row;
      some = some || entries[i] != -kInfinity;
    }
    if (!some) return row;
  }
  return x.count;
}

void draw(const Draws& draws, int64_t* out, int threads) {
  const WideRows& x = draws.x;
  const bool one = x.count * x.n < kWorthThreads;
  parallel_for(x.count, one ? 1 : threads, [&](size_t i) {
    const double t = draws.temperatures[static_cast<ptrdiff_t>(i) * draws.temperatures_row];
    std::vector<double> room;
    out[i] = static_cast<int64_t>(drawn(x.row(i, room), draws, t, draws.uniform[i]));
  });
}

}  // namespace softscope
