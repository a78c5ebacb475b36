#pragma once

#include <set>
#include <string>
#include <vector>

#include "export/array_library.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "report/fold.h"

namespace einrel {

/// What is written as a program, of one device among all.
struct DeviceProgram {
  const EinGraph& graph;
  const Plan& plan;
  const PlanCosts* costs = nullptr;  ///< nothing of what comes before the first step
  Folding folding;                   ///< what becomes functions (layers.h)
  std::vector<VertexId> outputs;     ///< that it gives, beside the next states
};

/// A program as the lines of a function from `inputs` and `states`, dicts of this device's parts.
struct ProgramLines {
  std::vector<std::vector<std::string>> functions;  ///< that the lines call
  std::vector<std::string> lines;
  std::vector<std::string> results;  ///< `"Y": Y`: outputs and next states
};

ProgramLines program_lines(const DeviceProgram& program, const ArrayLibrary& library, ModuleNeeds& needs);

/// The scalars that its vertices read.
std::set<std::string> scalars_read(const EinGraph& graph);

}  // namespace einrel
