// Threads come from one of two places:
//
// If the process already has GNU's OpenMP runtime, as PyTorch brings it, from there. Its threads
// spin for a while between two calls of PyTorch, and threads of our own would have to share the
// cores with them. The runtime is looked up at run time and not linked: so nothing is required, and
// a wheel's renamed copy serves as well.
//
// Otherwise from a pool of our own; always so in the child of a fork, which has none of its
// parent's threads.
#include "threads/parallel_for.h"

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace softscope {
namespace {

struct Job {
  const std::function<void(size_t)>* task;
  size_t count;
  std::atomic<size_t> next{0};
  int wanted = 0;  // helpers that may still join
  int inside = 0;  // helpers at work
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // of the task that failed first; to be read when all have left

  // Never throws: a helper has nobody to throw to, and the caller must wait for its helpers first.
  void take() noexcept {
    try {
      for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) (*task)(i);
    } catch (...) {
      next = count;  // no further task begins
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
};

// False if the system has no memory or no more threads for it.
template <class Work>
bool start(std::thread& thread, Work work) {
  try {
    thread = std::thread(work);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

class Pool {
 public:
  // False if another thread is using the pool.
  bool run(Job& job, int threads) {
    const std::unique_lock<std::mutex> alone(busy_, std::try_to_lock);
    if (!alone.owns_lock()) return false;
    job.wanted = threads - 1;
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      for (std::thread helper; started_ < threads - 1; ++started_) {
        if (!start(helper, [this] { work(); })) break;  // fewer do as well
        helper.detach();
      }
      job_ = &job;
    }
    wake_.notify_all();
    job.take();
    std::unique_lock<std::mutex> hold(mutex_);
    job_ = nullptr;  // no helper may join any more
    done_.wait(hold, [&] { return job.inside == 0; });
    return true;
  }

 private:
  void work() {
    std::unique_lock<std::mutex> hold(mutex_);
    for (;;) {
      wake_.wait(hold, [this] { return job_ != nullptr && job_->wanted > 0; });
      Job& job = *job_;
      --job.wanted;
      ++job.inside;
      hold.unlock();
      job.take();
      hold.lock();
      if (--job.inside == 0) done_.notify_one();
    }
  }

  std::mutex busy_;   // one job at a time
  std::mutex mutex_;  // guards the members below
  std::condition_variable wake_, done_;
  Job* job_ = nullptr;
  int started_ = 0;
};

// Never destroyed, since its threads wait in it until the process ends. After a fork, the child's
// copy has locks in whatever state they were, and no threads; so the child gets a new pool.
std::atomic<Pool*> pool{nullptr};
std::atomic<bool> forked{false};

using Parallel = void (*)(void (*)(void*), void*, unsigned, unsigned);

// GOMP_parallel of a loaded libgomp, or null. Looks again whenever libraries were loaded since the
// last time: PyTorch may be imported after us.
Parallel gnu_openmp() {
  static std::atomic<Parallel> found{nullptr};
  static std::atomic<unsigned long long> asked{0};
  if (const Parallel known = found) return known;
  struct Search {
    unsigned long long before, loads = 0;
    Parallel parallel = nullptr;
  } search{asked};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Search& s = *static_cast<Search*>(data);
        s.loads = info->dlpi_adds;
        if (s.loads == s.before) return 1;
        if (std::strstr(info->dlpi_name, "libgomp") == nullptr) return 0;
        if (void* library = dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD)) {
          s.parallel = reinterpret_cast<Parallel>(dlsym(library, "GOMP_parallel"));
        }
        return s.parallel == nullptr ? 0 : 1;
      },
      &search);
  asked = search.loads;
  if (search.parallel != nullptr) found = search.parallel;
  return search.parallel;
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
      all = all && start(helper, [&gate] { const std::lock_guard<std::mutex> pass(gate); });
    }
  }
  for (std::thread& helper : started) {
    if (helper.joinable()) helper.join();
  }
  if (all) known = helpers;
  return all;
}

// Whether this process once had several threads and now has one. Then it may be the child of a fork
// whose parent had not imported us, so that no handler of ours ran. If its threads merely ended,
// the pool does just as well.
bool lost_its_threads() {
  const auto* single = static_cast<const char*>(dlsym(RTLD_DEFAULT, "__libc_single_threaded"));
  if (single == nullptr || *single != 0) return false;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return false;
  int count = 0;
  while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count == 1;
}

}  // namespace

void prepare_for_forks() {
  pool = new Pool;
  forked = lost_its_threads();
  pthread_atfork(nullptr, nullptr, [] {
    pool = new (std::nothrow) Pool;  // without memory for it, the child works alone
    forked = true;
  });
}

void parallel_for(size_t count, int threads, const std::function<void(size_t)>& task) {
  Job job;
  job.task = &task;
  job.count = count;
  if (threads > 1 && count < static_cast<size_t>(threads)) threads = static_cast<int>(count);
  if (threads <= 1) {
    job.take();
  } else if (const Parallel parallel = forked ? nullptr : gnu_openmp();
             parallel != nullptr && helpers_can_start(threads - 1)) {
    parallel([](void* data) { static_cast<Job*>(data)->take(); }, &job,
             static_cast<unsigned>(threads), 0);
  } else if (Pool* own = pool; own == nullptr || !own->run(job, threads)) {
    job.take();
  }
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace softscope
