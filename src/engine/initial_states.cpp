#include "engine/initial_states.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "einsum/vertex_facts.h"
#include "plan/default_planner.h"

namespace einrel {
namespace {

/// All values in one step, whose next ones are the first ones.
void step_once(const PlannedTasks& tasks, PlanResources resources, const Job& job, const InputSources& sources,
               const ScalarBindings& scalars, KeptStates& states) {
  Session session(tasks, std::move(resources), job);
  session.step(sources, {}, scalars, {.states = &states});
  states.begin_to_count();
}

}  // namespace

Plan plan_beside(const Compiled& other, const Compiled& program, const Plan& plan, const PlanRequest& request) {
  PlanRequest asked = request;
  asked.sites = plan.sites;
  asked.beside.clear();
  asked.batch.reset();
  Plan beside = plan_with(other, default_planner, asked).plan;
  std::map<std::string, std::size_t> states;
  for (const State& state : program.graph.steps.states) states[program.graph[state.now].name] = state.now.index;
  for (std::size_t v = 0; v < other.graph.vertices.size(); ++v) {
    const Vertex& vertex = other.graph.vertices[v];
    const auto state = states.find(vertex.name);
    if (is_input(vertex) && state != states.end()) beside.vertices[v] = plan.vertices[state->second];
  }
  return beside;
}

void begin_states(const Compiled& compiled, const InputSources& sources, const ScalarBindings& scalars,
                  std::size_t threads, KeptStates& states) {
  const PlannedTasks tasks = whole_tasks(*compiled.initial);
  step_once(tasks, {threads, {}, {}}, {}, sources, scalars, states);
}

void begin_states(const Compiled& compiled, const ChosenPlan& steps, const RunRequest& request,
                  const SourceText& source, const PlanResources& resources, const Job& job, const InputSources& sources,
                  const ScalarBindings& scalars, KeptStates& states) {
  const bool within_limit = job.ranks == 1 && steps.limit;
  const bool is_planned = job.ranks > 1 || steps.plan.plan.sites > 1;
  if (!is_planned && !within_limit) return begin_states(compiled, sources, scalars, request.threads, states);
  RunRequest asked = request;
  asked.given.reset();
  asked.planner = default_planner;
  asked.plan.batch.reset();  // a label of the steps, which first values may not have
  if (!within_limit) asked.given = plan_beside(*compiled.initial, compiled, steps.plan.plan, request.plan);
  const ChosenPlan chosen = choose_plan(*compiled.initial, std::move(asked), source, job);
  step_once(chosen.tasks, resources_of(chosen, resources.spill.folder, resources.spill.on_failure), job, sources,
            scalars, states);
}

}  // namespace einrel
