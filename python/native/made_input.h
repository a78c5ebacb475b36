#pragma once

#include <einrel/error.h>
#include <einrel/input.h>
#include <nanobind/nanobind.h>

#include <memory>

namespace einrel::python {

/// What a function of Python raised while a run called it: goes through the run to who started it.
struct RaisedInCallback : api::RunError {
  explicit RaisedInCallback(const nanobind::python_error& raised);
  std::shared_ptr<nanobind::python_error> error;
};

/// An input that a function of Python makes: `fill(begin, extents, memory)` writes the elements of a box into memory, a
/// memoryview of bytes. It is called with Python's lock, by threads that do not have it.
api::Input input_made_by(nanobind::object fill, api::DType dtype, const api::Shape& shape);

/// All elements, made without Python's lock. Throws what the function raised.
api::Tensor elements_of(const api::Input& input);

/// Calls `run`, and raises what functions of Python raised in it.
template <class Run>
auto raising(Run&& run) {
  std::shared_ptr<nanobind::python_error> raised;
  try {
    return std::forward<Run>(run)();
  } catch (const RaisedInCallback& failure) {
    raised = failure.error;
  }
  throw nanobind::python_error(*raised);
}

}  // namespace einrel::python
