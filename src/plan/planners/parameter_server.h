#pragma once

#include <cstdint>
#include <optional>

#include "plan/planners/plan_request.h"

namespace einrel {

/// A training program as SoyBean's section 2.2 counts what devices and a parameter server exchange.
struct ParameterServer {
  double parameters = 0;   ///< bytes of states that vertices with the batch read, and that gradients change
  double activations = 0;  ///< bytes of what their first products with it come to: of the layers' results

  /// Bytes in `groups` groups of `devices` each. All groups send the gradients of all parameters and receive new ones;
  /// in each group, which has its share of the batch, all devices do so with activations and their gradients. One
  /// device to a group is data parallelism, one group model parallelism.
  double moved(std::int64_t groups, std::int64_t devices) const;
  bool operator==(const ParameterServer&) const = default;
};

/// Nothing of programs that have no such states: of loops that train nothing, too.
std::optional<ParameterServer> parameter_server(const EinGraph& graph, const PlanRequest& request);

/// The number of groups, neither one nor one for each of the sites, for which least is moved; nothing where there is
/// none.
std::optional<std::int64_t> best_groups(const ParameterServer& server, std::int64_t sites);

}  // namespace einrel
