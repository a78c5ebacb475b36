#include "run/compare_plans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/cost/lower_bound.h"
#include "plan/search/tilings.h"

namespace einrel {

std::set<std::string> labels_of_plans(const EinGraph& graph) {
  std::set<std::string> labels;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) continue;  // its dimensions are numbered
    for (const std::string& label : label_names(vertex)) labels.insert(label);
  }
  return labels;
}

void check_batch(const EinGraph& graph, const PlanRequest& request) {
  if (!request.batch) return;
  const std::set<std::string> labels = labels_of_plans(graph);
  if (labels.count(*request.batch) != 0) return;
  const std::vector<std::string> known(labels.begin(), labels.end());
  const std::string near = did_you_mean(*request.batch, known);
  throw UserError(fmt::format("the batch (the option 'batch') is {0}, but the program has no label '{0}'; {1}",
                              printable(*request.batch),
                              !near.empty() ? near : fmt::format("its labels are: {}", fmt::join(known, ", "))));
}

std::variant<PlanReport, PlanRefusal> try_plan(const Compiled& compiled, const std::string& planner,
                                               const PlanRequest& request) {
  const Planner chosen = planner_named(planner);
  const auto start = std::chrono::steady_clock::now();
  Planned planned = chosen.plan(compiled.graph, request);
  if (auto* const reason = std::get_if<std::string>(&planned)) return PlanRefusal{planner, std::move(*reason)};
  Plan plan = std::get<Plan>(std::move(planned));
  plan.planner = planner;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  PlanReport report = report_of(compiled, std::move(plan), request);
  report.seconds = seconds;
  return report;
}

std::string refusal_text(const Compiled& compiled, const PlanRefusal& refusal) {
  if (!refusal.held.empty())
    return fmt::format("the plan by {} does not fit: {}{}", refusal.planner, refusal.reason, refusal.held);
  return fmt::format("planner {} has no plan for {}: {}", refusal.planner, printable(compiled.name), refusal.reason);
}

PlanReport plan_with(const Compiled& compiled, const std::string& planner, const PlanRequest& request) {
  check_batch(compiled.graph, request);
  std::variant<PlanReport, PlanRefusal> planned = try_plan(compiled, planner, request);
  if (const auto* const refusal = std::get_if<PlanRefusal>(&planned)) throw UserError(refusal_text(compiled, *refusal));
  return std::get<PlanReport>(std::move(planned));
}

void verify_cuts(const Compiled& compiled, PlanComparison& comparison) {
  for (PlanReport& report : comparison.plans) {
    if (!report.plan.cuts) continue;
    std::vector<std::int64_t> groups;
    for (const TilingCut& cut : report.plan.cuts->cuts) groups.push_back(cut.groups);
    report.verified = VerifiedCuts{least_moved(compiled.graph, groups)};
  }
}

void price_restriction(const Compiled& compiled, PlanComparison& comparison, const PlanRequest& request) {
  PlanRequest free = request;
  free.spmd = false;
  for (PlanReport& report : comparison.plans) {
    if (!report.plan.is_spmd) continue;
    const std::variant<PlanReport, PlanRefusal> other = try_plan(compiled, report.plan.planner, free);
    if (const auto* const found = std::get_if<PlanReport>(&other)) report.unrestricted = found->costs;
  }
}

PlanReport report_of(const Compiled& compiled, Plan plan, const PlanRequest& request) {
  PlanReport report{std::move(plan), {}, {}, {}, 0};
  report.costs = costs_of(compiled.graph, report.plan, request.machine);
  report.peak = peak_of(compiled.graph, report.plan);
  report.least = least_bytes(compiled.graph, report.plan);
  return report;
}

}  // namespace einrel
