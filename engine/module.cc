// softscope._engine: the only file that knows Python. Checks what the type system cannot, releases
// the interpreter, calls the kernels. Friendlier checks are the public functions' business.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>

#include "dispatch.h"
#include "rows.h"
#include "threads.h"

namespace nb = nanobind;

namespace {

// ro: nanobind would refuse read-only arrays otherwise.
using Input = nb::ndarray<nb::ro, nb::device::cpu>;
using Output = nb::ndarray<nb::device::cpu>;
using Temperatures = nb::ndarray<const double, nb::device::cpu>;

using softscope::Operation;

const softscope::Kernels& kernels() {
  // Chosen once, at import.
  static const softscope::Kernels& chosen = softscope::choose_kernels(getenv("SOFTSCOPE_ISA"));
  return chosen;
}

softscope::Type type_of(const nb::dlpack::dtype& dtype, bool brain) {
  if (dtype == nb::dtype<float>()) return softscope::kFloat32;
  if (dtype == nb::dtype<double>()) return softscope::kFloat64;
  // NumPy cannot export bfloat16, and float16 comes the same way: as the bits.
  if (dtype == nb::dtype<uint16_t>()) return brain ? softscope::kBFloat16 : softscope::kFloat16;
  throw nb::type_error("x must be float32, float64, or 16-bit floats viewed as uint16.");
}

// One temperature for all rows, or one for each: then of the shape of x without the last axis.
struct Temperature {
  double one = 1;
  const Temperatures* each = nullptr;
};

bool fit(Operation operation, const Input& x, const Output& out, const Temperature& temperature) {
  const size_t lead = x.ndim() - 1;
  const size_t extra = operation == softscope::kLogSumExp ? 0 : 1;
  if (x.ndim() == 0 || out.ndim() != lead + extra) return false;
  if (temperature.each != nullptr && temperature.each->ndim() != lead) return false;
  for (size_t i = 0; i < lead; ++i) {
    if (out.shape(i) != x.shape(i)) return false;
    if (temperature.each != nullptr && temperature.each->shape(i) != x.shape(i)) return false;
  }
  if (operation == softscope::kState) {
    return out.shape(lead) == 7 && out.stride(lead) == 1 && out.dtype() == nb::dtype<double>();
  }
  return out.dtype() == x.dtype() && (extra == 0 || out.shape(lead) == x.shape(lead));
}

// Rows of x on its last axis; out has x's shape, or that of x without the last axis and a result's
// size.
void run(Operation operation, const Input& x, const Output& out, const Temperature& temperature,
         bool brain, int threads) {
  if (!fit(operation, x, out, temperature)) {
    throw nb::value_error("the shapes or dtypes of x, out and temperature do not fit.");
  }
  const bool maps = operation <= softscope::kLogSoftmax;
  const size_t lead = x.ndim() - 1;
  const ptrdiff_t whole = operation == softscope::kState ? 7 : 1;
  softscope::Rows rows;
  rows.type = type_of(x.dtype(), brain);
  rows.n = x.shape(lead);
  rows.x = static_cast<const char*>(x.data());
  rows.x_step = x.stride(lead);
  rows.out = static_cast<char*>(out.data());
  rows.out_size = whole == 1 ? softscope::kTypeSize[rows.type] : 7 * sizeof(double);
  rows.out_step = maps ? out.stride(lead) : 0;
  rows.temperature = temperature.each == nullptr ? &temperature.one : temperature.each->data();
  for (size_t i = 0; i < lead; ++i) {
    rows.lead.push_back(x.shape(i));
    rows.x_strides.push_back(x.stride(i));
    rows.out_strides.push_back(out.stride(i) / whole);
    rows.temperature_strides.push_back(temperature.each == nullptr ? 0
                                                                   : temperature.each->stride(i));
  }
  const nb::gil_scoped_release released;
  softscope::run(kernels(), operation, rows, threads);
}

void define(nb::module_& m, const char* name, Operation operation) {
  // noconvert: a silent copy of x would cost more than the work, and one of `out` would lose it.
  m.def(
      name,
      [operation](const Input& x, const Output& out, double temperature, bool brain, int threads) {
        run(operation, x, out, {temperature, nullptr}, brain, threads);
      },
      nb::arg("x").noconvert(), nb::arg("out").noconvert(), nb::arg("temperature").noconvert(),
      nb::arg("brain"), nb::arg("threads"));
  m.def(
      name,
      [operation](const Input& x, const Output& out, const Temperatures& temperature, bool brain,
                  int threads) { run(operation, x, out, {1, &temperature}, brain, threads); },
      nb::arg("x").noconvert(), nb::arg("out").noconvert(), nb::arg("temperature").noconvert(),
      nb::arg("brain"), nb::arg("threads"));
}

}  // namespace

NB_MODULE(_engine, m) {
  kernels();  // so that a wrong SOFTSCOPE_ISA is an ImportError and not a surprise later
  softscope::prepare_for_forks();

  m.doc() = "softscope's compiled kernels.";

  m.def("isa", [] { return std::string(kernels().isa); });

  m.def("isas", [] {
    std::vector<std::string> names;
    for (const softscope::Kernels* k : softscope::runnable_kernels()) names.emplace_back(k->isa);
    return names;
  });

  define(m, "softmax", softscope::kSoftmax);
  define(m, "log_softmax", softscope::kLogSoftmax);
  define(m, "logsumexp", softscope::kLogSumExp);
  define(m, "state", softscope::kState);
}
