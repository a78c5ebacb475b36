#pragma once

#include "run/choose_plan.h"
#include "run/kept_states.h"

namespace einrel {

/// Computes what the states of a program are before its first step, for steps that run as they were chosen for
/// `request`: as choose_beside says. `sources` has the inputs that this takes. Throws as that and Session::step do.
void begin_states(const Compiled& compiled, const Chosen& steps, const RunRequest& request, const SourceText& source,
                  const Job& job, const InputSources& sources, const ScalarBindings& scalars, KeptStates& states);

}  // namespace einrel
