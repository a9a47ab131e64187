// To be preloaded: allocations of one library, and starts of threads, that fail when they are told to; threads that start
// late.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> until_failure{-1}, counted{0}, threads_left{-1};
std::atomic<uintptr_t> low{0}, high{0};
std::atomic<bool> held{false};

void* given(size_t size, size_t alignment, void* caller) {
  const auto from = reinterpret_cast<uintptr_t>(caller);
  if (from >= low && from < high) {
    ++counted;
    if (until_failure >= 0 && until_failure-- == 0) return nullptr;
  }
  size = (size + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, size == 0 ? alignment : size);
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

struct Held {
  void* (*run)(void*);
  void* with;
};

void* run_when_let_go(void* data) {
  const Held thread = *static_cast<Held*>(data);
  std::free(data);
  while (held) usleep(1000);
  return thread.run(thread.with);
}

}  // namespace

extern "C" {

// Of calls between the addresses, `after` succeed and the next one fails; all succeed if it is negative.
void fail_allocation(long after, uintptr_t first, uintptr_t last) {
  low = first;
  high = last;
  counted = 0;
  until_failure = after;
}

long allocations() { return counted; }

// So many threads can still be started; any number if it is negative.
void limit_threads(long many) { threads_left = many; }

// Threads that are started now do nothing until they are let go, as if they got no core.
void hold_threads(int on) { held = on != 0; }

int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*), void* with) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left >= 0 && threads_left-- <= 0) {
    threads_left = 0;
    return EAGAIN;
  }
  if (!held) return real(thread, how, run, with);
  auto* later = static_cast<Held*>(std::malloc(sizeof(Held)));
  *later = {run, with};
  return real(thread, how, run_when_let_go, later);
}
}

void* operator new(size_t size) { return or_throw(given(size, 16, __builtin_return_address(0))); }
void* operator new[](size_t size) { return or_throw(given(size, 16, __builtin_return_address(0))); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return given(size, 16, __builtin_return_address(0));
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return given(size, 16, __builtin_return_address(0));
}
void* operator new(size_t size, std::align_val_t at) {
  return or_throw(given(size, static_cast<size_t>(at), __builtin_return_address(0)));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
