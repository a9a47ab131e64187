// Spreads work over threads, without an OpenMP runtime of our own: PyTorch brings one, a second one
// in the same process slows or hangs both, and neither survives a fork.
#pragma once

#include <cstddef>
#include <functional>

namespace softscope {

// Calls task(i) for every i < count, on at most `threads` threads including the caller's. Any
// thread may get any i, so what a task computes must depend on i alone. If a task throws, as one
// that runs out of memory does, no further task begins, and the first exception is thrown here once
// all threads have left. If threads cannot be started, there are fewer.
void parallel_for(size_t count, int threads, const std::function<void(size_t)>& task);

// Makes sure that the child of a fork gets threads of its own. Called once, at import: by the time
// of our first work PyTorch's threads may already have run, and the process have forked.
void prepare_for_forks();

}  // namespace softscope
