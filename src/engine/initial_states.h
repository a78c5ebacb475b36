#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "engine/choose_plan.h"
#include "engine/kept_states.h"

namespace einrel {

/// Computes what the states of a program are before its first step, in this process on so many threads. `sources` has
/// the inputs that this takes. Throws as Session::step does.
void begin_states(const Compiled& compiled, const InputSources& sources, const ScalarBindings& scalars,
                  std::size_t threads, KeptStates& states);

/// The same for steps by a plan, chosen for `request`: on all ranks of a job, or on as many sites of this process, by a
/// plan that leaves states where that one has them, so that their bits are the same; or within a limit of memory of
/// this process. Throws as choose_plan does, too.
void begin_states(const Compiled& compiled, const ChosenPlan& steps, const RunRequest& request,
                  const SourceText& source, const PlanResources& resources, const Job& job, const InputSources& sources,
                  const ScalarBindings& scalars, KeptStates& states);

/// A plan of another graph that has inputs by the names of a program's states where the program's plan has these.
/// Throws UserError as plan_with does.
Plan plan_beside(const Compiled& other, const Compiled& program, const Plan& plan, const PlanRequest& request);

}  // namespace einrel
