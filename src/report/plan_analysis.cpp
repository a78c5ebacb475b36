#include "report/plan_analysis.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "report/explain_summary.h"

namespace einrel {
namespace {

std::string bytes_by_rank(const std::vector<std::int64_t>& of_ranks) {
  std::string text;
  for (const std::int64_t bytes : of_ranks) text += (text.empty() ? "" : ", ") + bytes_text(bytes);
  return text + (of_ranks.size() > 1 ? " by rank" : "");
}

/// Bytes that came from other processes, where there are any.
std::string received_text(const PlanRunReport& run, std::int64_t bytes) {
  return run.is_counted ? bytes_text(bytes) : "shared";
}

/// What the table is of; `predicted` says of which site memory is predicted.
std::string planned_line(const PlanRunReport& run, double plan_seconds, std::string_view predicted) {
  return fmt::format("\n  planned in {}, {}; memory is that of tensors alive (some maybe on disk), {}measured {}\n",
                     seconds_text(plan_seconds), counted(run.tasks, "task"), predicted,
                     run.is_counted ? "on the rank that had most" : "for all sites together, in this process");
}

/// What was measured of the processes: memory, chunks on disk, bytes received beside those predicted.
std::string processes_text(const PlanRunReport& run, std::int64_t predicted_bytes, std::int64_t predicted_once = 0) {
  std::string text = fmt::format(
      "  peak memory of the process, with everything: {}; of it pages of files (mapped inputs, the program): {}\n",
      bytes_by_rank(run.peak_bytes), bytes_by_rank(run.file_bytes));
  if (run.spilled > 0) {
    text += fmt::format("  written to disk for want of memory: {}; read back: {}\n", bytes_text(run.spilled),
                        bytes_text(run.read_back));
  }
  if (!run.is_counted) return text + "  sites share this process's memory: what is predicted to move did not\n";
  text += fmt::format("  bytes received: predicted {}, counted {}; by rank", predicted_bytes, run.moved());
  for (const std::int64_t bytes : run.received) text += fmt::format(" {}", bytes);
  if (predicted_once > 0)
    text +=
        fmt::format("; of these only in the first step: predicted {}, counted {}", predicted_once, run.moved_once());
  return text + "\n";
}

std::string analysis_of_vertices(const Explanation& explained, const PlanRunReport& run) {
  const EinGraph& graph = explained.graph();
  const PlanReport& plan = explained.plan();
  const PlanRequest& request = explained.request;
  std::string text = fmt::format("\n{:<24} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "predicted | measured",
                                 "bytes |", "bytes", "seconds |", "seconds", "memory |", "memory");
  const auto line = [](const std::string& name, const std::array<std::string, 6>& cells) {
    return fmt::format("  {:<22} {:>10} | {:>12} {:>10} | {:>12} {:>10} | {:>12}", name, cells[0], cells[1], cells[2],
                       cells[3], cells[4], cells[5]);
  };
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v])) continue;
    text += line(printable(graph.vertices[v].name, 22),
                 {bytes_text(plan.costs.vertices[v].bytes()), received_text(run, run.vertex_bytes[v]),
                  seconds_text(plan.costs.vertices[v].seconds), seconds_text(run.vertex_seconds[v]),
                  bytes_text(plan.peak.by_vertex[v]), bytes_text(run.vertex_live[v])}) +
            "\n";
  }
  text +=
      line("in all", {bytes_text(plan.costs.bytes), received_text(run, run.moved()), seconds_text(plan.costs.seconds),
                      seconds_text(run.seconds), bytes_text(plan.peak.bytes), bytes_text(run.most_live())});
  text += planned_line(run, plan.seconds, "predicted for the site that needs most, ");
  const std::string measured = measured_on_others(request);
  if (!measured.empty())
    text +=
        fmt::format("  seconds predicted by figures of machine {}, {}\n", printable(request.machine.name), measured);
  return text + processes_text(run, plan.costs.bytes, plan.costs.once.bytes);
}

std::string analysis_of_relations(const AlgebraFacts& facts, const std::vector<std::int64_t>& bytes,
                                  const PlanRunReport& run) {
  static constexpr std::size_t column = 60;
  const auto line = [](const std::string& name, std::int64_t predicted, const std::string& moved, double seconds,
                       std::int64_t memory) {
    return fmt::format("  {:<{}} {:>12} | {:>10} {:>12} {:>12}\n", name, column, bytes_text(predicted), moved,
                       seconds_text(seconds), bytes_text(memory));
  };
  std::string text = fmt::format("\n{:<{}} {:>12} | {:>10} {:>12} {:>12}\n", "predicted | measured", column + 2,
                                 "bytes", "bytes", "seconds", "memory");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text += line(printable(facts.found().operations[i].text, column), bytes[i], received_text(run, run.vertex_bytes[i]),
                 run.vertex_seconds[i], run.vertex_live[i]);
  }
  const std::int64_t predicted = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  text += line("in all", predicted, received_text(run, run.moved()), run.seconds, run.most_live());
  return text + planned_line(run, facts.plan_seconds, "") + "  operations that run together stand at one of them\n" +
         processes_text(run, predicted);
}

}  // namespace

std::string analysis_text(const RunOutcome& run) {
  if (run.explained.has_plan()) return analysis_of_vertices(run.explained, run.report);
  return analysis_of_relations(*run.explained.algebra, std::get<ByRelations>(run.chosen.how).bytes, run.report);
}

}  // namespace einrel
