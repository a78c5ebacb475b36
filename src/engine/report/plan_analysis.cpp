#include "engine/report/plan_analysis.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "einsum/vertex_facts.h"
#include "engine/report/explain_summary.h"

namespace einrel {
namespace {

std::string bytes_by_rank(const std::vector<std::int64_t>& of_ranks) {
  std::string text;
  for (const std::int64_t bytes : of_ranks) text += (text.empty() ? "" : ", ") + bytes_text(bytes);
  return text + (of_ranks.size() > 1 ? " by rank" : "");
}

}  // namespace

std::string analysis_text(const Compiled& compiled, const PlanReport& plan, const PlanRequest& request,
                          const PlanRunReport& run) {
  const EinGraph& graph = compiled.graph;
  std::string text = fmt::format("\n{:<24} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "predicted | measured",
                                 "bytes |", "bytes", "seconds |", "seconds", "memory |", "memory");
  const auto line = [](const std::string& name, const std::array<std::string, 6>& cells) {
    return fmt::format("  {:<22} {:>10} | {:>12} {:>10} | {:>12} {:>10} | {:>12}", name, cells[0], cells[1], cells[2],
                       cells[3], cells[4], cells[5]);
  };
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v])) continue;
    text +=
        line(printable(graph.vertices[v].name, 22),
             {bytes_text(plan.costs.vertices[v].bytes()), run.is_counted ? bytes_text(run.vertex_bytes[v]) : "shared",
              seconds_text(plan.costs.vertices[v].seconds), seconds_text(run.vertex_seconds[v]),
              bytes_text(plan.peak.by_vertex[v]), bytes_text(run.vertex_live[v])}) +
        "\n";
  }
  text += line("in all", {bytes_text(plan.costs.bytes), run.is_counted ? bytes_text(run.moved()) : "shared",
                          seconds_text(plan.costs.seconds), seconds_text(run.seconds), bytes_text(plan.peak.bytes),
                          bytes_text(run.most_live())});
  text += fmt::format(
      "\n  planned in {}, {}; memory is that of tensors alive (some maybe on disk), predicted for the site that needs "
      "most, measured {}\n",
      seconds_text(plan.seconds), counted(run.tasks, "task"),
      run.is_counted ? "on the rank that had most" : "for all sites together, in this process");
  const std::string measured = measured_on_others(request);
  if (!measured.empty())
    text +=
        fmt::format("  seconds predicted by figures of machine {}, {}\n", printable(request.machine.name), measured);
  text += fmt::format(
      "  peak memory of the process, with everything: {}; of it pages of files (mapped inputs, the program): {}\n",
      bytes_by_rank(run.peak_bytes), bytes_by_rank(run.file_bytes));
  if (run.spilled > 0) {
    text += fmt::format("  written to disk for want of memory: {}; read back: {}\n", bytes_text(run.spilled),
                        bytes_text(run.read_back));
  }
  if (!run.is_counted) return text + "  sites share this process's memory: what is predicted to move did not\n";
  text += fmt::format("  bytes received: predicted {}, counted {}; by rank", plan.costs.bytes, run.moved());
  for (const std::int64_t bytes : run.received) text += fmt::format(" {}", bytes);
  return text + "\n";
}

}  // namespace einrel
