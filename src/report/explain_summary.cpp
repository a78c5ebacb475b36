#include "report/explain_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "ia/ia_program.h"
#include "plan/planners/default_planner.h"
#include "run/plan_memory.h"
#include "run/plans_on_ranks.h"

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
  for (const VertexId output : program_outputs(graph)) names.push_back(graph[output].name);
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

std::string moved_lines(const Explanation& explained, const std::vector<VertexCost>& costs, const Folding& folding) {
  const PlanCosts& all = explained.plan().costs;
  if (explained.is_on_one_site()) return line("moved", "nothing: all is in one process; --sites N plans for more");
  if (explained.plan().is_in_parts && all.bytes == 0)
    return line("moved", "to disk and back what does not fit: sites are parts that one process computes in turn");
  if (all.bytes == 0) return line("moved", "nothing");
  const std::string most = fmt::format("at most {} to a site", bytes_text(all.most_received()));
  const std::string moved =
      all.steps == 1 ? fmt::format("{}, {}", bytes_text(all.bytes), most)
                     : fmt::format("once {}; each step {}; {} in the first of {}", bytes_text(all.once.bytes),
                                   bytes_text(all.bytes_of_later_steps()), most, all.steps);
  return line("moved", moved) + line("  most of it", bytes_list(most_moved(explained.graph(), folding, costs)));
}

/// "119 ms predicted, of these 10.8 ms moving", then "H_1 79.4 %, Z 20.0 %": where the time goes.
std::string time_lines(const Explanation& explained, const Folding& folding) {
  const PlanCosts& costs = explained.plan().costs;
  std::vector<double> seconds;
  for (const VertexCost& cost : costs.vertices) seconds.push_back(cost.seconds);
  std::string text = fmt::format("{} predicted", seconds_text(costs.seconds - costs.once.seconds));
  if (costs.steps > 1) text += fmt::format(" for each step, and {} once", seconds_text(costs.once.seconds));
  const double moving = costs.moving_seconds();
  const bool has_sites = !explained.is_on_one_site() && !explained.plan().is_in_parts;
  if (has_sites || moving > 0) text += fmt::format(", of these {} moving", seconds_text(moving));
  if (explained.plan().is_in_parts) text += ", without the disk";
  std::vector<std::string> texts;
  for (const auto& [name, share] : slowest(explained.graph(), folding, seconds))
    texts.push_back(fmt::format("{} {:.1f} %", name, share));
  const std::string by_tasks =
      explained.seconds ? line("  by its tasks", seconds_text(*explained.seconds) + ", with what runs together") : "";
  return line("time", text) + by_tasks +
         (texts.empty() ? "" : line("  most of it", fmt::format("{}", fmt::join(texts, ", "))));
}

/// "11.2 ms, task by task; site 3 computes longest, 9.8 ms of them".
std::string simulated_line(const Explanation& explained) {
  if (!explained.simulated) return "";
  const SimulatedRun& run = *explained.simulated;
  const auto busiest = std::max_element(run.computing.begin(), run.computing.end());
  return line("simulated",
              fmt::format("{}, {}; site {} computes longest, {} of them", seconds_text(run.seconds),
                          run.is_by_task ? "task by task" : "vertex by vertex: of so many chunks tasks are not made",
                          busiest - run.computing.begin(), seconds_text(*busiest)));
}

std::string proof_line(const PlanReport& report) {
  const std::string proof = proof_text(report);
  return proof.empty() ? "" : line("  optimal", proof);
}

/// What it costs to keep to what one program over a mesh says.
std::string spmd_line(const Explanation& explained) {
  const std::optional<PlanCosts>& all = explained.plan().unrestricted;
  if (!all) return "";
  const PlanCosts& costs = explained.plan().costs;
  return line("--spmd", fmt::format("{} and {} moved; {} and {} without", seconds_text(costs.seconds),
                                    bytes_text(costs.bytes), seconds_text(all->seconds), bytes_text(all->bytes)));
}

/// What is not known of a plan without its tasks.
std::string tasks_line(const Explanation& explained) {
  if (has_few_chunks(explained.plan().plan)) return "";
  return line("  tasks", fmt::format("not made, of more than {} chunks: what they cut out and put together takes more "
                                     "memory, and a run refuses a plan of more than {} tuples",
                                     most_chunks_looked_at, most_store_tuples));
}

std::string links_line(const Explanation& explained) {
  const std::vector<Link>& links = explained.request.machine.links;
  std::vector<std::string> crossing;
  for (std::size_t l = 0; l < links.size(); ++l)
    crossing.push_back(fmt::format("{} {}", printable(links[l].name), bytes_text(explained.plan().costs.crossing[l])));
  return crossing.empty() ? "" : line("links", fmt::format("{}", fmt::join(crossing, ", ")));
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
  const std::string where = report.plan.sites > 1 ? fmt::format(" on site {}", report.peak.site) : "";
  return fmt::format("{}{}{} while {} is computed: {}", bytes_text(report.peak.bytes), fits ? "" : ", over the limit,",
                     where, with_line(graph.vertices[report.peak.vertex], source),
                     tensors_text(graph, report.peak, source));
}

std::string measured_on_others(const PlanRequest& request) {
  const std::int64_t ranks = request.machine.ranks;
  if (ranks == 0 || ranks == request.sites) return "";
  return "measured on " + counted(static_cast<std::size_t>(ranks), "rank");
}

std::string summary_text(const Explanation& explained, const std::vector<VertexCost>& costs, const Folding& folding,
                         const SourceText& source) {
  std::string text = head_lines(*explained.compiled, folding);
  if (!explained.has_plan()) return text;
  const PlanRequest& request = explained.request;
  const std::string& planner = explained.plan().plan.planner;
  const std::string least = planner == default_planner ? fmt::format(", least {}", name_of(request.cost)) : "";
  const std::string measured = measured_on_others(request);
  const std::string sites = explained.plan().is_in_parts
                                ? counted(static_cast<std::size_t>(request.sites), "part") + " of one process,"
                                : counted(static_cast<std::size_t>(request.sites), "site");
  text += line("plan", fmt::format("by {} for {} on machine {}{}{}", planner, sites, printable(request.machine.name),
                                   measured.empty() ? "" : ", " + measured, least));
  text +=
      time_lines(explained, folding) + simulated_line(explained) + proof_line(explained.plan()) + spmd_line(explained);
  text += line("peak memory", peak_text(explained.graph(), explained.plan(), request, source));
  text += tasks_line(explained);
  return text + moved_lines(explained, costs, folding) + links_line(explained);
}

}  // namespace einrel
