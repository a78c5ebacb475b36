/// @file
/// What runs take besides tensors: inputs that are made piece by piece.
#pragma once

#include <einrel/tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace einrel::api {

/// Writes the elements of the box of an input that begins there and has these extents, in row-major order. Called from
/// any thread, from several at a time; what it throws ends the run.
using InputMaker =
    std::function<void(const std::vector<std::int64_t>& begin, const Shape& extents, std::span<std::byte> elements)>;

/// What a run takes for an input. Copies are cheap.
class Input {
 public:
  /// The tensor, whose elements are read where they are.
  Input(Tensor tensor);  // NOLINT(google-explicit-constructor): wherever an input is wanted, a tensor will do
  /// A tensor that nobody has as a whole: a run has each part made where and when it is needed, perhaps more than once.
  /// What nobody reads is not made. Throws UserError for extents below 0.
  static Input made(DType dtype, const Shape& shape, InputMaker make);

  /// The type of the elements.
  DType dtype() const;
  /// The extent of every dimension.
  const Shape& shape() const;
  /// All elements, made now if they have to be. Throws RunError when there is no memory, and what the maker throws.
  Tensor tensor() const;

 private:
  friend struct InputAccess;
  struct Data;
  explicit Input(std::shared_ptr<const Data> data);

  std::shared_ptr<const Data> data_;
};

/// Inputs of a run by name.
using Inputs = std::map<std::string, Input>;

}  // namespace einrel::api
