#include "engine/report/explain_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/text.h"
#include "einsum/vertex_facts.h"
#include "engine/memory.h"
#include "engine/plan_memory.h"
#include "engine/report/explain.h"

namespace einrel {
namespace {

/// What a line names the largest of.
struct Amount {
  std::string name;
  double value = 0;
};

std::string line(std::string_view title, const std::string& text) { return fmt::format("  {:<11} {}\n", title, text); }

/// "W 16.8 MB, X 16.8 MB, V 4.19 MB": the three largest.
std::string largest_text(std::vector<Amount> amounts, const std::function<std::string(double)>& value_text) {
  constexpr std::size_t most = 3;
  std::stable_sort(amounts.begin(), amounts.end(), [](const Amount& a, const Amount& b) { return a.value > b.value; });
  std::vector<std::string> texts;
  for (const Amount& amount : amounts) {
    if (texts.size() < most && amount.value > 0)
      texts.push_back(fmt::format("{} {}", amount.name, value_text(amount.value)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string large_bytes_text(std::vector<Amount> amounts) {
  return largest_text(std::move(amounts), [](double bytes) { return bytes_text(bytes); });
}

/// "H_1 79.4 %, Z 20.0 %": where `seconds` go, per vertex.
std::string shares_text(const EinGraph& graph, const Folding& folding, const std::vector<double>& seconds) {
  double all = 0;
  for (const double each : seconds) all += each;
  std::vector<Amount> amounts;
  for (std::size_t v = 0; v < seconds.size(); ++v) {
    if (folding.shown[v] != v) continue;
    Amount amount{folded_name(graph, folding, v), 0};
    for (const std::size_t other : folding.alike[v]) amount.value += seconds[other];
    amounts.push_back(std::move(amount));
  }
  return largest_text(std::move(amounts), [all](double each) { return fmt::format("{:.1f} %", 100 * each / all); });
}

std::string inputs_line(const EinGraph& graph, const Folding& folding) {
  std::vector<Amount> amounts;
  double bytes = 0;
  std::size_t count = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (!is_input(vertex)) continue;
    const double each = tensor_bytes(vertex);
    bytes += each;
    ++count;
    if (folding.shown[v] != v) continue;
    amounts.push_back({folded_name(graph, folding, v), each * static_cast<double>(folding.alike[v].size())});
  }
  if (count == 0) return line("inputs", "none");
  return line("inputs", fmt::format("{}; most {}", bytes_text(bytes), large_bytes_text(std::move(amounts))));
}

std::string outputs_line(const EinGraph& graph) {
  std::vector<std::string> names;
  for (const VertexId output : graph.outputs) names.push_back(graph[output].name);
  constexpr std::size_t most = 8;
  const std::size_t count = names.size();
  names.resize(std::min(most, count));
  return line("outputs", fmt::format("{}{}", fmt::join(names, ", "),
                                     count > most ? fmt::format(" and {} more", count - most) : ""));
}

std::string operations_line(const Compiled& compiled) {
  double total = 0;
  for (const Vertex& vertex : compiled.graph.vertices) total += flops(vertex);
  double as_written = total;
  for (const OrderedContraction& contraction : compiled.contractions)
    as_written += contraction.flops_as_written - contraction.flops_ordered;
  std::string text = flops_text(total);
  if (as_written > total) text += fmt::format("; products multiplied as they are written, {}", flops_text(as_written));
  return line("operations", text);
}

std::string head_lines(const Compiled& compiled, const Folding& folding) {
  const EinGraph& graph = compiled.graph;
  const auto inputs = static_cast<std::size_t>(std::count_if(graph.vertices.begin(), graph.vertices.end(),
                                                             [](const Vertex& vertex) { return is_input(vertex); }));
  const std::size_t vertices = graph.vertices.size() - inputs;
  return fmt::format("{}: {}, {}\n", printable(compiled.name), counted(inputs, "input"),
                     vertices == 1 ? "1 vertex" : fmt::format("{} vertices", vertices)) +
         inputs_line(graph, folding) + outputs_line(graph) + operations_line(compiled);
}

/// "X for H_1 16.8 MB, partial results of Z 4.19 MB": what moves most.
std::string causes_text(const EinGraph& graph, const PlanReport& report, const Folding& folding) {
  std::vector<Amount> amounts;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> places;  // by vertex that is shown, and operand
  const auto add = [&](std::size_t v, std::size_t operand, const std::string& name, std::int64_t bytes) {
    const auto [place, is_new] = places.try_emplace({folding.shown[v], operand}, amounts.size());
    if (is_new) amounts.push_back({name, 0});
    amounts[place->second].value += static_cast<double>(bytes);
  };
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const VertexCost& cost = report.costs.vertices[v];
    const std::size_t shown = folding.shown[v];
    const std::string name = folded_name(graph, folding, shown);
    for (std::size_t o = 0; o < cost.operand_bytes.size(); ++o) {
      const std::string& operand = graph[graph.vertices[shown].inputs[o]].name;
      add(v, o, fmt::format("{} for {}", operand, name), cost.operand_bytes[o]);
    }
    add(v, cost.operand_bytes.size(), fmt::format("partial results of {}", name), cost.reduced_bytes);
  }
  return large_bytes_text(std::move(amounts));
}

std::string moved_line(const EinGraph& graph, const PlanReport& report, const Folding& folding) {
  if (report.costs.bytes == 0) return line("moved", "nothing");
  const std::int64_t busiest = *std::max_element(report.costs.received.begin(), report.costs.received.end());
  return line("moved", fmt::format("{}, at most {} to a site", bytes_text(report.costs.bytes), bytes_text(busiest))) +
         line("  most of it", causes_text(graph, report, folding));
}

std::string time_lines(const std::string& text, const std::string& shares) {
  return line("time", text) + (shares.empty() ? "" : line("  most of it", shares));
}

}  // namespace

std::string folded_name(const EinGraph& graph, const Folding& folding, std::size_t vertex) {
  const std::size_t times = folding.alike[vertex].size();
  const std::string& name = graph.vertices[vertex].name;
  return times > 1 ? fmt::format("{} x {}", name, times) : name;
}

std::string group_text(const EinGraph& graph, const FoldedGroup& group) {
  return fmt::format("  {} x {}: {} to {}, and so on to {}; figures are of all together\n",
                     group.vertices.size() == 1 ? "1 vertex" : fmt::format("{} vertices", group.vertices.size()),
                     group.times, graph.vertices[group.vertices.front()].name,
                     graph.vertices[group.vertices.back()].name, graph.vertices[group.last].name);
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

std::string summary_text(const Compiled& compiled, const std::vector<std::optional<VertexKernel>>& kernels,
                         const Folding& folding, const SourceText& source) {
  const EinGraph& graph = compiled.graph;
  std::vector<double> seconds(graph.vertices.size(), 0);
  double all = 0;
  for (std::size_t v = 0; v < seconds.size(); ++v) {
    if (kernels[v]) seconds[v] = kernels[v]->seconds;
    all += seconds[v];
  }
  std::string text = head_lines(compiled, folding);
  text += line("sites", "1: this process, one vertex after the other; nothing moves. --sites N plans for more");
  text +=
      time_lines(fmt::format("{} predicted on one thread", seconds_text(all)), shares_text(graph, folding, seconds));
  const MemoryForecast memory = forecast_memory(compiled);
  std::string peak = bytes_text(memory.peak_bytes);
  if (!graph.vertices.empty()) {
    const Vertex& vertex = graph.vertices[memory.peak_vertex];
    peak += fmt::format(" while {} (line {}) is computed", vertex.name, source.locate(vertex.where.begin).line);
  }
  return text + line("peak memory", peak);
}

std::string summary_text(const Compiled& compiled, const PlanReport& report, const PlanRequest& request,
                         const Folding& folding, const SourceText& source) {
  const EinGraph& graph = compiled.graph;
  std::vector<double> seconds;
  double moving = 0;
  for (const VertexCost& cost : report.costs.vertices) {
    seconds.push_back(cost.seconds);
    moving += cost.moving;
  }
  std::string text = head_lines(compiled, folding);
  const std::string least = report.plan.planner == "eindecomp" ? fmt::format(", least {}", name_of(request.cost)) : "";
  text += line("plan", fmt::format("by {} for {} on machine {}{}", report.plan.planner,
                                   counted(static_cast<std::size_t>(request.sites), "site"),
                                   printable(request.machine.name), least));
  text += time_lines(
      fmt::format("{} predicted, of these {} moving", seconds_text(report.costs.seconds), seconds_text(moving)),
      shares_text(graph, folding, seconds));
  text += line("peak memory", peak_text(graph, report, request, source));
  return text + moved_line(graph, report, folding);
}

}  // namespace einrel
