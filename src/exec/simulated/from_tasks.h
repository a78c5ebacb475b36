#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "exec/simulated/simulate.h"
#include "exec/tasks/task_graph.h"
#include "machine/machine.h"

namespace einrel {

/// Sites that are so many times as fast as the machine says.
using SiteSpeeds = std::map<Site, double>;

/// Sites of a machine with their own networks and those of their nodes, without the links between groups of them. In a
/// second an endpoint does a second of what machine/seconds says, or `speeds` times as much.
Simulation sites_of(const Machine& machine, std::int64_t sites, const SiteSpeeds& speeds);

/// Every task of a graph as the job of the same number, on its site, where it takes so many seconds. A Send is a
/// message, which its receiver is busy with for the latency of all that it crosses, and then as long as its bytes flow:
/// through what the sender and the receiver have, and through the links of all groups that only one of them is in.
Simulation simulation_of(const TaskGraph& graph, const std::vector<double>& seconds, const Machine& machine,
                         const SiteSpeeds& speeds);

}  // namespace einrel
