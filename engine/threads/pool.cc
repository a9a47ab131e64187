#include "threads/pool.h"

#include <chrono>
#include <thread>

namespace softscope {
namespace {

// The state in one word, so that joining and closing cannot miss each other: the job's number, how
// many threads it is for, whether it is open, and how many helpers are inside.
constexpr uint64_t kInside = 0xffff, kOpen = uint64_t{1} << 16;
constexpr int kThreadsAt = 17, kNumberAt = 32;

uint32_t number_of(uint64_t state) { return static_cast<uint32_t>(state >> kNumberAt); }
int threads_of(uint64_t state) { return static_cast<int>(state >> kThreadsAt & 0x7fff); }

// A helper that has worked looks out for the next job this long before it sleeps: to be woken takes
// as long as many a call. PyTorch's threads wait for milliseconds, and hold their core meanwhile.
constexpr std::chrono::microseconds kLookout{200};

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits a moment, and lets others have the core: the one we wait for may need it.
void wait_a_moment() {
  for (int i = 0; i < 16; ++i) pause();
  std::this_thread::yield();
}

}  // namespace

bool Pool::run(Job& job, int threads) {
  const std::unique_lock<std::mutex> alone(busy_, std::try_to_lock);
  if (!alone.owns_lock()) return false;
  start(threads - 1);
  const int helpers = threads - 1 < started_ ? threads - 1 : started_;
  job_ = &job;
  const uint64_t number = number_of(state_) + uint64_t{1};
  state_ = number << kNumberAt | static_cast<uint64_t>(threads) << kThreadsAt | kOpen;
  for (int h = 0; h < helpers; ++h) {
    if (helpers_[h]->asleep.exchange(false)) helpers_[h]->wake.release();
  }
  job.take(0);
  state_ &= ~kOpen;
  while ((state_.load(std::memory_order_acquire) & kInside) != 0) wait_a_moment();
  return true;
}

// As many helpers as the system lets us have: without memory or threads, fewer do as well.
void Pool::start(int helpers) {
  if (helpers > kMostHelpers) helpers = kMostHelpers;
  for (; started_ < helpers; ++started_) {
    try {
      helpers_[started_] = std::make_unique<Helper>();
      Helper& self = *helpers_[started_];
      std::thread([this, place = started_ + 1, &self] { help(place, self); }).detach();
    } catch (const std::exception&) {
      return;
    }
  }
}

void Pool::help(int place, Helper& self) {
  using Clock = std::chrono::steady_clock;
  uint32_t seen = 0;  // the last job that this helper joined or came too late for
  Clock::time_point until = Clock::now() + kLookout;
  for (;;) {
    if (Job* job; join(place, seen, job)) {
      job->take(place);
      state_.fetch_sub(1, std::memory_order_release);
      until = Clock::now() + kLookout;
    } else if (Clock::now() < until) {
      wait_a_moment();
    } else {
      sleep(seen, self);
      until = Clock::now() + kLookout;
    }
  }
}

bool Pool::join(int place, uint32_t& seen, Job*& job) {
  uint64_t state = state_.load(std::memory_order_acquire);
  while (number_of(state) != seen) {
    if ((state & kOpen) == 0 || place >= threads_of(state)) {
      seen = number_of(state);
      return false;
    }
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) {
      seen = number_of(state);
      job = job_;
      return true;
    }
  }
  return false;
}

// Whoever resets `asleep` decides: the caller, who then wakes this helper, or the helper itself,
// which has seen a new job before it slept.
void Pool::sleep(uint32_t seen, Helper& self) {
  self.asleep = true;
  if (number_of(state_) != seen && self.asleep.exchange(false)) return;
  self.wake.acquire();
}

}  // namespace softscope
