// The calls that take arrays by address; see by_address.cc.
#pragma once

#include <nanobind/nanobind.h>

namespace softscope {

void define_calls_by_address(nanobind::module_& m);

}  // namespace softscope
