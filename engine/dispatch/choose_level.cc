#include "dispatch/choose_level.h"

#include <cstdlib>
#include <stdexcept>

namespace softscope {

#ifdef SOFTSCOPE_AVX2
namespace {

// AVX-512 where it is faster. J·v is not: rows of 128 floats take 0.41 ns an entry with sixteen
// lanes and 0.21 with eight, rows of 1000 0.30 and 0.20, longer ones the same (AMD EPYC, Zen 5).
// Copied here and not in the unit itself: code that runs at load must run on every processor.
Kernels with_avx512() {
  Kernels found = avx512_kernels;
  found.rows[kJacobianProduct] = avx2_kernels.rows[kJacobianProduct];
  return found;
}

}  // namespace
#endif

std::vector<const Kernels*> runnable_kernels() {
  std::vector<const Kernels*> found = {&baseline_kernels};
#ifdef SOFTSCOPE_AVX2
  // This also asks the operating system, which must save the wide registers.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    found.push_back(&avx2_kernels);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      static const Kernels avx512 = with_avx512();
      found.push_back(&avx512);
    }
  }
#endif
  return found;
}

const Kernels& choose_kernels(const char* wanted) {
  const std::vector<const Kernels*> found = runnable_kernels();
  if (wanted == nullptr || *wanted == '\0') return *found.back();

  std::string names;
  for (const Kernels* kernels : found) {
    if (kernels->isa == std::string(wanted)) return *kernels;
    names += (names.empty() ? "" : ", ") + std::string(kernels->isa);
  }
  // No silent fallback: whoever sets this is testing or measuring, and would measure the wrong
  // level.
  throw std::invalid_argument("SOFTSCOPE_ISA is '" + std::string(wanted) +
                              "', but this build on this processor can run only: " + names +
                              "; unset it for the best of them.");
}

const Kernels& kernels() {
  static const Kernels& chosen = choose_kernels(std::getenv("SOFTSCOPE_ISA"));
  return chosen;
}

}  // namespace softscope
