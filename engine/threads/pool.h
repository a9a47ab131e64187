// Threads that help a caller with its job, and wait for the next one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <semaphore>

#include "threads/job.h"

namespace softscope {

// A helper joins a job by counting itself in, and the caller waits only for those who did. One that
// the system lets run too late finds the job closed. So if another process has taken a core, a call
// takes no longer than on one thread.
class Pool {
 public:
  // Runs the job on up to `threads` threads, the caller's among them; fewer if the system starts no
  // more. False, with nothing done, if another thread is using the pool.
  bool run(Job& job, int threads);

 private:
  static constexpr int kMostHelpers = 1023;

  struct Helper {
    std::atomic<bool> asleep{false};
    std::binary_semaphore wake{0};
  };

  void start(int helpers);
  void help(int place, Helper& self);
  bool join(int place, uint32_t& seen, Job*& job);
  void sleep(uint32_t seen, Helper& self);

  std::mutex busy_;                 // one job at a time
  std::atomic<uint64_t> state_{0};  // see pool.cc
  Job* job_ = nullptr;              // read only by those who have joined
  std::unique_ptr<Helper> helpers_[kMostHelpers];
  int started_ = 0;
};

}  // namespace softscope
