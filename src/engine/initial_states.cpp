#include "engine/initial_states.h"

#include <utility>

#include "plan/default_planner.h"

namespace einrel {
namespace {

/// How the first values are computed where steps run by a plan.
RunRequest request_beside(const ByPlan& by_plan, const RunRequest& request) {
  RunRequest asked = request;
  asked.planner = default_planner;
  if (std::exchange(asked.given, std::nullopt)) asked.sites = by_plan.plan.plan.sites;
  asked.batch.reset();  // a label of the steps, which first values may not have
  return asked;
}

}  // namespace

void begin_states(const Compiled& compiled, const Chosen& steps, const RunRequest& request, const SourceText& source,
                  const Job& job, const InputSources& sources, const ScalarBindings& scalars, KeptStates& states) {
  RunRequest asked{.threads = request.threads};
  Job at{};  // in this process alone, unless steps run on sites
  std::optional<Beside> beside;
  if (const auto* const by_plan = std::get_if<ByPlan>(&steps.how)) {
    const bool is_on_sites = job.ranks > 1 || by_plan->plan.plan.sites > 1;
    const bool is_within_limit = job.ranks == 1 && is_limited(steps.memory);
    if (is_on_sites || is_within_limit) {
      asked = request_beside(*by_plan, request);
      at = job;
    }
    if (!is_within_limit && is_on_sites)
      beside.emplace(Beside{steps.recomputed ? *steps.recomputed : compiled, by_plan->plan.plan});
  }
  const Chosen first = choose(*compiled.initial, asked, source, at, beside);
  Session session(first.tasks, first.resources(), at);
  session.step(sources, {}, scalars, {.states = &states});  // next values of that step are the first ones
  states.begin_to_count();
}

}  // namespace einrel
