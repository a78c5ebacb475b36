#include "engine/report/explain_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "einsum/vertex_facts.h"
#include "engine/plan_memory.h"
#include "plan/default_planner.h"

namespace einrel {
namespace {

std::string line(std::string_view title, const std::string& text) { return fmt::format("  {:<11} {}\n", title, text); }

/// "W 16.8 MB, X 16.8 MB, V 4.19 MB"
std::string bytes_list(const std::vector<Amount>& amounts) {
  std::vector<std::string> texts;
  for (const auto& [name, bytes] : amounts) texts.push_back(fmt::format("{} {}", name, bytes_text(bytes)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// "A, B, ... and 5 more"
std::string some_of(std::vector<std::string> names) {
  constexpr std::size_t most = 8;
  const std::size_t count = names.size();
  names.resize(std::min(most, count));
  return fmt::format("{}{}", fmt::join(names, ", "), count > most ? fmt::format(" and {} more", count - most) : "");
}

std::string outputs_line(const EinGraph& graph) {
  std::vector<std::string> names;
  for (const VertexId output : said_outputs(graph)) names.push_back(graph[output].name);
  return line("outputs", some_of(std::move(names)));
}

/// "A, B instead of being kept: 12 Mflop, 3.1 % of all"
std::string recomputed_line(const Compiled& compiled, double all) {
  if (compiled.recomputed.empty()) return "";
  std::vector<std::string> names;
  double more = 0;
  for (const auto& [tensor, flops] : compiled.recomputed) {
    more += flops;
    if (std::find(names.begin(), names.end(), tensor) == names.end()) names.push_back(tensor);
  }
  return line("recomputed", fmt::format("{} instead of being kept: {}, {:.1f} % of all", some_of(std::move(names)),
                                        flops_text(more), all > 0 ? 100 * more / all : 0));
}

/// "W, V; their initial values take 12 kflop, once"
std::string states_line(const Compiled& compiled) {
  if (compiled.graph.steps.states.empty()) return "";
  std::vector<std::string> names;
  for (const State& state : compiled.graph.steps.states) names.push_back(compiled.graph[state.now].name);
  double once = 0;
  if (compiled.initial) {
    for (const Vertex& vertex : compiled.initial->graph.vertices) once += flops(vertex);
  }
  return line("states", fmt::format("{}; their initial values take {}, once", some_of(names), flops_text(once)));
}

std::string head_lines(const Compiled& compiled, const Folding& folding) {
  const ProgramFacts facts = facts_of(compiled, folding);
  std::string inputs = "none";
  if (facts.inputs > 0) inputs = bytes_text(facts.input_bytes);
  if (!facts.largest_inputs.empty()) inputs += fmt::format("; most {}", bytes_list(facts.largest_inputs));
  std::string operations = flops_text(facts.flops);
  if (facts.flops_as_written > facts.flops)
    operations += fmt::format("; products multiplied as they are written, {}", flops_text(facts.flops_as_written));
  return fmt::format("{}: {}, {}\n", printable(compiled.name), counted(facts.inputs, "input"),
                     counted(facts.vertices, "vertex", "vertices")) +
         line("inputs", inputs) + states_line(compiled) + outputs_line(compiled.graph) +
         line("operations", operations) + recomputed_line(compiled, facts.flops);
}

std::string moved_lines(const EinGraph& graph, const PlanReport& report, const std::vector<VertexCost>& costs,
                        const Folding& folding) {
  if (report.costs.bytes == 0) return line("moved", "nothing");
  return line("moved", fmt::format("{}, at most {} to a site", bytes_text(report.costs.bytes),
                                   bytes_text(report.costs.most_received()))) +
         line("  most of it", bytes_list(most_moved(graph, folding, costs)));
}

/// Then "H_1 79.4 %, Z 20.0 %": where the time goes.
std::string time_lines(const std::string& text, const std::vector<Amount>& shares) {
  std::vector<std::string> texts;
  for (const auto& [name, share] : shares) texts.push_back(fmt::format("{} {:.1f} %", name, share));
  return line("time", text) + (shares.empty() ? "" : line("  most of it", fmt::format("{}", fmt::join(texts, ", "))));
}

}  // namespace

std::string group_text(const EinGraph& graph, const FoldedGroup& group) {
  return fmt::format("  {} x {}: {} to {}, and so on to {}; figures are of all together\n",
                     counted(group.vertices.size(), "vertex", "vertices"), group.times,
                     graph.vertices[group.vertices.front()].name, graph.vertices[group.vertices.back()].name,
                     graph.vertices[group.last].name);
}

const FoldedGroup* group_at(const Folding& folding, std::size_t vertex) {
  const auto found = std::find_if(folding.groups.begin(), folding.groups.end(),
                                  [&](const FoldedGroup& group) { return group.vertices.front() == vertex; });
  return found == folding.groups.end() ? nullptr : &*found;
}

bool is_in_group(const Folding& folding, std::size_t vertex) {
  return std::any_of(folding.groups.begin(), folding.groups.end(), [&](const FoldedGroup& group) {
    return group.vertices.front() <= vertex && vertex <= group.vertices.back();
  });
}

std::string peak_text(const EinGraph& graph, const PlanReport& report, const PlanRequest& request,
                      const SourceText& source) {
  const bool fits = !request.memory || report.peak.bytes <= *request.memory;
  return fmt::format("{}{} on site {} while {} is computed: {}", bytes_text(report.peak.bytes),
                     fits ? "" : ", over the limit,", report.peak.site,
                     with_line(graph.vertices[report.peak.vertex], source), tensors_text(graph, report.peak, source));
}

std::string summary_text(const Compiled& compiled, const std::vector<std::optional<VertexKernel>>& kernels,
                         const MemoryForecast& memory, const Folding& folding, const SourceText& source) {
  const EinGraph& graph = compiled.graph;
  std::vector<double> seconds(graph.vertices.size(), 0);
  double all = 0;
  for (std::size_t v = 0; v < seconds.size(); ++v) {
    if (kernels[v]) seconds[v] = kernels[v]->seconds;
    all += seconds[v];
  }
  std::string text = head_lines(compiled, folding);
  text += line("sites", "1: this process, one vertex after the other; nothing moves. --sites N plans for more");
  text += time_lines(fmt::format("{} predicted on one thread", seconds_text(all)), slowest(graph, folding, seconds));
  std::string peak = bytes_text(memory.peak_bytes);
  if (!graph.vertices.empty()) {
    const Vertex& vertex = graph.vertices[memory.peak_vertex];
    peak += fmt::format(" while {} is computed", with_line(vertex, source));
  }
  return text + line("peak memory", peak);
}

std::string measured_on_others(const PlanRequest& request) {
  const std::int64_t ranks = request.machine.ranks;
  if (ranks == 0 || ranks == request.sites) return "";
  return "measured on " + counted(static_cast<std::size_t>(ranks), "rank");
}

std::string summary_text(const Compiled& compiled, const PlanReport& report, const std::vector<VertexCost>& costs,
                         const PlanRequest& request, const Folding& folding, const SourceText& source) {
  const EinGraph& graph = compiled.graph;
  std::vector<double> seconds;
  double moving = 0;
  for (const VertexCost& cost : report.costs.vertices) {
    seconds.push_back(cost.seconds);
    moving += cost.moving;
  }
  std::string text = head_lines(compiled, folding);
  const std::string least =
      report.plan.planner == default_planner ? fmt::format(", least {}", name_of(request.cost)) : "";
  const std::string measured = measured_on_others(request);
  text += line("plan", fmt::format("by {} for {} on machine {}{}{}", report.plan.planner,
                                   counted(static_cast<std::size_t>(request.sites), "site"),
                                   printable(request.machine.name), measured.empty() ? "" : ", " + measured, least));
  text += time_lines(
      fmt::format("{} predicted, of these {} moving", seconds_text(report.costs.seconds), seconds_text(moving)),
      slowest(graph, folding, seconds));
  text += line("peak memory", peak_text(graph, report, request, source));
  text += moved_lines(graph, report, costs, folding);
  std::vector<std::string> crossing;
  for (std::size_t l = 0; l < request.machine.links.size(); ++l)
    crossing.push_back(
        fmt::format("{} {}", printable(request.machine.links[l].name), bytes_text(report.costs.crossing[l])));
  return crossing.empty() ? text : text + line("links", fmt::format("{}", fmt::join(crossing, ", ")));
}

}  // namespace einrel
