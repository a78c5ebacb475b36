#include "report/plan_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "ia/traffic.h"
#include "plan/lower.h"
#include "run/plans_on_ranks.h"

namespace einrel {
CutFacts cut_of(const Vertex& vertex, const VertexPlan& plan) {
  const std::vector<std::string> names = label_names(vertex);
  const VertexPlan result = with_scattered_result(vertex, plan);
  CutFacts cut{{}, std::nullopt, plan.all_reduced, copies_of(plan)};
  for (std::size_t l = 0; l < names.size(); ++l) {
    const bool is_one_part_each = plan.parts[l] == result.grid[l];
    if (plan.parts[l] == 1 || (is_one_part_each && plan.grid[l] == 1)) continue;
    cut.labels.push_back({names[l], plan.grid[l], std::nullopt});
    if (!is_one_part_each) cut.labels.back().parts = plan.parts[l];
  }
  if (plan.scatter) cut.scatter = LabelSites{names[*plan.scatter], result.grid[*plan.scatter], std::nullopt};
  return cut;
}

std::vector<LinkCut> link_cuts(const Vertex& vertex, const VertexPlan& plan, const PlanRequest& request) {
  const std::vector<std::string> names = label_names(vertex);
  // Coordinates of a digit of a site's number that neighbouring sites, so many, have.
  const auto coordinates = [](std::int64_t count, std::int64_t stride, std::int64_t sites) {
    return count == 1 ? 1 : std::clamp<std::int64_t>((sites + stride - 1) / stride, 1, count);
  };
  std::vector<LinkCut> cuts;
  std::int64_t outer = request.sites;
  for (const Link& link : request.machine.links) {
    const std::int64_t inner = std::min(link.sites, outer);
    const auto cut_into = [&](std::int64_t count, std::int64_t stride) {
      const std::int64_t inside = coordinates(count, stride, inner);
      return (coordinates(count, stride, outer) + inside - 1) / inside;
    };
    LinkCut cut{link.name, {}, 1};
    for (std::size_t l = 0; l < names.size(); ++l) {
      const std::int64_t groups = cut_into(plan.grid[l], plan.strides[l]);
      if (groups > 1) cut.labels.push_back({names[l], groups, std::nullopt});
    }
    for (const SiteCopies& copies : plan.copies) cut.copies *= cut_into(copies.count, copies.stride);
    if (!cut.labels.empty() || cut.copies > 1) cuts.push_back(std::move(cut));
    outer = inner;
  }
  return cuts;
}

std::vector<WindowFacts> windows_of(const EinGraph& graph, std::size_t v, const VertexPlan& plan) {
  const Vertex& vertex = graph.vertices[v];
  if (einsum_of(vertex) == nullptr) return {};
  const std::vector<std::string> names = label_names(vertex);
  std::vector<WindowFacts> windows;
  for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
    const std::vector<std::optional<std::size_t>> labels = operand_labels(vertex, o);
    const Layout need = needed_layout(vertex, o, graph[vertex.inputs[o]].bound, plan);
    for (std::size_t d = 0; d < labels.size(); ++d) {
      const DimensionCut& cut = need.axes[d].cut;
      if (!cut.window && cut.unit == 1) continue;
      const Window beside{labels_of(vertex)[*labels[d]].extent, cut.unit, 0, cut.unit - 1};
      windows.push_back({o, d, names[*labels[d]], need.axes[d].grid > 1, cut.window.value_or(beside)});
    }
  }
  return windows;
}

/// What a part needs of an operand beyond what lies beside its own positions.
std::vector<Halo> halos_of(const std::vector<WindowFacts>& windows, std::size_t operand) {
  std::vector<Halo> halos;
  const auto count = [](std::int64_t elements) {
    return static_cast<std::size_t>(std::max<std::int64_t>(elements, 0));
  };
  for (const auto& [o, dimension, label, is_spread, window] : windows) {
    const bool overlaps = window.low < 0 || window.high >= window.coefficient;
    if (o != operand || !is_spread || window.coefficient < 0 || !overlaps) continue;
    halos.push_back({label, count(-window.low), count(window.high - window.coefficient + 1)});
  }
  return halos;
}

MoveFacts moves_of(const EinGraph& graph, std::size_t v, const VertexPlan& plan, const VertexCost& cost) {
  const Vertex& vertex = graph.vertices[v];
  MoveFacts moves{{}, {}, cost.reduced_bytes};
  const std::vector<WindowFacts> windows = windows_of(graph, v, plan);
  for (std::size_t o = 0; o < cost.operand_bytes.size(); ++o) {
    if (cost.operand_bytes[o] == 0) continue;
    std::int64_t copies = 1;
    const Vertex& tensor = graph[vertex.inputs[o]];
    for (const SiteCopies& each : needed_layout(vertex, o, tensor.bound, plan).copies) copies *= each.count;
    moves.operands.push_back({tensor.name, halos_of(windows, o), copies, cost.operand_bytes[o]});
  }
  if (cost.reduced_bytes == 0) return moves;
  const std::vector<std::string> names = label_names(vertex);
  for (const std::size_t label : reduced_labels(vertex)) {
    if (plan.grid[label] > 1) moves.reduced.push_back(names[label]);
  }
  return moves;
}

OtherPlans other_plans(const EinGraph& graph, const PlanReport& report, const PlanRequest& request, std::size_t most) {
  constexpr double rounding = 1e-9;
  const double all = report.costs.of(request.cost);
  const auto facts_of = [&](std::size_t v, const RunnerUp& other) {
    RunnerUpFacts facts{.cut = cut_of(graph.vertices[v], other.plan),
                        .more = other.more,
                        .more_there = other.more_there,
                        .costs_the_same = std::abs(other.more) <= rounding * all,
                        .moving = std::nullopt,
                        .to = std::nullopt};
    if (other.producer == other.consumer) return facts;
    facts.moving = graph.vertices[other.producer].name;
    facts.to = graph.vertices[other.consumer].name;
    return facts;
  };
  OtherPlans plans;
  if (report.is_in_parts) {  // what sites would exchange is no cost of parts
    plans.runners_up.resize(graph.vertices.size());
    return plans;
  }
  const std::vector<OtherCuts> others = other_cuts(graph, report.plan, request.machine, request.cost, most);
  for (const OtherCuts& of : others) {
    OtherCutFacts& facts = plans.cuts.emplace_back(OtherCutFacts{of.vertices, {}});
    for (const RunnerUp& other : of.best) facts.best.push_back(facts_of(of.vertices.front(), other));
  }
  const std::vector<std::optional<RunnerUp>> best = runners_up(graph, report.plan, others);
  for (std::size_t v = 0; v < best.size(); ++v)
    plans.runners_up.push_back(best[v] ? std::optional(facts_of(v, *best[v])) : std::nullopt);
  return plans;
}

std::vector<WholeLabel> whole_labels(const EinGraph& graph, std::size_t v) {
  const Vertex& vertex = graph.vertices[v];
  const Shape extents = label_extents(vertex);
  const std::vector<std::string> names = label_names(vertex);
  const std::vector<std::string> reasons = stays_whole(vertex, graph);
  std::vector<WholeLabel> whole;
  for (std::size_t l = 0; l < reasons.size(); ++l) {
    if (extents[l].value() < 2) {
      whole.push_back({names[l], fmt::format("its extent is {}", extents[l].value())});
    } else if (!reasons[l].empty()) {
      whole.push_back({names[l], reasons[l]});
    }
  }
  return whole;
}

namespace {

/// How many sites are told of together, so that there are at most so many groups.
std::int64_t sites_told_together(const Machine& machine, std::int64_t sites) {
  constexpr std::int64_t most_groups = 64;
  const std::int64_t least = (sites + most_groups - 1) / most_groups;
  std::int64_t group = least;
  for (const Link& link : machine.links) {  // the outermost first
    if (least > 1 && link.sites >= least && link.sites < sites) group = link.sites;
  }
  return group;
}

}  // namespace

std::optional<SentFacts> sent_facts(const EinGraph& graph, const Plan& plan, const Machine& machine) {
  if (plan.sites == 1 || !has_few_chunks(plan)) return std::nullopt;
  const LoweredPlan lowered = lower(graph, plan);
  const std::int64_t group = sites_told_together(machine, plan.sites);
  return SentFacts{group, bytes_between(lowered.ia.store, lowered.ia.plan, group)};
}

std::vector<VertexCost> costs_together(const PlanReport& report, const Folding& folding) {
  std::vector<VertexCost> together = report.costs.vertices;
  for (std::size_t v = 0; v < together.size(); ++v) {
    const std::size_t shown = folding.shown[v];
    if (shown == v) continue;
    const VertexCost& other = report.costs.vertices[v];
    for (std::size_t o = 0; o < other.operand_bytes.size(); ++o)
      together[shown].operand_bytes[o] += other.operand_bytes[o];
    together[shown].reduced_bytes += other.reduced_bytes;
    together[shown].feedback_bytes += other.feedback_bytes;
    together[shown].seconds += other.seconds;
  }
  return together;
}

std::optional<TilingFacts> tiling_facts(const EinGraph& graph, const Plan& plan, const PlanRequest& request) {
  if (!plan.cuts || plan.sites == 1) return std::nullopt;
  TilingFacts facts{{}, parameter_server(graph, request), std::nullopt};
  if (facts.server) facts.groups = best_groups(*facts.server, plan.sites);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v)
    facts.tensors.push_back(tilings_text(*plan.cuts, v, graph.vertices[v].bound.size()));
  return facts;
}

std::vector<Amount> most_moved(const EinGraph& graph, const Folding& folding, const std::vector<VertexCost>& together) {
  std::vector<Amount> amounts;
  for (std::size_t v = 0; v < together.size(); ++v) {
    if (folding.shown[v] != v) continue;
    const std::string name = folded_name(graph, folding, v);
    for (std::size_t o = 0; o < together[v].operand_bytes.size(); ++o) {
      amounts.push_back({fmt::format("{} for {}", graph[graph.vertices[v].inputs[o]].name, name),
                         static_cast<double>(together[v].operand_bytes[o])});
    }
    amounts.push_back({fmt::format("partial results of {}", name), static_cast<double>(together[v].reduced_bytes)});
    amounts.push_back({fmt::format("{} between steps", name), static_cast<double>(together[v].feedback_bytes)});
  }
  return largest(std::move(amounts));
}

SitesComputing sites_computing(const EinGraph& graph, const Plan& plan) {
  SitesComputing sites{plan.sites, 1};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (graph.vertices[v].inputs.empty()) continue;
    const std::int64_t computing = sites_used(plan.vertices[v]) * copies_of(plan.vertices[v]);
    sites.fewest = std::min(sites.fewest, computing);
    sites.most = std::max(sites.most, computing);
  }
  sites.fewest = std::min(sites.fewest, sites.most);
  return sites;
}

std::string sites_computing_text(const EinGraph& graph, const Plan& plan) {
  const auto [fewest, most] = sites_computing(graph, plan);
  return fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
}

std::string proof_text(const PlanReport& report) {
  if (!report.plan.at_least) return "";
  constexpr double rounding = 1e-6;
  const double least = *report.plan.at_least;
  const double seconds = report.costs.of(CostKind::seconds);
  if (seconds <= (1 + rounding) * least) return "proven: no plan that best looks at takes less";
  const double above = 100 * (seconds / least - 1);
  return fmt::format("within {} % of the least possible: every plan that best looks at takes {} at least",
                     above < 10 ? fmt::format("{:.2g}", above) : fmt::format("{:.0f}", above), seconds_text(least));
}

}  // namespace einrel
