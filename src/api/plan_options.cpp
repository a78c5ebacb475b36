#include "api/plan_options.h"

#include <einrel/error.h>
#include <fmt/format.h>

#include <algorithm>

#include "ia/from_tra.h"
#include "kernel/workers.h"
#include "plan/planners/planner.h"
#include "plan/where_brought.h"

namespace einrel::api {
namespace {

CostKind inside(Cost cost) {
  switch (cost) {
    case Cost::bound: return CostKind::bound;
    case Cost::floats: return CostKind::floats;
    case Cost::bytes: return CostKind::bytes;
    case Cost::seconds: return CostKind::seconds;
  }
  throw UserError("a cost that there is not: see einrel::Cost");
}

/// Those that runs and explanations have alike.
template <class Options>
RunRequest plan_of(const Options& options) {
  if (options.sites && (*options.sites < 1 || *options.sites > most_sites))
    throw UserError(fmt::format("{} sites: plans are made for 1 to {}", *options.sites, most_sites));
  if (options.memory && *options.memory < 1)
    throw UserError(fmt::format("a limit of {} bytes of memory: nothing fits there", *options.memory));
  RunRequest request;
  request.sites = options.sites;
  if (options.cost) request.cost = inside(*options.cost);
  request.machine = options.machine;
  request.batch = options.batch;
  if (options.memory) request.memory = MemoryLimit{*options.memory};
  if (options.steps == 0) throw UserError("the option 'steps' is 0: there is at least one");
  request.steps = static_cast<std::int64_t>(options.steps.value_or(1));
  return request;
}

void check_alone(const RunOptions& options, const Job& job) {
  if (options.spill && !options.memory)
    throw UserError(
        "the option 'spill' needs the option 'memory', how much may stay in memory: without a limit nothing goes to "
        "disk");
  if (options.plan && (options.sites || options.planner || options.cost || options.machine || options.batch))
    throw UserError("the option 'plan' is a plan already: leave out sites, planner, cost, batch and machine");
  if (job.ranks > 1 && options.sites && *options.sites != job.ranks) {
    throw UserError(
        fmt::format("{} sites, but each of the {} ranks is one: leave out the option 'sites', or start as "
                    "many ranks",
                    *options.sites, job.ranks));
  }
}

}  // namespace

RunRequest request_of(const ExplainOptions& options) {
  RunRequest request = plan_of(options);
  for (const std::string& planner : options.planners) check_planner(planner);
  request.fed = {options.fed.begin(), options.fed.end()};
  if (!request.fed.empty() && !options.steps)
    throw UserError("the option 'fed' names inputs that are new in each step: give the option 'steps', too");
  request.placements = options.placements;
  request.explains = true;
  request.spmd = options.spmd;
  request.threads = threads_of(std::nullopt, {});
  request.compared = options.planners;
  if (request.compared.empty()) return request;
  request.planner = request.compared.front();
  request.compared.erase(request.compared.begin());
  return request;
}

RunRequest request_of(const RunOptions& options, const Job& job) {
  check_alone(options, job);
  RunRequest request = plan_of(options);
  if (options.planner) check_planner(*options.planner);
  request.placements = options.placements;
  request.planner = options.planner;
  if (options.plan) request.given = PlanText{*options.plan, "the option 'plan'"};
  if (options.spill) request.spill = options.spill->string();
  request.threads = threads_of(options.threads, job);
  return request;
}

Placements placements_after(const Chosen& chosen, const Compiled& compiled, const RunRequest& request) {
  const auto* const by_plan = std::get_if<ByPlan>(&chosen.how);
  if (by_plan == nullptr || request.memory) return {};
  return where_brought(chosen.program(compiled).graph, by_plan->plan.plan, request.fed);
}

void check_planner(const std::string& name) {
  if (plans_relations(name)) {
    throw UserError(
        fmt::format("{} plans relations, which the command shows: einrel explain PROGRAM --planner {}", name, name));
  }
  planner_named(name);
}

std::size_t threads_of(std::optional<std::size_t> given, const Job& job) {
  static const std::size_t cores = std::min(available_cores(), most_threads);  // asking takes as long as a small run
  constexpr double rounding = 1e-6;                                            // of thirds that make a whole
  if (!given && job.ranks > 1) return std::clamp<std::size_t>(static_cast<std::size_t>(job.cores + rounding), 1, cores);
  if (!given) return cores;
  if (*given < 1 || *given > most_threads)
    throw UserError(fmt::format("{} threads: a run takes 1 to {}", *given, most_threads));
  return *given;
}

}  // namespace einrel::api
