#include "report/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/placed_inputs.h"
#include "report/explain_summary.h"
#include "run/plan_memory.h"

namespace einrel {

std::string cut_text(const CutFacts& cut) {
  if (cut.labels.empty())
    return cut.copies == 1 ? "whole, on one site" : fmt::format("whole, on each of {} sites", cut.copies);
  std::vector<std::string> texts;
  for (const auto& [label, sites, parts] : cut.labels)
    texts.push_back(fmt::format("{}={}{}", label, sites, parts ? fmt::format(" of {} parts", *parts) : ""));
  std::string text = fmt::format("{}", fmt::join(texts, " "));
  if (cut.scatter) text += fmt::format(", result {}={}", cut.scatter->label, cut.scatter->sites);
  if (cut.all_reduced) text += ", result on each";
  if (cut.copies > 1) text += fmt::format(", each on {} sites", cut.copies);
  return text;
}

namespace {

/// " (spine: b=4; ethernet: h=2, 2 copies)": what is cut across each link.
std::string link_cuts_text(const std::vector<LinkCut>& cuts) {
  std::vector<std::string> links;
  for (const LinkCut& cut : cuts) {
    std::vector<std::string> texts;
    for (const LabelSites& label : cut.labels) texts.push_back(fmt::format("{}={}", label.label, label.sites));
    if (cut.copies > 1) texts.push_back(fmt::format("{} copies", cut.copies));
    links.push_back(fmt::format("{}: {}", printable(cut.link), fmt::join(texts, " ")));
  }
  return links.empty() ? "" : fmt::format(" ({})", fmt::join(links, "; "));
}

/// The same of a vertex and all that it stands for: these are cut alike, but their sites may have other numbers.
std::string link_cuts_text(const EinGraph& graph, std::size_t v, const Plan& plan, const PlanRequest& request,
                           const Folding& folding) {
  const std::vector<LinkCut> cuts = link_cuts(graph.vertices[v], plan.vertices[v], request);
  const bool is_same = std::all_of(folding.alike[v].begin(), folding.alike[v].end(), [&](std::size_t other) {
    const std::vector<LinkCut> others = link_cuts(graph.vertices[other], plan.vertices[other], request);
    return std::equal(cuts.begin(), cuts.end(), others.begin(), others.end(), [](const LinkCut& a, const LinkCut& b) {
      const auto is_alike = [](const LabelSites& one, const LabelSites& two) { return one.sites == two.sites; };
      return a.link == b.link && a.copies == b.copies &&
             std::equal(a.labels.begin(), a.labels.end(), b.labels.begin(), b.labels.end(), is_alike);
    });
  });
  return is_same ? link_cuts_text(cuts) : " (across links: not all alike, see --verbose)";
}

std::string cost_text(CostKind kind, double cost) {
  if (kind == CostKind::bytes) return bytes_text(cost);
  return kind == CostKind::seconds ? seconds_text(cost) : floats_text(cost);
}

/// "halo of y: 2 positions from each neighbour, of x: 1 position before and 0 positions behind"
std::string halos_text(const std::vector<Halo>& halos) {
  std::vector<std::string> texts;
  for (const auto& [label, before, behind] : halos) {
    texts.push_back(fmt::format("of {}: {}", label,
                                before == behind ? counted(before, "position") + " from each neighbour"
                                                 : fmt::format("{} before and {} behind", counted(before, "position"),
                                                               counted(behind, "position"))));
  }
  return fmt::format("halo {}", fmt::join(texts, ", "));
}

/// "A to 2 sites each, 6 MB; Z_1 cut anew, 3 MB; partial results over j, shared out along k, 4 MB"
std::string moves_text(const MoveFacts& moves, const CutFacts& cut) {
  std::vector<std::string> texts;
  for (const auto& [tensor, halos, copies, bytes] : moves.operands) {
    const std::string where = copies > 1 ? fmt::format("to {} sites each", copies) : halos.empty() ? "cut anew" : "";
    const std::string with = halos.empty() ? "" : (copies > 1 ? ", " : "") + halos_text(halos);
    texts.push_back(fmt::format("{} {}{}, {}", tensor, where, with, bytes_text(bytes)));
  }
  if (moves.reduced_bytes > 0) {
    texts.push_back(fmt::format("partial results over {}, {}{}", fmt::join(moves.reduced, " "),
                                cut.scatter       ? fmt::format("shared out along {}, ", cut.scatter->label)
                                : cut.all_reduced ? "all-reduced, "
                                                  : "",
                                bytes_text(moves.reduced_bytes)));
  }
  return texts.empty() ? "nothing moves" : fmt::format("{}", fmt::join(texts, "; "));
}

/// Extents that groups do not divide leave fractions of elements on average: two digits of them, where there are any.
std::string elements_text(double elements) {
  std::string text = fmt::format("{:.2f}", elements);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// "780000 + 2 x 480000": what each cut moves, in each of the groups that the cuts before it made.
std::string cuts_text(const TilingCuts& cuts) {
  std::vector<std::string> texts;
  std::int64_t groups = 1;
  for (const TilingCut& cut : cuts.cuts) {
    const std::string moved = elements_text(cut.moved);
    texts.push_back(groups == 1 ? moved : fmt::format("{} x {}", groups, moved));
    groups *= cut.groups;
  }
  return fmt::format("{} = {} elements{}", fmt::join(texts, " + "), elements_text(cuts.moved()),
                     cuts.is_least ? "" : "; not proven least: too many tensors depend on each other");
}

/// What the best tilings of all cuts together would move.
std::string verified_text(const TilingCuts& cuts, const std::optional<double>& least) {
  if (!least) return "not known: there are too many ways to compare";
  constexpr double rounding = 1e-9;
  const double more = cuts.moved() - *least;
  return fmt::format("{} elements{}", elements_text(*least),
                     more <= rounding * cuts.moved()
                         ? ", no less than one after the other"
                         : fmt::format(", {:.2g} % less than one after the other", 100 * more / cuts.moved()));
}

/// SoyBean's count of what devices and a parameter server exchange (section 2.2).
std::string server_text(const TilingFacts& facts, std::int64_t sites) {
  const ParameterServer& server = *facts.server;
  std::string text =
      fmt::format("data {}, model {}", bytes_text(server.moved(sites, 1)), bytes_text(server.moved(1, sites)));
  if (facts.groups) {
    const std::int64_t devices = sites / *facts.groups;
    text += fmt::format(", hybrid:{}x{} {}", *facts.groups, devices, bytes_text(server.moved(*facts.groups, devices)));
  }
  return fmt::format("{}: {} of parameters, {} of activations, and as much of gradients", text,
                     bytes_text(server.parameters), bytes_text(server.activations));
}

/// Tensors in SoyBean's notation, those that lie alike in one line.
std::string tilings_section(const EinGraph& graph, const TilingFacts& facts, const PlanReport& report,
                            const Folding& folding) {
  const TilingCuts& cuts = *report.plan.cuts;
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const std::size_t shown = folding.shown[v];
    if ((shown != v && facts.tensors[v] == facts.tensors[shown]) || graph.vertices[v].bound.empty()) continue;
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == facts.tensors[v]; });
    if (known == groups.end()) {
      groups.push_back({facts.tensors[v], {graph.vertices[v].name}});
    } else {
      known->second.push_back(graph.vertices[v].name);
    }
  }
  std::string text = fmt::format(
      "\ntilings by {}, the first cut first (R: by rows, C: by columns, P1: along dimension 1, r: replicated)\n",
      report.plan.planner);
  text += fmt::format("  {:<16} {}\n", "moved by cuts", cuts_text(cuts));
  if (report.verified)
    text += fmt::format("  {:<16} {}\n", "all cuts at once", verified_text(cuts, report.verified->least_moved));
  if (facts.server) text += fmt::format("  {:<16} {}\n", "parameter server", server_text(facts, report.plan.sites));
  for (const auto& [tiling, tensors] : groups) text += fmt::format("  {:<16} {}\n", tiling, fmt::join(tensors, ", "));
  return text;
}

std::string totals_text(const EinGraph& graph, const PlanComparison& comparison) {
  const bool has_steps = !comparison.plans.empty() && comparison.plans.front().costs.steps > 1;
  std::string text = has_steps ? "\nof each step but the first; once, what the first takes besides" : "";
  text += fmt::format("\n{:<18} {:>16} {:>16} {:>10} {:>12} {:>10} {:>14} {:>10}\n", "planner", "bound, floats",
                      "floats moved", "bytes", "at most/site", "seconds", "sites computing",
                      has_steps ? "once" : "planned in");
  for (const PlanReport& report : comparison.plans) {
    text += fmt::format("{:<18} {:>16.4g} {:>16.4g} {:>10} {:>12} {:>10} {:>14} {:>10}\n", report.plan.planner,
                        report.costs.bound, report.costs.floats - report.costs.once.floats,
                        bytes_text(report.costs.bytes_of_later_steps()), bytes_text(report.costs.most_received_later()),
                        seconds_text(report.costs.seconds_of_later_steps()), sites_computing_text(graph, report.plan),
                        seconds_text(has_steps ? report.costs.once.seconds : report.seconds));
  }
  for (const PlanRefusal& refusal : comparison.refused)
    text += fmt::format("{:<18} no plan: {}\n", refusal.planner, refusal.reason);
  for (const PlanReport& report : comparison.plans) {
    if (const std::string proof = proof_text(report); !proof.empty())
      text += fmt::format("{}: {}\n", report.plan.planner, proof);
  }
  return text;
}

/// Bytes that cross each link, by each plan.
std::string crossing_text(const std::vector<PlanReport>& reports, const Machine& machine) {
  if (machine.links.empty()) return "";
  std::string text = fmt::format("\n{:<18}", "bytes across links");
  for (const Link& link : machine.links) text += fmt::format(" {:>14}", printable(link.name));
  text += "\n";
  for (const PlanReport& report : reports) {
    text += fmt::format("{:<18}", report.plan.planner);
    for (const auto bytes : report.costs.crossing) text += fmt::format(" {:>14}", bytes_text(bytes));
    text += "\n";
  }
  return text;
}

std::string peaks_text(const EinGraph& graph, const std::vector<PlanReport>& reports, const PlanRequest& request,
                       const SourceText& source) {
  std::string text = "\nmost memory of a site";
  if (request.memory) text += fmt::format(" (limit {})", bytes_text(*request.memory));
  text += "\n";
  for (const PlanReport& report : reports) {
    text += fmt::format("{:<18} {:>9}\n", report.plan.planner, peak_text(graph, report, request, source));
  }
  return text;
}

}  // namespace

std::string planned_text(const Explanation& explained, std::size_t v, const VertexCost& cost, const Folding& folding) {
  const EinGraph& graph = explained.graph();
  const PlanReport& report = explained.plan();
  const VertexPlan& plan = report.plan.vertices[v];
  const CutFacts cut = cut_of(graph.vertices[v], plan);
  const std::string across = link_cuts_text(graph, v, report.plan, explained.request, folding);
  const double share = report.costs.seconds > 0 ? 100 * cost.seconds / report.costs.seconds : 0;
  return fmt::format("{:<24} {:>9} {:>9} {:>5.1f} %   {}", cut_text(cut) + across, bytes_text(cost.bytes()),
                     seconds_text(cost.seconds), share, moves_text(moves_of(graph, v, plan, cost), cut));
}

std::string runner_up_text(const std::string& vertex, const RunnerUpFacts& other, CostKind kind) {
  const std::string cut = cut_text(other.cut);
  if (other.costs_the_same) return fmt::format("      next: {}, which costs the same\n", cut);
  if (other.more < 0) return fmt::format("      next: {}, {} less\n", cut, cost_text(kind, -other.more));
  std::string why = "to compute and reduce it";
  if (other.moving) {
    why = other.to == vertex ? fmt::format("to bring {} here", *other.moving)
                             : fmt::format("to bring it to {}", *other.to);
  }
  if (other.more_there > other.more)
    return fmt::format("      next: {}, {} more: {} {}, and less elsewhere\n", cut, cost_text(kind, other.more),
                       cost_text(kind, other.more_there), why);
  return fmt::format("      next: {}, {} more, of which {} {}\n", cut, cost_text(kind, other.more),
                     cost_text(kind, other.more_there), why);
}

std::string whole_labels_text(const std::vector<WholeLabel>& whole) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const WholeLabel& each : whole) {
    auto known =
        std::find_if(by_reason.begin(), by_reason.end(), [&](const auto& other) { return other.first == each.reason; });
    if (known == by_reason.end()) known = by_reason.insert(known, {each.reason, {}});
    known->second.push_back(each.label);
  }
  std::string text;
  for (const auto& [reason, labels] : by_reason)
    text += fmt::format("      not cut: {}, as {}\n", fmt::join(labels, " "), reason);
  return text;
}

std::string least_text(const VertexCost& cost, const std::optional<double>& least) {
  if (!least || *least == 0 || cost.has_received_before) return "";
  return fmt::format("      {:.2f} times the least that any plan moves\n", static_cast<double>(cost.bytes()) / *least);
}

std::string placed_inputs_text(const Explanation& explained, const std::vector<VertexCost>& costs,
                               const Folding& folding) {
  const EinGraph& graph = explained.graph();
  const Plan& plan = explained.plan().plan;
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
    if (given_plan(vertex)) where += ", as is given";
    if (const std::size_t times = folding.alike[v].size(); times > 1) where = fmt::format("{:<28} x {}", where, times);
    if (is_state(graph, v))
      where += fmt::format("; between steps {} move",
                           costs[v].feedback_bytes == 0 ? "no bytes" : bytes_text(costs[v].feedback_bytes));
    text += fmt::format("  {:<44} {}\n", formula(vertex, graph), where);
  }
  return text;
}

std::string comparison_text(const Explanation& explained, const SourceText& source, const Folding& folding, bool full) {
  const EinGraph& graph = explained.graph();
  const PlanComparison& comparison = explained.comparison;
  const PlanRequest& request = explained.request;
  std::string text;
  for (const PlanReport& report : comparison.plans) {
    if (const std::optional<TilingFacts> tilings = tiling_facts(graph, report.plan, request))
      text += tilings_section(graph, *tilings, report, folding);
  }
  const bool is_compared = full || comparison.plans.size() + comparison.refused.size() > 1;
  if (is_compared) text += totals_text(graph, comparison) + crossing_text(comparison.plans, request.machine);
  return is_compared || request.memory ? text + peaks_text(graph, comparison.plans, request, source) : text;
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
      const VertexPlan& plan = report->plan.vertices[v];
      const CutFacts cut = cut_of(vertex, plan);
      text += fmt::format("      {:<16} {:<24} {:>9} {:>9}   {}\n", report->plan.planner, cut_text(cut),
                          bytes_text(cost->bytes()), seconds_text(cost->seconds),
                          moves_text(moves_of(graph, v, plan, *cost), cut));
    }
    text += fmt::format("      {} of {} costs {:+.4g} bytes, {:+.3g} s\n", second.plan.planner, vertex.name,
                        static_cast<double>(b.bytes() - a.bytes()), b.seconds - a.seconds);
  }
  return text + fmt::format("  {} {} alike\n", counted(same, "vertex", "vertices"), same == 1 ? "is" : "are");
}

}  // namespace einrel
