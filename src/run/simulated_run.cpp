#include "run/simulated_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "run/forecast_seconds.h"

namespace einrel {
namespace {

/// Where there are links between groups of sites, SimGrid has a table of routes from each site to each.
constexpr std::int64_t most_sites_with_links = 4096;

void check_speeds(const SiteSpeeds& speeds, std::int64_t sites) {
  if (speeds.empty() || speeds.rbegin()->first < sites) return;
  throw UserError(fmt::format("--slow names site {}, but the plan has {}: sites 0 to {}", speeds.rbegin()->first,
                              sites == 1 ? "one site" : fmt::format("{} sites", sites), sites - 1));
}

/// When tasks ran, as a run reports it.
PlanRunReport report_of(const TaskGraph& graph, const std::vector<SimulatedTimes>& times) {
  PlanRunReport report;
  report.spans.resize(static_cast<std::size_t>(graph.sites));
  report.messages.resize(static_cast<std::size_t>(graph.sites));
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    const auto site = static_cast<std::size_t>(site_of(graph, task));
    const auto [begin, end] = times[t];
    if (!std::holds_alternative<Send>(task.op)) {
      report.spans[site].push_back({.task = t, .start = begin, .seconds = end - begin});
      continue;
    }
    const auto from = static_cast<std::size_t>(graph[task.reads.front()].site);
    for (const std::size_t side : {from, site})
      report.messages[side].push_back({.task = t, .start = begin, .end = end});
  }
  return report;
}

SimulatedRun simulate_tasks(const EinGraph& graph, const PlannedTasks& tasks, const Machine& machine,
                            const SimulationRequest& request) {
  check_speeds(request.speeds, tasks.graph.sites);
  // Of a site of the machine, whatever this process has.
  const auto threads = static_cast<std::size_t>(std::max(1L, std::lround(machine.cores)));
  const std::vector<double> seconds = task_seconds(graph, tasks, machine, threads);
  const Simulation simulation = simulation_of(tasks.graph, seconds, machine, request.speeds);
  const std::vector<SimulatedTimes> times = simulate(simulation, request.program);
  SimulatedRun run = simulated_run(simulation, times, tasks.graph.sites);
  run.report = report_of(tasks.graph, times);
  run.is_by_task = true;
  return run;
}

}  // namespace

SimulatedRun simulated_run(const Simulation& simulation, const std::vector<SimulatedTimes>& times, std::int64_t sites) {
  SimulatedRun run;
  run.computing.resize(static_cast<std::size_t>(sites));
  run.received.resize(static_cast<std::size_t>(sites));
  for (std::size_t j = 0; j < times.size(); ++j) {
    const SimulatedJob& job = simulation.jobs[j];
    run.seconds = std::max(run.seconds, times[j].end);
    if (job.at < 0 || job.at >= sites) continue;
    const auto site = static_cast<std::size_t>(job.at);
    if (job.from == SimulatedJob::nowhere) run.computing[site] += times[j].end - times[j].begin;
    run.received[site] += job.bytes;
  }
  return run;
}

SimulatedRun simulate(const Compiled& program, const Chosen& chosen, const Machine& machine,
                      const SimulationRequest& request) {
  if (std::holds_alternative<Spilling>(chosen.memory))
    throw UserError("--simulate knows no disks, and under this limit of memory chunks go there: give more memory");
  const auto* const by_plan = std::get_if<ByPlan>(&chosen.how);
  const bool has_routes = machine.links.empty() || chosen.tasks.graph.sites <= most_sites_with_links;
  if (by_plan == nullptr || (!chosen.tasks.graph.tasks.empty() && has_routes))
    return simulate_tasks(program.graph, chosen.tasks, machine, request);
  check_speeds(request.speeds, by_plan->plan.plan.sites);
  return simulate_vertices(program.graph, by_plan->plan.plan, machine, request);
}

}  // namespace einrel
