#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "plan/collectives.h"
#include "plan/plan.h"

namespace einrel {

/// How a tensor lies, and how it is needed.
struct DeviceMove {
  Sharding have;
  Sharding need;
  bool operator==(const DeviceMove&) const = default;
};

/// What every device does with its parts: computes a vertex, or moves a tensor. It reads values and gives one: of
/// DeviceSteps, or of a Layer.
struct DeviceStep {
  std::size_t vertex = 0;          ///< that is computed, or whose result is moved
  std::optional<DeviceMove> move;  ///< nothing where it is computed
  std::vector<std::size_t> reads;  ///< one for each of operands_read; the one that is moved
  std::size_t gives = 0;
};

/// A graph by a plan, as one program for all devices. Values are tensors where they lie, by vertex, and then all that
/// is moved. A tensor is moved right before the first vertex that needs it so.
struct DeviceSteps {
  std::vector<DeviceStep> steps;
  std::vector<std::size_t> tensors;  ///< per value
  std::vector<std::size_t> next;     ///< per state: the value that it has in the next step, where the state lies
};

DeviceSteps device_steps(const EinGraph& graph, const Plan& plan);

}  // namespace einrel
