#include "rows/distillation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "threads/parallel_for.h"

namespace softscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kTaskEntries = size_t{1} << 13;

// (x − max x)/T of a row, and log Σ exp of that.
struct Distances {
  const double* x;
  double highest, temperature, log_z;

  Distances(const double* row, size_t n, double t) : x(row), highest(-kInfinity), temperature(t) {
    for (size_t i = 0; i < n; ++i) highest = x[i] <= highest ? highest : x[i];  // NaN stays
    for (size_t i = 0; i < n; ++i) {
      if (std::isnan(x[i])) highest = x[i];
    }
    double c = 0, r = 0;  // those at the maximum are counted, so that log1p sees what others add
    for (size_t i = 0; i < n; ++i) {
      const double d = (*this)[i];
      (d < 0 ? r : c) += std::exp(d);
    }
    log_z = std::log(c) + std::log1p(r / c);
  }

  double operator[](size_t i) const {
    const double gap = x[i] - highest;
    if (gap != -kInfinity || x[i] == -kInfinity) return gap == -kInfinity ? gap : gap / temperature;
    return 2 * ((x[i] / 2 - highest / 2) / temperature);  // only the difference overflows
  }
};

double loss(const double* student, const double* teacher, size_t n, double t) {
  const Distances theirs(teacher, n, t), ours(student, n, t);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const double log_p = theirs[i] - theirs.log_z, p = std::exp(log_p);
    if (p != 0) sum += p * (log_p - (ours[i] - ours.log_z)) * (t * t);
  }
  return sum;
}

}  // namespace

double distillation(const Lessons& lessons, int threads) {
  const size_t count = lessons.student.count, n = lessons.student.n;
  if (count == 0) return 0;
  const size_t per_task = std::max<size_t>(1, kTaskEntries / std::max<size_t>(1, n));
  const size_t tasks = (count + per_task - 1) / per_task;
  std::vector<double> totals(tasks);
  parallel_for(tasks, threads, [&](size_t task) {
    std::vector<double> ours, theirs;
    const size_t end = std::min(count, (task + 1) * per_task);
    for (size_t row = task * per_task; row < end; ++row) {
      const double t = lessons.temperatures[static_cast<ptrdiff_t>(row) * lessons.temperatures_row];
      totals[task] += loss(lessons.student.row(row, ours), lessons.teacher.row(row, theirs), n, t);
    }
  });
  double total = 0;
  for (const double some : totals) total += some;
  return total / static_cast<double>(count);
}

}  // namespace softscope
