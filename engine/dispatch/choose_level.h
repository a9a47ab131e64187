// Which of the compiled instruction sets to use.
#pragma once

#include <string>
#include <vector>

#include "dispatch/kernels.h"

namespace softscope {

// What this build holds and this processor runs, lowest first. Never empty.
std::vector<const Kernels*> runnable_kernels();

// The best of them, or the one that `wanted` names, if it is not null or empty.
// Throws std::invalid_argument with one sentence if there is no such one.
const Kernels& choose_kernels(const char* wanted);

}  // namespace softscope
