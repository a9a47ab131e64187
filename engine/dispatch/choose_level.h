// Chooses which of the compiled instruction sets to use.
#pragma once

#include <string>
#include <vector>

#include "dispatch/kernels.h"

namespace softscope {

// The levels that this build has and this processor runs, lowest first. Never empty.
std::vector<const Kernels*> runnable_kernels();

// The highest of them, or the one that `wanted` names unless it is null or empty. Throws
// std::invalid_argument, with one sentence, if there is none of that name.
const Kernels& choose_kernels(const char* wanted);

// The chosen ones: chosen once, at import, by the environment's SOFTSCOPE_ISA.
const Kernels& kernels();

}  // namespace softscope
