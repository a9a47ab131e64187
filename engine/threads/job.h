// The tasks of one parallel_for, shared out among threads.
//
// Each thread begins with a run of neighbouring tasks of its own, the same one in every call, so
// that a repeated call finds its data in the same core's cache. A thread that is done takes tasks
// from the end of the others' runs. So nothing is left for a helper that comes late.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

namespace softscope {

class Job {
 public:
  static constexpr size_t kMostTasks = UINT32_MAX;

  Job(const std::function<void(size_t)>& work, size_t count, int threads)
      : task_(work), runs_(std::min<size_t>(kMostRuns, static_cast<size_t>(threads))) {
    for (size_t k = 0; k < runs_; ++k) {
      run_[k].left.store(packed(count * k / runs_, count * (k + 1) / runs_),
                         std::memory_order_relaxed);
    }
  }

  // Takes tasks until none is left; `place` numbers the threads, the caller's is 0. Never throws: a
  // helper has nobody to throw to, and the caller must wait for its helpers first.
  void take(int place) noexcept {
    const size_t mine = static_cast<size_t>(place) % runs_;
    try {
      for (size_t i; first_of(run_[mine], i);) task_(i);
      for (size_t k = 1; k < runs_; ++k) {
        for (size_t i; last_of(run_[(mine + k) % runs_], i);) task_(i);
      }
    } catch (...) {
      for (size_t k = 0; k < runs_; ++k) run_[k].left = 0;  // no further task begins
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }

  // Throws what the task that failed first threw; to be called when all threads have left.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static constexpr size_t kMostRuns = 64;  // of more threads, several begin with the same run

  // What is left of a run: its first task, and the one after its last.
  struct alignas(64) Run {
    std::atomic<uint64_t> left{0};
  };

  static uint64_t packed(uint64_t first, uint64_t end) { return first << 32 | end; }

  static bool first_of(Run& run, size_t& i) {
    return claim(run, i, [](uint64_t first, uint64_t end, size_t& at) {
      at = first;
      return packed(first + 1, end);
    });
  }
  static bool last_of(Run& run, size_t& i) {
    return claim(run, i, [](uint64_t first, uint64_t end, size_t& at) {
      at = end - 1;
      return packed(first, end - 1);
    });
  }
  template <class Rest>
  static bool claim(Run& run, size_t& i, Rest rest) {
    uint64_t left = run.left.load(std::memory_order_relaxed);
    for (;;) {
      const uint64_t first = left >> 32, end = left & UINT32_MAX;
      if (first >= end) return false;
      if (run.left.compare_exchange_weak(left, rest(first, end, i), std::memory_order_relaxed)) {
        return true;
      }
    }
  }

  const std::function<void(size_t)>& task_;
  const size_t runs_;
  Run run_[kMostRuns];
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
};

}  // namespace softscope
