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
  std::string text = fmt::format("\n{:<24} {:>12} {:>12} {:>12} {:>12}\n", "predicted | measured", "bytes |", "bytes",
                                 "seconds |", "seconds");
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (std::holds_alternative<Input>(graph.vertices[v].op)) continue;
    text +=
        fmt::format("  {:<22} {:>10} | {:>12} {:>10} | {:>12}\n", printable(graph.vertices[v].name, 22),
                    bytes_of(plan.costs.vertices[v].bytes()), run.is_counted ? bytes_of(run.vertex_bytes[v]) : "shared",
                    seconds_text(plan.costs.vertices[v].seconds), seconds_text(run.vertex_seconds[v]));
  }
  const std::int64_t moved = std::accumulate(run.received.begin(), run.received.end(), std::int64_t{0});
  text += fmt::format("  {:<22} {:>10} | {:>12} {:>10} | {:>12}   planned in {}, {}\n", "in all",
                      bytes_of(plan.costs.bytes), run.is_counted ? bytes_of(moved) : "shared",
                      seconds_text(plan.costs.seconds), seconds_text(run.seconds), seconds_text(plan.seconds),
                      counted(run.tasks, "task"));
  text += fmt::format("  peak memory: predicted {} for tensors of a site; measured, with everything, ",
                      bytes_of(plan.peak.bytes));
  for (std::size_t rank = 0; rank < run.peak_bytes.size(); ++rank)
    text += fmt::format("{}{}", rank == 0 ? "" : ", ", bytes_of(run.peak_bytes[rank]));
  text += run.peak_bytes.size() > 1 ? " by rank\n" : "\n";
  if (!run.is_counted) return text + "  sites share this process's memory: what is predicted to move did not\n";
  text += fmt::format("  bytes received: predicted {}, counted {}; by rank", plan.costs.bytes, moved);
  for (const std::int64_t bytes : run.received) text += fmt::format(" {}", bytes);
  return text + "\n";
}

}  // namespace einrel
