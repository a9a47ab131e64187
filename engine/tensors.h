// Looking at tensors without PyTorch's headers; see tensors.cc.
#pragma once

#include <nanobind/nanobind.h>

namespace softscope {

void define_tensors(nanobind::module_& m);

}  // namespace softscope
