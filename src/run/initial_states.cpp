#include "run/initial_states.h"

namespace einrel {

KeptStates begun_states(const StepsChosen& steps, const std::optional<GivenStates>& given, const InputSources& inputs,
                        const ScalarBindings& scalars, const SourceText& source, const Job& job) {
  KeptStates states(steps.chosen.tasks, job, states_folder(steps.chosen.memory));
  if (given) {
    states.begin(steps.chosen.tasks, *given);
  } else if (!steps.chosen.tasks.states.empty()) {
    const Chosen first = choose_beside(steps, *steps.program->initial, source, job);
    Session session(first.tasks, first.resources(), job);
    session.step(inputs, {}, scalars, {.states = &states});  // next values of that step are the first ones
    states.begin_to_count();
  }
  return states;
}

}  // namespace einrel
