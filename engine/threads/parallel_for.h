// Work for several threads, without an OpenMP runtime of our own: PyTorch brings one, a second one
// in the same process slows or hangs both, and neither survives a fork.
#pragma once

#include <cstddef>
#include <functional>

namespace softscope {

// Calls task(i) for every i < count, on at most `threads` threads, the caller's among them. Who
// does which i is open, so what a task computes must depend on i alone. Tasks must not throw.
void parallel_for(size_t count, int threads, const std::function<void(size_t)>& task);

// Arranges that the child of a fork gets threads of its own. Called once, at import: before the
// first work may be too late, for PyTorch's threads may have worked already.
void prepare_for_forks();

}  // namespace softscope
