#include "run/initial_states.h"

namespace einrel {

void begin_states(const Compiled& compiled, const Chosen& steps, const RunRequest& request, const SourceText& source,
                  const Job& job, const InputSources& sources, const ScalarBindings& scalars, KeptStates& states) {
  const Chosen first = choose_beside({compiled, request, steps}, *compiled.initial, source, job);
  Session session(first.tasks, first.resources(), job);
  session.step(sources, {}, scalars, {.states = &states});  // next values of that step are the first ones
  states.begin_to_count();
}

}  // namespace einrel
