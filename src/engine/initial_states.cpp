#include "engine/initial_states.h"

#include <utility>

#include "base/error.h"

namespace einrel {
namespace {

/// All values in one step, whose next ones are the first ones.
void step_once(const PlannedTasks& tasks, PlanResources resources, const Job& job, const InputSources& sources,
               const ScalarBindings& scalars, KeptStates& states) {
  Session session(tasks, std::move(resources), job);
  session.step(sources, {}, scalars, {.states = &states});
  states.begin_to_count();
}

/// A plan of the initial values that has states where another one has them.
Plan plan_like(const Compiled& compiled, const Plan& steps, const PlanRequest& request) {
  const Compiled& initial = *compiled.initial;
  PlanRequest asked = request;
  asked.sites = steps.sites;
  asked.beside.clear();
  asked.batch.reset();
  Plan plan = plan_with(initial, "eindecomp", asked).plan;
  for (std::size_t s = 0; s < initial.graph.steps.states.size(); ++s) {
    const std::size_t now = initial.graph.steps.states[s].now.index;
    plan.vertices[now] = steps.vertices[compiled.graph.steps.states[s].now.index];
  }
  return plan;
}

}  // namespace

void begin_states(const Compiled& compiled, const InputSources& sources, const ScalarBindings& scalars,
                  std::size_t threads, KeptStates& states) {
  const PlannedTasks tasks = whole_tasks(*compiled.initial);
  step_once(tasks, {threads, {}, {}}, {}, sources, scalars, states);
}

void begin_states(const Compiled& compiled, const ChosenPlan& steps, const RunRequest& request,
                  const SourceText& source, const PlanResources& resources, const Job& job, const InputSources& sources,
                  const ScalarBindings& scalars, KeptStates& states) {
  RunRequest asked = request;
  asked.given.reset();
  asked.planner = "eindecomp";
  if (job.ranks > 1) asked.given = plan_like(compiled, steps.plan.plan, request.plan);
  const ChosenPlan chosen = choose_plan(*compiled.initial, std::move(asked), source, job);
  step_once(chosen.tasks, resources_of(chosen, resources.spill.folder, resources.spill.on_failure), job, sources,
            scalars, states);
}

}  // namespace einrel
