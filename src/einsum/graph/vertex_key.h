#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// Collects values as bytes, by which they are found again: equal bytes mean equal values in the same order.
class ByteKey {
 public:
  template <class Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value> && std::has_unique_object_representations_v<Value>);
    append(&value, sizeof(Value));
  }
  void put(double value) { append(&value, sizeof(value)); }
  void put(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  void put(const Shape& shape) {
    put(shape.size());
    for (const Extent extent : shape) put(extent);
  }
  void put(const std::vector<std::size_t>& numbers) {
    put(numbers.size());
    for (const std::size_t number : numbers) put(number);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void append(const void* value, std::size_t size) {
    const auto* const bytes = static_cast<const char*>(value);
    bytes_.append(bytes, size);
  }
  std::string bytes_;
};

/// Adds everything that determines what a vertex makes of the tensors that it reads, without the names of anything but
/// labels whose extent nothing says, and without saying which tensors they are. O(size of the vertex).
void put_computation(ByteKey& key, const Vertex& vertex);

/// The same, its bound, and the types and bounds of what it reads, and which of these are one tensor: all that ways to
/// cut a vertex, and what they cost without what is moved, depend on.
void put_computation_of_inputs(ByteKey& key, const Vertex& vertex, const EinGraph& graph);

/// For each step, the first one that computes the same of the same, on the same sides of where(). O(steps).
std::vector<std::size_t> first_equal_steps(const ScalarExpr& expr);

}  // namespace einrel
