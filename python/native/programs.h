#pragma once

#include <nanobind/nanobind.h>

namespace einrel::python {

/// einrel/error.h as Python's exceptions.
void bind_errors(nanobind::module_& module);
/// Whatever runs: graphs, traced functions, programs in the language.
void bind_programs(nanobind::module_& module);

}  // namespace einrel::python
