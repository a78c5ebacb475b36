// Runs on sites that nobody has, against what can be worked out of them by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "plan/cost/cost.h"
#include "run/simulated_run.h"
#include "support/program.h"
#include "support/random_plan.h"

namespace einrel::test {
namespace {

constexpr double simulation_rounding = 1e-6;

/// Sites that receive 1000 bytes a second, 3 seconds after they asked.
Machine simulated_machine() {
  Machine machine;
  machine.network_bandwidth = 1000;
  machine.network_latency = 3;
  return machine;
}

SimulatedJob computing_at(int site, double seconds) { return {.seconds = seconds, .at = site}; }
SimulatedJob message_of(std::int64_t bytes, int from, int to) {
  return {.seconds = 3, .bytes = bytes, .at = to, .from = from};
}

/// Of jobs in this order, without one where no order is said.
std::vector<SimulatedTimes> times_of(Simulation simulation, std::vector<SimulatedJob> jobs,
                                     const std::vector<std::pair<std::size_t, std::size_t>>& order = {}) {
  simulation.jobs = std::move(jobs);
  SimulationOrder pairs;
  for (const auto& [before, after] : order) pairs.add(before, after);
  pairs.put_into(simulation);
  return simulate(simulation, EINREL_SIMGRID);
}

double last_end(const std::vector<SimulatedTimes>& times) {
  double last = 0;
  for (const SimulatedTimes& each : times) last = std::max(last, each.end);
  return last;
}

TEST(Simulated, AChainOnOneSiteTakesTheSumOfItsSeconds) {
  const Simulation one = sites_of(simulated_machine(), 1, {});
  const auto times =
      times_of(one, {computing_at(0, 1.5), computing_at(0, 1e-5), computing_at(0, 20)}, {{0, 1}, {1, 2}});
  EXPECT_NEAR(times[1].begin, 1.5, simulation_rounding);
  EXPECT_NEAR(times[2].end, 21.50001, simulation_rounding);
  // Those that nobody says an order of stand in each other's way, too, and begin in that of their numbers.
  const auto apart = times_of(one, {computing_at(0, 1), computing_at(0, 2), computing_at(0, 4)});
  EXPECT_NEAR(apart[1].begin, 1, simulation_rounding);
  EXPECT_NEAR(last_end(apart), 7, simulation_rounding);
}

TEST(Simulated, ASlowSiteTakesLongerAndNobodyElseDoes) {
  const auto times = times_of(sites_of(simulated_machine(), 2, {{1, 0.5}}), {computing_at(0, 3), computing_at(1, 3)});
  EXPECT_NEAR(times[0].end, 3, simulation_rounding);
  EXPECT_NEAR(times[1].end, 6, simulation_rounding);
}

TEST(Simulated, MessagesShareWhatTheirSendersAndReceiversHave) {
  const Simulation three = sites_of(simulated_machine(), 3, {});
  EXPECT_NEAR(last_end(times_of(three, {message_of(2000, 0, 1)})), 3 + 2, simulation_rounding);
  EXPECT_NEAR(last_end(times_of(three, {message_of(2000, 0, 1), message_of(2000, 0, 2)})), 3 + 4, simulation_rounding);
  // One after the other at who receives them; there and back do not meet.
  EXPECT_NEAR(last_end(times_of(three, {message_of(2000, 0, 2), message_of(2000, 1, 2)})), 10, simulation_rounding);
  EXPECT_NEAR(last_end(times_of(three, {message_of(2000, 0, 1), message_of(2000, 1, 0)})), 5, simulation_rounding);
  // While sites receive they compute.
  EXPECT_NEAR(last_end(times_of(three, {message_of(2000, 0, 1), computing_at(1, 5)})), 5, simulation_rounding);
}

TEST(Simulated, TwoEqualMessagesOverOneLinkTakeTwiceAsLong) {
  Machine machine = simulated_machine();
  machine.links = {{"outer", 4, 1000, 0}, {"inner", 2, 1000, 0}};
  Simulation eight = sites_of(machine, 8, {});
  for (const Link& link : machine.links)
    eight.links.push_back({static_cast<std::uint64_t>(link.sites), link.bandwidth});
  const auto seconds = [&](std::vector<SimulatedJob> jobs) { return last_end(times_of(eight, std::move(jobs))) - 3; };
  EXPECT_NEAR(seconds({message_of(2000, 0, 2)}), 2, simulation_rounding);
  EXPECT_NEAR(seconds({message_of(2000, 0, 2), message_of(2000, 1, 3)}), 4, simulation_rounding);  // inner: 0, 1 | 2, 3
  EXPECT_NEAR(seconds({message_of(2000, 0, 4), message_of(2000, 2, 6)}), 4, simulation_rounding);  // outer: 0-3 | 4-7
  EXPECT_NEAR(seconds({message_of(2000, 0, 1), message_of(2000, 2, 3)}), 2, simulation_rounding);  // no link
  EXPECT_NEAR(seconds({message_of(2000, 0, 4), message_of(2000, 4, 0)}), 2, simulation_rounding);  // both directions
}

TEST(Simulated, SitesOfANodeShareItsNetwork) {
  Machine machine = simulated_machine();
  machine.sites_per_node = 2;
  machine.network_alone = 2;
  const Simulation four = sites_of(machine, 4, {});
  EXPECT_NEAR(last_end(times_of(four, {message_of(2000, 0, 2)})), 3 + 1, simulation_rounding);
  EXPECT_NEAR(last_end(times_of(four, {message_of(2000, 0, 2), message_of(2000, 1, 3)})), 3 + 2, simulation_rounding);
}

TEST(Simulated, WhatHasNoBytesOrSecondsTakesNoTime) {
  const Simulation two = sites_of(simulated_machine(), 2, {});
  SimulatedJob nothing{.bytes = 0, .at = 1, .from = 0};
  EXPECT_EQ(last_end(times_of(two, {nothing, computing_at(1, 0), {}}, {{0, 1}, {1, 2}})), 0);
  EXPECT_EQ(last_end(times_of(two, {})), 0);
  EXPECT_NEAR(last_end(times_of(two, {message_of(0, 0, 1)})), 3, simulation_rounding);
}

TEST(Simulated, SaysWhyThereIsNoSimulation) {
  EXPECT_THROW(simulate(sites_of(simulated_machine(), 1, {}), "/nowhere/einrel-simgrid"), RunError);
  // Each waits for the other.
  const Simulation one = sites_of(simulated_machine(), 1, {});
  EXPECT_THROW(times_of(one, {computing_at(0, 1), computing_at(0, 1)}, {{0, 1}, {1, 0}}), RunError);
}

/// What a message takes on an empty network.
double alone_on_network(std::int64_t bytes, const SimulatedJob& job, Site from, Site to, const Machine& machine) {
  double bandwidth = machine.network_bandwidth;
  for (const Link& link : machine.links) {
    if (from / link.sites != to / link.sites) bandwidth = std::min(bandwidth, link.bandwidth);
  }
  return bytes == 0 ? 0 : job.seconds + static_cast<double>(bytes) / bandwidth;
}

/// Tasks wait for what they read, take as long as they take alone or longer, and neither overlap with what their site
/// computes, nor messages with what it receives.
void check_simulated_tasks(const TaskGraph& graph, const Simulation& simulation,
                           const std::vector<SimulatedTimes>& times, const Machine& machine) {
  std::vector<double> made(graph.arrays.size(), 0);
  std::map<std::pair<bool, Site>, std::vector<SimulatedTimes>> servers;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    const bool is_message = std::holds_alternative<Send>(task.op);
    double least = simulation.jobs[t].seconds;
    if (is_message)
      least = alone_on_network(bytes_of(graph[task.makes.front()]), simulation.jobs[t], graph[task.reads.front()].site,
                               site_of(graph, task), machine);
    EXPECT_GE(times[t].end - times[t].begin, least * (1 - simulation_rounding) - simulation_rounding);
    for (const ArrayId read : task.reads) EXPECT_GE(times[t].begin, made[read.index] - simulation_rounding);
    for (const ArrayId array : task.makes) made[array.index] = times[t].end;
    servers[{is_message, site_of(graph, task)}].push_back(times[t]);
  }
  for (auto& [server, of_server] : servers) {
    std::sort(of_server.begin(), of_server.end(), [](const SimulatedTimes& a, const SimulatedTimes& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    for (std::size_t i = 1; i < of_server.size(); ++i)
      EXPECT_GE(of_server[i].begin, of_server[i - 1].end - simulation_rounding);
  }
}

Job job_with(std::int64_t sites) {
  Job job;
  job.ranks = static_cast<int>(sites);
  job.is_started = sites > 1;
  return job;
}

TEST(Simulated, RandomPlansReceiveTheirBytesAndKeepTheirOrder) {
  Random random(54);
  for (int round = 0; round < 60; ++round) {
    const auto& programs = plannable_programs();
    const auto at = static_cast<std::size_t>(random.between(0, std::ssize(programs) - 1));
    const Compiled compiled = compile("test.ein", einrel::graph_of(programs[at]));
    SCOPED_TRACE(programs[at]);
    ByPlan by_plan;
    by_plan.plan.plan = random_plan(random, compiled.graph, 9);
    const Plan& plan = by_plan.plan.plan;
    Machine machine = simulated_machine();
    machine.network_latency = 0.5;
    if (random.chance(0.5)) machine.links = {{"outer", 4, 300, 2}, {"inner", 2, 700, 1}};
    const PlanCosts costs = costs_of(compiled.graph, plan, machine);
    const PlannedTasks tasks = tasks_of(compiled, plan, job_with(plan.sites));

    const SimulationRequest request{{}, EINREL_SIMGRID};
    const SimulatedRun by_vertex = simulate_vertices(compiled.graph, plan, machine, request);
    EXPECT_EQ(by_vertex.received, costs.received);
    EXPECT_FALSE(by_vertex.is_by_task);
    Chosen chosen{.tasks = tasks, .threads = 1, .how = by_plan};
    const SimulatedRun by_task = simulate(compiled, chosen, machine, request);
    EXPECT_EQ(by_task.received, costs.received);
    EXPECT_TRUE(by_task.is_by_task);
    for (const SimulatedRun* const run : {&by_vertex, &by_task}) {
      const double most = *std::max_element(run->computing.begin(), run->computing.end());
      EXPECT_GE(run->seconds, most * (1 - simulation_rounding));
    }

    std::vector<double> seconds;
    for (std::size_t t = 0; t < tasks.graph.tasks.size(); ++t)
      seconds.push_back(
          std::holds_alternative<Send>(tasks.graph.tasks[t].op) ? 0 : 0.25 * static_cast<double>(random.between(0, 4)));
    const Simulation simulation = simulation_of(tasks.graph, seconds, machine, {});
    const std::vector<SimulatedTimes> times = simulate(simulation, EINREL_SIMGRID);
    check_simulated_tasks(tasks.graph, simulation, times, machine);
    const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    EXPECT_GE(last_end(times), all / static_cast<double>(plan.sites) * (1 - simulation_rounding));
  }
}

TEST(Simulated, SitesThatThePlanHasNotAreNamed) {
  const Compiled compiled = compile("test.ein", einrel::graph_of("dims i=8\ninput X[i]\nZ[i] = exp(X[i])\n"));
  const Chosen chosen{whole_tasks(compiled), 1};
  try {
    simulate(compiled, chosen, Machine{}, {{{4, 0.5}}, EINREL_SIMGRID});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()), "--slow names site 4, but the plan has one site: sites 0 to 0");
  }
}

}  // namespace
}  // namespace einrel::test
