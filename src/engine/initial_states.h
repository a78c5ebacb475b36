#pragma once

#include "engine/choose_plan.h"
#include "engine/kept_states.h"

namespace einrel {

/// Computes what the states of a program are before its first step, for steps that run as they were chosen for
/// `request`: on all ranks of a job, or on as many sites of this process, by a plan that leaves states where that one
/// has them, so that their bits are the same; or within a limit of memory of this process; else on one site. `sources`
/// has the inputs that this takes. Throws as choose and Session::step do.
void begin_states(const Compiled& compiled, const Chosen& steps, const RunRequest& request, const SourceText& source,
                  const Job& job, const InputSources& sources, const ScalarBindings& scalars, KeptStates& states);

}  // namespace einrel
