#include "run/run_request.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "machine/machines.h"
#include "plan/spmd.h"
#include "plan/staying_inputs.h"
#include "run/plan_file.h"

namespace einrel {

bool plans_relations(const std::string& planner) { return planner == "table-1" || planner == "ia-rules"; }

bool asks_for_plan(const RunRequest& request, const Job& job) {
  return job.is_started || request.planner || request.sites || request.cost || request.machine || request.memory ||
         request.batch || request.spmd || request.given || request.spill || !request.compared.empty() ||
         !request.placements.empty();
}

std::optional<Compiled> planned_with_inputs(const Compiled& compiled, const RunRequest& request, std::int64_t sites,
                                            bool comes_and_goes) {
  std::set<std::string> fed = request.fed;
  GivenPlacements placements = request.placements;
  for (const std::string& name : compiled.unread) {
    fed.erase(name);
    placements.erase(name);
  }
  EinGraph graph = with_staying_inputs(compiled.graph, request.steps, fed);
  if (comes_and_goes) graph = compiled.graph;
  graph = with_placed_inputs(std::move(graph), placements, sites);
  if (graph == compiled.graph) return std::nullopt;
  Compiled planned = compiled;
  planned.graph = std::move(graph);
  return planned;
}

void check_placements(const EinGraph& graph, const Plan& given) {
  const std::string fault = placement_fault(graph, given);
  if (!fault.empty())
    throw UserError(
        fmt::format("--placement and --plan: in that plan, {}\n  help: leave out --placement, or plan with it", fault));
}

std::optional<Plan> given_plan(const RunRequest& request, const Compiled& compiled) {
  if (!request.given) return std::nullopt;
  if (const auto* const text = std::get_if<PlanText>(&*request.given))
    return parse_plan(text->json, text->called, compiled);
  const std::string& path = std::get<PlanFile>(*request.given).path;
  Plan plan = read_plan(path, compiled);
  if (request.sites && *request.sites != plan.sites) {
    throw UserError(fmt::format("--sites {}, but {} is a plan for {}", *request.sites, printable(path), plan.sites));
  }
  if (request.spmd) {
    if (const std::string fault = spmd_fault(compiled.graph, plan); !fault.empty()) {
      throw UserError(fmt::format("--spmd, but {} is none such plan: {}\n  help: leave out --spmd, or plan with it",
                                  printable(path), fault));
    }
    plan.is_spmd = true;
  }
  return plan;
}

PlanRequest plan_request(const RunRequest& request, std::optional<std::int64_t> decided) {
  const std::optional<std::int64_t> sites = decided ? decided : request.sites;
  PlanRequest asked;
  asked.machine = request.machine ? machine_of(*request.machine, sites) : default_machine(sites);
  asked.sites = sites.value_or(asked.machine.sites);
  asked.cost = request.cost.value_or(CostKind::seconds);
  asked.batch = request.batch;
  asked.spmd = request.spmd;
  if (request.memory) {
    asked.memory = request.memory->bytes;
  } else if (request.machine) {  // somebody chose it
    asked.memory = asked.machine.memory;
  }
  return asked;
}

PlanRequest plan_request(const RunRequest& request, const Job& job, std::optional<std::int64_t> decided) {
  if (!decided && !request.sites && job.is_started) decided = job.ranks;
  PlanRequest asked = plan_request(request, decided);
  if (!request.memory && !job.is_started) asked.memory.reset();
  return asked;
}

}  // namespace einrel
