#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/simulated/from_tasks.h"
#include "run/choose_plan.h"

namespace einrel {

/// How a plan is simulated.
struct SimulationRequest {
  SiteSpeeds speeds = {};  ///< of sites that are slower or faster than the others
  std::string program;     ///< einrel-simgrid
};

/// A run on sites that nobody has.
struct SimulatedRun {
  /// Every task is simulated, as a run would do it; else all that a site does for a vertex at once, since the plan has
  /// too many tasks to make.
  bool is_by_task = true;
  double seconds = 0;
  std::vector<double> computing;       ///< seconds, per site
  std::vector<std::int64_t> received;  ///< bytes, per site
  PlanRunReport report = {};           ///< when each task ran, by site; nothing where not every task is simulated
};

/// What jobs on the first `sites` endpoints come to.
SimulatedRun simulated_run(const Simulation& simulation, const std::vector<SimulatedTimes>& times, std::int64_t sites);

/// The tasks that were chosen, or else the vertices of the plan, replayed: one step, without what only a first one
/// does. Throws UserError for sites that the plan has not, and where chunks go to disk; RunError as `simulate` of jobs
/// does.
SimulatedRun simulate(const Compiled& program, const Chosen& chosen, const Machine& machine,
                      const SimulationRequest& request);

/// The same of a plan, vertex by vertex: each site computes its part when all of the operands that come from other
/// sites are there. What is brought to a site in one layout is one message, as large as costs_of says, from whoever has
/// it: only receivers, and links into their groups, limit it.
SimulatedRun simulate_vertices(const EinGraph& graph, const Plan& plan, const Machine& machine,
                               const SimulationRequest& request);

}  // namespace einrel
