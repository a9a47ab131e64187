// Threads of the GNU OpenMP runtime that PyTorch brings.
//
// Between two calls of PyTorch they spin for milliseconds, and hold their cores: on a machine with
// as many of them as cores, threads of our own would not get to run. So in a process that has them
// we use them. The runtime is looked up at run time and not linked: so nothing is required, and a
// wheel's renamed copy serves as well.
//
// But the runtime waits for all its threads, also for one that does not get to run because another
// process has its core; a call then takes up to forty times as long. Where that happened, callers
// keep away from the runtime for a while.
#pragma once

#include "threads/job.h"

namespace softscope {

// Runs the job on so many threads, the caller's among them. False, with nothing done, if the
// process has no such runtime, if it cannot start them, or if it was slow lately.
bool run_with_gnu_openmp(Job& job, int threads);

// To be called at import, and by the child of a fork: the runtime's threads are not there any more,
// and it would wait for them for ever.
void look_for_lost_threads();
void give_up_gnu_openmp();

}  // namespace softscope
