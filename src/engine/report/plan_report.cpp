#include "engine/report/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "einsum/text/print.h"
#include "einsum/vertex_facts.h"
#include "engine/algebra.h"
#include "engine/plan_file.h"
#include "engine/plan_memory.h"
#include "engine/report/explain_summary.h"
#include "plan/cost/lower_bound.h"

namespace einrel {
namespace {

/// "i=2 k=2", "j=2 of 8 parts" for 2 sites that have 8 parts, "j=4, result k=4" where 4 sites share it out along k;
/// "i=2, each on 4 sites", where 4 compute the same; "whole, on one site", "whole, on each of 8 sites".
std::string cut_text(const Vertex& vertex, const VertexPlan& plan) {
  const std::vector<std::string> names = label_names(vertex);
  const VertexPlan result = with_scattered_result(vertex, plan);
  std::vector<std::string> texts;
  for (std::size_t l = 0; l < names.size(); ++l) {
    const bool is_one_part_each = plan.parts[l] == result.grid[l];
    if (plan.parts[l] == 1 || (is_one_part_each && plan.grid[l] == 1)) continue;
    texts.push_back(is_one_part_each ? fmt::format("{}={}", names[l], plan.grid[l])
                                     : fmt::format("{}={} of {} parts", names[l], plan.grid[l], plan.parts[l]));
  }
  const std::int64_t copies = copies_of(plan);
  if (texts.empty()) return copies == 1 ? "whole, on one site" : fmt::format("whole, on each of {} sites", copies);
  std::string text = fmt::format("{}", fmt::join(texts, " "));
  if (plan.scatter) text += fmt::format(", result {}={}", names[*plan.scatter], result.grid[*plan.scatter]);
  if (copies > 1) text += fmt::format(", each on {} sites", copies);
  return text;
}

std::string cost_text(CostKind kind, double cost) {
  if (kind == CostKind::bytes) return bytes_text(cost);
  if (kind == CostKind::seconds) return seconds_text(cost);
  return cost < 1e6 ? fmt::format("{:.0f} floats", cost) : fmt::format("{:.3g} floats", cost);
}

/// "A to 2 sites each, 6 MB; Z_1 cut anew, 3 MB; partial results over j, shared out along k, 4 MB"
std::string moves_text(const EinGraph& graph, std::size_t v, const VertexPlan& plan, const VertexCost& cost) {
  const Vertex& vertex = graph.vertices[v];
  std::vector<std::string> texts;
  for (std::size_t o = 0; o < cost.operand_bytes.size(); ++o) {
    if (cost.operand_bytes[o] == 0) continue;
    std::int64_t copies = 1;
    for (const SiteCopies& each : needed_layout(vertex, o, plan).copies) copies *= each.count;
    texts.push_back(fmt::format("{} {}, {}", graph[vertex.inputs[o]].name,
                                copies > 1 ? fmt::format("to {} sites each", copies) : "cut anew",
                                bytes_text(cost.operand_bytes[o])));
  }
  if (cost.reduced_bytes > 0) {
    const std::vector<std::string> names = label_names(vertex);
    std::vector<std::string> over;
    for (const std::size_t label : reduced_labels(vertex)) {
      if (plan.grid[label] > 1) over.push_back(names[label]);
    }
    texts.push_back(fmt::format("partial results over {}, {}{}", fmt::join(over, " "),
                                plan.scatter ? fmt::format("shared out along {}, ", names[*plan.scatter]) : "",
                                bytes_text(cost.reduced_bytes)));
  }
  return texts.empty() ? "nothing moves" : fmt::format("{}", fmt::join(texts, "; "));
}

/// `all` is what the whole plan costs.
std::string runner_up_text(const EinGraph& graph, std::size_t v, const RunnerUp& other, CostKind kind, double all) {
  const std::string cut = cut_text(graph.vertices[v], other.plan);
  constexpr double rounding = 1e-9;
  if (std::abs(other.more) <= rounding * all) return fmt::format("next: {}, which costs the same", cut);
  if (other.more < 0) return fmt::format("next: {}, {} less by estimate", cut, cost_text(kind, -other.more));
  std::string why = "to compute and reduce it";
  if (other.producer != other.consumer) {
    why = other.consumer == v ? fmt::format("to bring {} here", graph.vertices[other.producer].name)
                              : fmt::format("to bring it to {}", graph.vertices[other.consumer].name);
  }
  return fmt::format("next: {}, {} more, of which {} {}", cut, cost_text(kind, other.more),
                     cost_text(kind, other.more_there), why);
}

/// "1.13 times the least that any plan moves"; nothing where that is nothing, and where an earlier vertex has received
/// what this one needs.
std::string least_text(const VertexCost& cost, const std::optional<double>& least) {
  if (!least || *least == 0 || cost.has_received_before) return "";
  return fmt::format("      {:.2f} times the least that any plan moves\n", static_cast<double>(cost.bytes()) / *least);
}

std::string why_text(const EinGraph& graph, std::size_t v, const PlanReport& report,
                     const std::optional<RunnerUp>& other, CostKind kind) {
  std::string text;
  if (other) text = fmt::format("      {}\n", runner_up_text(graph, v, *other, kind, report.costs.of(kind)));
  return text + least_text(report.costs.vertices[v], report.least[v]);
}

std::string vertex_text(const EinGraph& graph, std::size_t v, const PlanReport& report, const Folding& folding) {
  const Vertex& vertex = graph.vertices[v];
  const VertexPlan& plan = report.plan.vertices[v];
  const VertexCost cost = cost_of_all(report, folding.alike[v]);
  const double share = report.costs.seconds > 0 ? 100 * cost.seconds / report.costs.seconds : 0;
  const std::string_view indent = is_in_group(folding, v) ? "  " : "";
  return fmt::format("{0}  {1}\n{0}      {2:<24} {3:>9} {4:>9} {5:>5.1f} %   {6}\n", indent, formula(vertex, graph),
                     cut_text(vertex, plan), bytes_text(cost.bytes()), seconds_text(cost.seconds), share,
                     moves_text(graph, v, plan, cost));
}

std::string inputs_text(const EinGraph& graph, const Plan& plan, const Folding& folding) {
  std::string text;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (!is_input(vertex) || folding.shown[v] != v) continue;
    const std::int64_t sites = sites_used(plan.vertices[v]);
    const std::int64_t copies = copies_of(plan.vertices[v]);
    std::string where =
        sites > 1 ? fmt::format("{} chunks on {} sites", fmt::join(plan.vertices[v].parts, "x"), sites) : "on one site";
    if (copies > 1)
      where = sites > 1 ? fmt::format("{}, each on {}", where, copies) : fmt::format("on {} sites", copies);
    if (const std::size_t times = folding.alike[v].size(); times > 1) where = fmt::format("{:<28} x {}", where, times);
    text += fmt::format("  {:<44} {}\n", formula(vertex, graph), where);
  }
  return text;
}

std::string totals_text(const PlanComparison& comparison) {
  std::string text =
      fmt::format("\n{:<18} {:>16} {:>16} {:>10} {:>12} {:>10} {:>14} {:>10}\n", "planner", "bound, floats",
                  "floats moved", "bytes", "at most/site", "seconds", "sites computing", "planned in");
  for (const PlanReport& report : comparison.plans) {
    const auto computing = [](const VertexPlan& plan) { return sites_used(plan) * copies_of(plan); };
    std::int64_t fewest = report.plan.sites;
    std::int64_t most = 1;
    for (std::size_t v = 0; v < report.plan.vertices.size(); ++v) {
      if (report.costs.vertices[v].operand_bytes.empty()) continue;  // an input
      fewest = std::min(fewest, computing(report.plan.vertices[v]));
      most = std::max(most, computing(report.plan.vertices[v]));
    }
    const std::int64_t busiest = *std::max_element(report.costs.received.begin(), report.costs.received.end());
    const std::string sites = fewest >= most ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
    text += fmt::format("{:<18} {:>16.4g} {:>16.4g} {:>10} {:>12} {:>10} {:>14} {:>10}\n", report.plan.planner,
                        report.costs.bound, report.costs.floats, bytes_text(report.costs.bytes), bytes_text(busiest),
                        seconds_text(report.costs.seconds), sites, seconds_text(report.seconds));
  }
  for (const auto& [planner, reason] : comparison.refused) text += fmt::format("{:<18} no plan: {}\n", planner, reason);
  return text;
}

}  // namespace

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
  return fmt::format("planner {} has no plan for {}: {}", refusal.planner, printable(compiled.name), refusal.reason);
}

PlanReport plan_with(const Compiled& compiled, const std::string& planner, const PlanRequest& request) {
  return std::move(compare_plans(compiled, std::nullopt, {planner}, request).plans.front());
}

PlanComparison compare_plans(const Compiled& compiled, std::optional<Plan> given,
                             const std::vector<std::string>& planners, const PlanRequest& request) {
  PlanComparison comparison;
  if (given) comparison.plans.push_back(report_of(compiled, std::move(*given), request));
  for (const std::string& planner : planners) {
    std::variant<PlanReport, PlanRefusal> planned = try_plan(compiled, planner, request);
    if (auto* const report = std::get_if<PlanReport>(&planned)) comparison.plans.push_back(std::move(*report));
    if (auto* const refusal = std::get_if<PlanRefusal>(&planned)) comparison.refused.push_back(std::move(*refusal));
  }
  if (!comparison.plans.empty()) return comparison;
  std::vector<std::string> reasons;
  for (const PlanRefusal& refusal : comparison.refused) reasons.push_back(refusal_text(compiled, refusal));
  throw UserError(fmt::format("{}", fmt::join(reasons, "\n")));
}

PlanReport report_of(const Compiled& compiled, Plan plan, const PlanRequest& request) {
  PlanReport report{std::move(plan), {}, {}, {}, 0};
  report.costs = costs_of(compiled.graph, report.plan, request.machine);
  report.peak = peak_of(compiled.graph, report.plan);
  report.least = least_bytes(compiled.graph, report.plan);
  return report;
}

std::string plans_text(const Compiled& compiled, const PlanComparison& comparison, const PlanRequest& request,
                       const SourceText& source, Detail detail) {
  const EinGraph& graph = compiled.graph;
  const PlanReport& first = comparison.plans.front();
  const bool is_compared = comparison.plans.size() + comparison.refused.size() > 1;
  const bool full = detail == Detail::full;
  const Folding folding = full ? unfolded(graph) : fold(graph, {first});
  std::string text = summary_text(compiled, first, request, folding, source);
  if (full) text += vertices_text(compiled);
  text += fmt::format("\ninputs, and where they lie\n{}", inputs_text(graph, first.plan, folding));
  text += fmt::format("\nvertices (sites along each label; bytes received; seconds and their share; what moves){}\n",
                      full ? "" : "; more with --verbose");
  const std::vector<std::optional<RunnerUp>> others =
      full ? runners_up(graph, first.plan, request.machine, request.cost) : std::vector<std::optional<RunnerUp>>{};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v]) || folding.shown[v] != v) continue;
    if (const FoldedGroup* const group = group_at(folding, v)) text += group_text(graph, *group);
    text += vertex_text(graph, v, first, folding);
    if (full) text += why_text(graph, v, first, others[v], request.cost);
  }
  if (full || is_compared) text += totals_text(comparison);
  if (full || is_compared || request.memory) text += peaks_text(compiled, comparison.plans, request, source);
  return text;
}

std::string lowered_text(const Compiled& compiled, const Plan& plan) {
  return algebra_text(algebra_of(compiled.graph, plan));
}

std::string plan_difference_text(const Compiled& compiled, const PlanReport& first, const PlanReport& second) {
  const EinGraph& graph = compiled.graph;
  std::string text =
      fmt::format("\nwhere {} and {} differ (bytes received, seconds)\n", first.plan.planner, second.plan.planner);
  std::size_t same = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (is_input(vertex)) continue;
    const VertexCost& a = first.costs.vertices[v];
    const VertexCost& b = second.costs.vertices[v];
    const VertexPlan& one = first.plan.vertices[v];
    const VertexPlan& other = second.plan.vertices[v];
    if (is_cut_alike(one, other) && a.bytes() == b.bytes()) {
      ++same;
      continue;
    }
    text += fmt::format("  {}\n", formula(vertex, graph));
    for (const auto& [report, cost] : {std::pair{&first, &a}, std::pair{&second, &b}}) {
      text += fmt::format("      {:<16} {:<24} {:>9} {:>9}   {}\n", report->plan.planner,
                          cut_text(vertex, report->plan.vertices[v]), bytes_text(cost->bytes()),
                          seconds_text(cost->seconds), moves_text(graph, v, report->plan.vertices[v], *cost));
    }
    text += fmt::format("      {} of {} costs {:+.4g} bytes, {:+.3g} s\n", second.plan.planner, vertex.name,
                        static_cast<double>(b.bytes() - a.bytes()), b.seconds - a.seconds);
  }
  return text + fmt::format("  {} alike\n", same == 1 ? "1 vertex is" : fmt::format("{} vertices are", same));
}

}  // namespace einrel
