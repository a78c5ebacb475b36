#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tra/kernel.h"

namespace einrel {

/// Positions of a dimension, from the first to the last one.
struct Positions {
  std::int64_t first = 0;
  std::int64_t last = 0;
  auto operator<=>(const Positions&) const = default;
};
/// Per dimension of an array, the positions that are read of it; none where labels walk through it.
using ConstantPositions = std::vector<std::optional<Positions>>;

/// A kernel that reads dimensions of an argument at constants only, as X[3,b] does, for what it reads of that: in these
/// dimensions it counts from the first position.
struct ConstantReads {
  ConstantPositions positions;
  Kernel kernel;
};
/// nullopt where there is no such dimension, or a view or linear algebra reads the argument.
std::optional<ConstantReads> constant_reads(const Kernel& kernel, std::size_t argument);

}  // namespace einrel
