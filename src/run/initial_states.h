#pragma once

#include <optional>

#include "run/choose_plan.h"
#include "run/kept_states.h"

namespace einrel {

/// The states of a program before its first step, for steps that run as they were chosen. They are as they are given;
/// else they are computed, by what choose_beside says, of `inputs`, which have what this takes. Throws as that,
/// Session::step and KeptStates::begin do.
KeptStates begun_states(const StepsChosen& steps, const std::optional<GivenStates>& given, const InputSources& inputs,
                        const ScalarBindings& scalars, const SourceText& source, const Job& job);

}  // namespace einrel
