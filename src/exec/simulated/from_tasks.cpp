#include "exec/simulated/from_tasks.h"

#include <variant>

namespace einrel {
namespace {

/// Of a message, for all that it crosses.
double latency_between(Site from, Site to, const Machine& machine) {
  double latency = machine.network_latency;
  for (const Link& link : machine.links) {
    if (from / link.sites != to / link.sites) latency += link.latency;
  }
  return latency;
}

SimulatedJob job_of(const TaskGraph& graph, const Task& task, double seconds, const Machine& machine) {
  const Site at = site_of(graph, task);
  if (!std::holds_alternative<Send>(task.op)) return {.seconds = seconds, .at = static_cast<std::int32_t>(at)};
  const std::int64_t bytes = bytes_of(graph[task.makes.front()]);
  const Site from = graph[task.reads.front()].site;
  return {.seconds = bytes > 0 ? latency_between(from, at, machine) : 0,
          .bytes = bytes,
          .at = static_cast<std::int32_t>(at),
          .from = static_cast<std::int32_t>(from)};
}

}  // namespace

Simulation sites_of(const Machine& machine, std::int64_t sites, const SiteSpeeds& speeds) {
  Simulation simulation;
  for (Site site = 0; site < sites; ++site) {
    const auto speed = speeds.find(site);
    simulation.endpoints.push_back({.speed = speed == speeds.end() ? 1 : speed->second,
                                    .bandwidth = machine.network_bandwidth * machine.network_alone,
                                    .node = static_cast<std::uint64_t>(site / machine.sites_per_node)});
  }
  const auto nodes = static_cast<std::size_t>((sites + machine.sites_per_node - 1) / machine.sites_per_node);
  const double of_node = machine.network_bandwidth * static_cast<double>(machine.sites_per_node);
  simulation.nodes.assign(nodes, {.bandwidth = of_node});
  return simulation;
}

Simulation simulation_of(const TaskGraph& graph, const std::vector<double>& seconds, const Machine& machine,
                         const SiteSpeeds& speeds) {
  Simulation simulation = sites_of(machine, graph.sites, speeds);
  for (const Link& link : machine.links) {
    simulation.links.push_back({.endpoints = static_cast<std::uint64_t>(link.sites), .bandwidth = link.bandwidth});
  }
  SimulationOrder order;
  std::vector<std::size_t> makers(graph.arrays.size());
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    simulation.jobs.push_back(job_of(graph, task, seconds[t], machine));
    for (const ArrayId read : task.reads) order.add(makers[read.index], t);
    for (const ArrayId made : task.makes) makers[made.index] = t;
  }
  order.put_into(simulation);
  return simulation;
}

}  // namespace einrel
