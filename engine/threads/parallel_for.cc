#include "threads/parallel_for.h"

#include <pthread.h>

#include <atomic>
#include <new>

#include "threads/gnu_openmp.h"
#include "threads/pool.h"

namespace softscope {
namespace {

// Never destroyed, since its threads wait in it until the process ends. After a fork, the child's
// copy has locks in whatever state they were, and no threads; so the child gets a new pool.
std::atomic<Pool*> pool{nullptr};

}  // namespace

void prepare_for_forks() {
  pool = new Pool;
  look_for_lost_threads();
  pthread_atfork(nullptr, nullptr, [] {
    pool = new (std::nothrow) Pool;  // without memory for it, the child works alone
    give_up_gnu_openmp();
  });
}

void parallel_for(size_t count, int threads, const std::function<void(size_t)>& task) {
  if (threads > 1 && count < static_cast<size_t>(threads)) threads = static_cast<int>(count);
  if (threads <= 1 || count > Job::kMostTasks) {
    for (size_t i = 0; i < count; ++i) task(i);
    return;
  }
  Job job(task, count, threads);
  if (!run_with_gnu_openmp(job, threads)) {
    Pool* own = pool;
    if (own == nullptr || !own->run(job, threads)) job.take(0);
  }
  job.rethrow();
}

}  // namespace softscope
