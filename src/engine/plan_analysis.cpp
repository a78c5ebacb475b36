#include "engine/plan_analysis.h"

#include <fmt/format.h>

#include <numeric>

#include "base/text.h"

namespace einrel {
namespace {

std::string bytes_of(std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

}  // namespace

std::string analysis_text(const Compiled& compiled, const PlanReport& plan, const PlanRunReport& run) {
  const EinGraph& graph = compiled.graph;
  std::string text =
      fmt::format("\n{:<24} {:>12} {:>12} {:>12}\n", "predicted and measured", "bytes", "predicted", "measured");
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (std::holds_alternative<Input>(graph.vertices[v].op)) continue;
    text += fmt::format("  {:<22} {:>12} {:>12} {:>12}\n", printable(graph.vertices[v].name, 22),
                        bytes_of(plan.costs.vertices[v].bytes()), seconds_text(plan.costs.vertices[v].seconds),
                        seconds_text(v < run.vertex_seconds.size() ? run.vertex_seconds[v] : 0));
  }
  text += fmt::format("  {:<22} {:>12} {:>12} {:>12}   planned in {}, {}\n", "in all", bytes_of(plan.costs.bytes),
                      seconds_text(plan.costs.seconds), seconds_text(run.seconds), seconds_text(plan.seconds),
                      counted(run.tasks, "task"));
  if (!run.is_counted) {
    text += fmt::format("  nothing went over a network: the {} {} memory\n", counted(run.received.size(), "site"),
                        run.received.size() == 1 ? "has one" : "share");
    return text;
  }
  const std::int64_t moved = std::accumulate(run.received.begin(), run.received.end(), std::int64_t{0});
  text += fmt::format("  bytes received, predicted {} and counted {}; by rank:", plan.costs.bytes, moved);
  for (const std::int64_t bytes : run.received) text += fmt::format(" {}", bytes);
  return text + "\n";
}

}  // namespace einrel
