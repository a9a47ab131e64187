#include "threads/gnu_openmp.h"

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

namespace softscope {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds, std::chrono::milliseconds;

struct Runtime {
  void (*parallel)(void (*)(void*), void*, unsigned, unsigned);
  int (*thread_number)();
};

std::atomic<bool> given_up{false};

// Null if no libgomp is loaded. Looks again whenever libraries were loaded since the last time:
// PyTorch may be imported after us.
const Runtime* runtime() {
  static Runtime found{};
  static std::atomic<bool> known{false};
  static std::atomic<unsigned long long> asked{0};
  static std::mutex one_at_a_time;
  if (known.load(std::memory_order_acquire)) return &found;
  const std::lock_guard<std::mutex> hold(one_at_a_time);
  struct Search {
    unsigned long long before, loads = 0;
    Runtime runtime{};
  } search{asked};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Search& s = *static_cast<Search*>(data);
        s.loads = info->dlpi_adds;
        if (s.loads == s.before) return 1;
        if (std::strstr(info->dlpi_name, "libgomp") == nullptr) return 0;
        void* library = dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
        if (library == nullptr) return 0;
        s.runtime = {reinterpret_cast<decltype(Runtime::parallel)>(dlsym(library, "GOMP_parallel")),
                     reinterpret_cast<decltype(Runtime::thread_number)>(
                         dlsym(library, "omp_get_thread_num"))};
        return s.runtime.parallel == nullptr || s.runtime.thread_number == nullptr ? 0 : 1;
      },
      &search);
  asked = search.loads;
  if (search.runtime.parallel == nullptr || search.runtime.thread_number == nullptr) return nullptr;
  if (!known) found = search.runtime;
  known.store(true, std::memory_order_release);
  return &found;
}

// Whether so many helpers can be started from here. libgomp ends the process if it fails to start a
// thread; so before it is asked for more of them than ever, we start as many ourselves.
bool helpers_can_start(int helpers) {
  thread_local int known = 0;  // libgomp keeps helpers for each thread that calls it
  if (helpers <= known) return true;
  std::mutex gate;
  std::vector<std::thread> started;
  bool all = true;
  try {
    started.resize(static_cast<size_t>(helpers));
  } catch (const std::exception&) {
    return false;
  }
  {
    const std::lock_guard<std::mutex> closed(gate);  // all of them at a time
    for (std::thread& helper : started) {
      try {
        if (all) helper = std::thread([&gate] { const std::lock_guard<std::mutex> pass(gate); });
      } catch (const std::exception&) {
        all = false;
      }
    }
  }
  for (std::thread& helper : started) {
    if (helper.joinable()) helper.join();
  }
  if (all) known = helpers;
  return all;
}

// Until when callers keep away, and how long the next time: twice as long each time in a row, so
// that trying again costs little where a core is taken for good.
std::atomic<Clock::rep> away_until{0};
std::atomic<Clock::rep> next_absence{0};
constexpr Clock::duration kShortest = milliseconds(100), kLongest = milliseconds(800);

void note(bool slow, Clock::time_point now) {
  if (!slow) {
    if (next_absence.load(std::memory_order_relaxed) != 0) next_absence = 0;
    return;
  }
  const Clock::rep absence = std::max(next_absence.load(), kShortest.count());
  next_absence = std::min(2 * absence, kLongest.count());
  away_until = now.time_since_epoch().count() + absence;
}

// Processor time of the calling thread.
std::chrono::nanoseconds computed() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

}  // namespace

bool run_with_gnu_openmp(Job& job, int threads) {
  if (given_up) return false;
  const Runtime* found = runtime();
  if (found == nullptr || !helpers_can_start(threads - 1)) return false;
  const Clock::time_point begin = Clock::now();
  if (begin.time_since_epoch().count() < away_until.load(std::memory_order_relaxed)) return false;
  const auto computed_before = computed();
  struct Region {
    Job& job;
    const Runtime& runtime;
    Clock::time_point caller_done;
  } region{job, *found, begin};
  found->parallel(
      [](void* data) {
        Region& r = *static_cast<Region*>(data);
        const int place = r.runtime.thread_number();
        r.job.take(place);
        if (place == 0) r.caller_done = Clock::now();
      },
      &region, static_cast<unsigned>(threads), 0);
  // A helper may still be at its last task when the caller is done, but not for much longer than
  // the caller took for all of its own. And the caller itself may be without a core while the
  // runtime's threads spin on theirs.
  const Clock::time_point end = Clock::now();
  const auto waited = end - region.caller_done;
  const auto without_core = (end - begin) - (computed() - computed_before);
  note((waited > microseconds(500) && waited > (region.caller_done - begin) / 2) ||
           without_core > microseconds(500),
       end);
  return true;
}

void give_up_gnu_openmp() { given_up = true; }

// Whether this process once had several threads and now has one. Then it may be the child of a fork
// whose parent had not imported us, so that no handler of ours ran. If its threads merely ended,
// the pool does just as well.
void look_for_lost_threads() {
  const auto* single = static_cast<const char*>(dlsym(RTLD_DEFAULT, "__libc_single_threaded"));
  if (single == nullptr || *single != 0) return;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return;
  int count = 0;
  while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.';
  closedir(tasks);
  if (count == 1) give_up_gnu_openmp();
}

}  // namespace softscope
