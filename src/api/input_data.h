#pragma once

#include <einrel/input.h>

#include "exec/executors/executor.h"

namespace einrel::api {

/// What an input of the interface is.
struct Input::Data {
  DType dtype;
  Shape shape;
  InputSource source;
};

/// To the rooms below.
struct InputAccess {
  static const InputSource& source(const Input& input) { return input.data_->source; }
};

}  // namespace einrel::api
