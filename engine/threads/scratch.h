// Memory for one thread to work in, kept from call to call: allocating it anew for every task would
// cost more than many a task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace softscope {

// Several buffers per thread, because the thread that shares out a row also takes tasks of its own:
// what it holds for the whole row, or a copy of it, must survive what its tasks ask for.
enum class Scratch { kTask, kSharedRow, kCopiedRow };

// At least `bytes`, on a cache line of its own. Valid until this thread asks for the same kind
// again; the contents are whatever was left there. Not zeroed: pages nobody touches cost nothing.
inline void* scratch(size_t bytes, Scratch kind = Scratch::kTask) {
  constexpr size_t kLine = 64;
  struct Buffer {
    std::unique_ptr<char[]> memory;
    size_t size = 0;
  };
  thread_local Buffer buffers[3];
  Buffer& buffer = buffers[static_cast<size_t>(kind)];
  if (buffer.size < bytes) {
    buffer.size = 0;  // in case there is no memory for more
    buffer.memory.reset();
    buffer.memory.reset(new char[bytes + kLine]);
    buffer.size = bytes;
  }
  const auto address = reinterpret_cast<uintptr_t>(buffer.memory.get());
  return buffer.memory.get() + (kLine - address % kLine) % kLine;
}

}  // namespace softscope
