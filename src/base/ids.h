#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace einrel {

/// An index that cannot be confused with an index of another kind. `Tag` is never defined.
template <class Tag>
struct StrongId {
  std::size_t index = 0;
  auto operator<=>(const StrongId&) const = default;
};

/// Plans for more sites than this are refused.
constexpr std::int64_t most_sites = 65536;

}  // namespace einrel
