// softscope._engine: the only file that knows Python. Checks what the type system cannot, releases
// the interpreter, calls the kernel. Friendlier checks are the public functions' business.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstdlib>

#include "dispatch.h"

namespace nb = nanobind;

namespace {

// const, or nanobind would refuse read-only arrays.
using Input = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::string shape_of(size_t rows, size_t columns) {
  std::string shape = "(";
  return shape.append(std::to_string(rows))
      .append(", ")
      .append(std::to_string(columns))
      .append(")");
}

void check_pair(const Input& x, const Output& out) {
  if (x.shape(0) != out.shape(0) || x.shape(1) != out.shape(1)) {
    const std::string message = "out must have the shape of x, " +
                                shape_of(x.shape(0), x.shape(1)) + ", but has " +
                                shape_of(out.shape(0), out.shape(1)) + ".";
    throw nb::value_error(message.c_str());
  }
  // As integers: comparing pointers into different arrays is undefined.
  const auto from = reinterpret_cast<uintptr_t>(x.data());
  const auto to = reinterpret_cast<uintptr_t>(out.data());
  const uintptr_t apart = from > to ? from - to : to - from;
  if (apart != 0 && apart < x.nbytes()) {
    throw nb::value_error("out must be x itself or not overlap it, but it overlaps in part.");
  }
}

}  // namespace

NB_MODULE(_engine, m) {
  // Chosen here, once, so that a wrong SOFTSCOPE_ISA is an ImportError and not a surprise later:
  // nanobind turns what is thrown here into one.
  static const softscope::Kernels& kernels = softscope::choose_kernels(getenv("SOFTSCOPE_ISA"));

  m.doc() = "softscope's compiled kernels.";

  m.def("isa", [] { return std::string(kernels.isa); });

  m.def("isas", [] {
    std::vector<std::string> names;
    for (const softscope::Kernels* k : softscope::runnable_kernels()) names.emplace_back(k->isa);
    return names;
  });

  // noconvert: a silent copy of x would cost more than the softmax, and one of `out` would lose it.
  m.def(
      "softmax_f32",
      [](const Input& x, const Output& out) {
        check_pair(x, out);
        const nb::gil_scoped_release released;
        kernels.softmax_f32(x.data(), out.data(), x.shape(0), x.shape(1));
      },
      nb::arg("x").noconvert(), nb::arg("out").noconvert());
}
