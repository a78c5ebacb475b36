#pragma once

#include <compare>
#include <cstddef>

namespace einrel {

/// An index that cannot be confused with an index of another kind. `Tag` is never defined.
template <class Tag>
struct StrongId {
  std::size_t index = 0;
  auto operator<=>(const StrongId&) const = default;
};

}  // namespace einrel
