#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace einrel {

/// Per tensor, the last vertex in the order of the graph that needs it stored: outputs, states and inputs that stay are
/// needed until the end; nothing of an input that nobody reads.
std::vector<std::optional<std::size_t>> last_readers(const EinGraph& graph);

/// A part of the peak that no plan is without.
struct LeastPeak {
  std::int64_t bytes = 0;  ///< of one of the sites
  std::size_t vertex = 0;  ///< while it is computed
};

/// The least that some site of any plan for so many sites holds at a time, as peak_of counts: tensors that are needed,
/// and what lies between the joins of a vertex, are shared out evenly at best. Throws UserError where a sum needs more
/// than 63 bits.
LeastPeak least_peak_of(const EinGraph& graph, std::int64_t sites);

/// The least that some site of any plan holds, however often results are computed again: its share of the inputs.
std::int64_t least_input_bytes(const EinGraph& graph, std::int64_t sites);

/// Why no plan fits; empty where one may.
std::string always_over_limit(const EinGraph& graph, std::int64_t sites, std::int64_t limit);

}  // namespace einrel
