#include "rows/readings.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rows/state.h"
#include "threads/parallel_for.h"

namespace softscope {
namespace {

constexpr size_t kRowsPerTask = 4096;

double log_z(const State& s) { return std::log(s.c) + std::log1p(s.r / s.c); }

double entropy(const State& s) { return log_z(s) - s.u / (s.c + s.r); }

// m/T + log z. Where they cancel, only their rounding errors remain, so that is in a wider float.
double lse(const State& s, double temperature) {
  if (s.count == 0 || (std::isinf(s.m) && !std::isnan(temperature))) return s.m;
  const double top = s.m / temperature, others = log_z(s);
  if (!(top < 0 && top > -4 * others)) return top + others;
  const long double c = s.c, r = s.r;
  const long double sum =
      static_cast<long double>(s.m) / temperature + (std::log(c) + std::log1p(r / c));
  return static_cast<double>(sum);
}

double read(Reading reading, const State& s) {
  if (s.count == 0) return std::numeric_limits<double>::quiet_NaN();
  const double c = s.c, r = s.r, z = c + r;
  switch (reading) {
    case Reading::kEntropy:
      return entropy(s);
    case Reading::kCollision:
      return (c + s.w) / (z * z);
    case Reading::kPeak:
      return 1 / z;
    case Reading::kVariance:
      return s.t / z - (s.u / z) * (s.u / z);
    case Reading::kJacobianTrace:  // not 1 − collision, which cancels near one-hot
      return (c * (c - 1) + 2 * c * r + r * r - s.w) / (z * z);
    case Reading::kEffectiveSupport:
      return std::exp(entropy(s));
    default:  // sharpness; that of one entry is 0, unless it is NaN
      return s.count > 1 ? 1 - entropy(s) / std::log(s.count) : 0 * entropy(s);
  }
}

}  // namespace

void read_states(Reading reading, const States& states, double* out, int threads) {
  const auto some = [&](size_t first, size_t end) {
    for (size_t i = first; i < end; ++i) {
      const double* at = states.numbers + i * states.width;
      const State s = {
          .count = at[0], .c = at[1], .m = at[2], .r = at[3], .u = at[4], .t = at[5], .w = at[6]};
      const auto row = static_cast<ptrdiff_t>(i) * states.temperatures_row;
      out[i] = reading == Reading::kLse ? lse(s, states.temperatures[row]) : read(reading, s);
    }
  };
  const size_t tasks = (states.count + kRowsPerTask - 1) / kRowsPerTask;
  if (tasks <= 1) {
    some(0, states.count);
    return;
  }
  parallel_for(tasks, threads, [&](size_t task) {
    some(task * kRowsPerTask, std::min(states.count, (task + 1) * kRowsPerTask));
  });
}

}  // namespace softscope
