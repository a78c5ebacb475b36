#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "einsum/ein_graph.h"

namespace einrel {

/// When the tensors of a graph live, if its vertices are computed in order and each is freed after its last use.
struct MemoryForecast {
  /// For each vertex, the last vertex that needs its memory (itself at least; the end for outputs). A view shares
  /// its operand's memory and prolongs it.
  std::vector<std::size_t> last_use;
  std::int64_t peak_bytes = 0;  ///< inputs, outputs and live intermediates together
  std::size_t peak_vertex = 0;  ///< while this one is computed
};

/// Throws UserError when the bytes of all living tensors together do not fit in 63 bits. O(vertices + edges).
MemoryForecast forecast_memory(const EinGraph& graph);

/// Throws RunError, naming need, vertex and what is there, when running `graph` needs more memory than the machine has
/// left. `in_place` tells of an input whether it is there already (mapped from its file, say) and costs nothing more.
void check_memory(const EinGraph& graph, const std::function<bool(const Vertex&)>& in_place);

/// The largest memory this process has had so far, mapped files included, if the system says so.
std::optional<std::int64_t> peak_resident_bytes();

}  // namespace einrel
