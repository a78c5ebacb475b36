#include "run/recompute.h"

#include <chrono>
#include <functional>
#include <limits>
#include <utility>

#include "einsum/graph/vertex_facts.h"
#include "exec/memory/alive.h"
#include "exec/tasks/read_late.h"
#include "plan/cost/least_memory.h"
#include "plan/planners/default_planner.h"
#include "plan/refine/recompute.h"
#include "run/choose_plan.h"

namespace einrel {
namespace {

double bytes_of_all(const EinGraph& graph) {
  double all = 0;
  for (const Vertex& vertex : graph.vertices)
    all += static_cast<double>(element_count(vertex.bound)) * static_cast<double>(size_of(vertex.dtype));
  return all;
}

Compiled compiled_as(const Compiled& compiled, const Recomputed& recomputed) {
  Compiled made = compiled;
  for (std::size_t v = 0; v < recomputed.graph.vertices.size(); ++v) {
    const Vertex& vertex = recomputed.graph.vertices[v];
    const std::string& name = compiled.graph.vertices[recomputed.origin[v]].name;
    if (vertex.name != name) made.recomputed.push_back({name, flops(vertex)});
  }
  made.graph = recomputed.graph;
  verify(made.graph);
  return made;
}

/// With the record of the pass, which began then.
Compiled recorded(Compiled made, const EinGraph& before, std::chrono::steady_clock::time_point start) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  made.passes.push_back({recompute_pass, before.vertices.size(), made.graph.vertices.size(), seconds});
  if (made.pass_options.are_told) made.passes.back().changes = changes_between(before, made.graph);
  return made;
}

/// Keeps less and less until `fits` says that it is little enough, from where `too_much` is that many times more than
/// there may be.
std::optional<Compiled> recomputed_until(const Compiled& compiled, double too_much,
                                         const std::function<bool(const Compiled&, const Recomputed&)>& fits) {
  const auto start = std::chrono::steady_clock::now();
  double all = 0;
  for (const Vertex& vertex : compiled.graph.vertices) all += flops(vertex);
  double left = all;
  double target = static_cast<double>(most_kept_bytes(compiled.graph)) / too_much;
  Recomputed now = in_lean_order(compiled.graph);
  constexpr int most_attempts = 12;
  constexpr double less = 0.88;
  for (int attempt = 0; attempt < most_attempts; ++attempt, target *= less) {
    std::optional<Recomputed> found = recompute_within(std::move(now), static_cast<std::int64_t>(target), left);
    if (!found) return std::nullopt;
    now = *std::move(found);
    Compiled made = compiled_as(compiled, now);
    if (fits(made, now)) return recorded(std::move(made), compiled.graph, start);
    left = all;
    for (const RecomputedTensor& again : made.recomputed) left -= again.flops;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Compiled> recomputed_in_process(const Compiled& compiled, std::int64_t limit, std::size_t threads) {
  const auto tasks_in_order = [](const Compiled& program) {
    PlannedTasks tasks = choose(program, {}, SourceText(program.name, ""), {}).tasks;
    read_late(tasks.graph, std::numeric_limits<std::int64_t>::max());
    return tasks;
  };
  constexpr double little = 8 << 20;  // chunks may always take as much
  if (skips(compiled, recompute_pass) || bytes_of_all(compiled.graph) <= little) return std::nullopt;
  double too_much = 1;
  {
    const PlannedTasks tasks = tasks_in_order(compiled);
    if (fits_in_order(tasks, limit, threads)) return std::nullopt;
    too_much = static_cast<double>(most_live_bytes(tasks.graph)) / static_cast<double>(limit);
  }
  return recomputed_until(compiled, std::max(too_much, 1.0), [&](const Compiled& made, const Recomputed&) {
    return fits_in_order(tasks_in_order(made), limit, threads);
  });
}

std::optional<Compiled> recomputed_on_sites(const Compiled& compiled, const PlanRequest& request) {
  if (!request.memory || skips(compiled, recompute_pass)) return std::nullopt;
  if (least_input_bytes(compiled.graph, request.sites) > *request.memory) return std::nullopt;
  PlanRequest without_limit = request;
  without_limit.memory.reset();
  const PlanReport free = plan_with(compiled, default_planner, without_limit);
  constexpr double for_bookkeeping = 0.95;
  const double most = for_bookkeeping * static_cast<double>(*request.memory);
  return recomputed_until(compiled, std::max(static_cast<double>(free.peak.bytes) / most, 1.0),
                          [&](const Compiled& made, const Recomputed& recomputed) {
                            Plan plan = free.plan;
                            plan.vertices.clear();
                            for (const std::size_t v : recomputed.origin)
                              plan.vertices.push_back(free.plan.vertices[v]);
                            return static_cast<double>(peak_of(made.graph, plan).bytes) <= most;
                          });
}

std::optional<Compiled> recomputed_for(const Compiled& compiled, const PlanRequest& request, std::size_t threads,
                                       const Job& job) {
  if (!request.memory) return std::nullopt;
  if (job.is_started) {
    if (2 * bytes_of_all(compiled.graph) <= static_cast<double>(*request.memory))
      return std::nullopt;  // copies and partial results come on top
    const bool has_plan = std::holds_alternative<PlanReport>(try_plan(compiled, default_planner, request));
    return has_plan ? std::nullopt : recomputed_on_sites(compiled, request);
  }
  if (request.sites > 1) return std::nullopt;
  return recomputed_in_process(compiled, *request.memory, threads);
}

}  // namespace einrel
