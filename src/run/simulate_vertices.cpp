#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "plan/cost/exact_costs.h"
#include "plan/cost/modelled.h"
#include "plan/routes.h"
#include "plan/staying_inputs.h"
#include "plan/transfers.h"
#include "run/simulated_run.h"

namespace einrel {
namespace {

using JobNumber = std::size_t;

/// Per site, the job after which a tensor, or a route of it, is there; nothing where nobody has to bring it.
using Arrival = std::vector<std::optional<JobNumber>>;
/// The same per link of the machine, of what comes into each group behind it.
using Crossing = std::vector<Arrival>;

/// Makes the jobs of a plan, vertex by vertex.
class VertexJobs {
 public:
  VertexJobs(const EinGraph& graph, const Plan& plan, const Machine& machine, Simulation sites)
      : graph_(graph),
        plan_(plan),
        machine_(machine),
        simulation_(std::move(sites)),
        transfers_(plan.sites, machine),
        exact_(graph, machine, transfers_),
        routes_(graph, plan, transfers_),
        computed_last_(static_cast<std::size_t>(plan.sites)) {
    for (const Link& link : machine.links) add_groups(link);
  }

  Simulation make() {
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) made_.push_back(of(v));
    for (std::size_t s = 0; s < graph_.steps.states.size(); ++s) {
      if (const std::optional<std::size_t> number = routes_.route_of_state(s))
        bring(graph_.outputs[*graph_.steps.states[s].next].index, *number);
    }
    order_.put_into(simulation_);
    return std::move(simulation_);
  }

 private:
  /// What comes into each group behind a link from others comes to an endpoint of its own.
  void add_groups(const Link& link) {
    first_group_.push_back(simulation_.endpoints.size());
    for (std::int64_t begin = 0; begin < plan_.sites; begin += link.sites) {
      simulation_.endpoints.push_back({.bandwidth = link.bandwidth, .node = simulation_.nodes.size()});
      simulation_.nodes.push_back({.bandwidth = link.bandwidth});
    }
  }

  JobNumber add(SimulatedJob job) {
    simulation_.jobs.push_back(job);
    return simulation_.jobs.size() - 1;
  }
  void follow(const std::optional<JobNumber>& before, JobNumber after) {
    if (before) order_.add(*before, after);
  }
  Arrival nobody() const { return Arrival(sites()); }
  std::size_t sites() const { return static_cast<std::size_t>(plan_.sites); }

  /// A job that is done once something is there on all sites; nothing where nobody has to bring it.
  std::optional<JobNumber> once_everywhere(const Arrival& arrival) {
    std::vector<JobNumber> before;
    for (const auto& at : arrival) {
      if (at) before.push_back(*at);
    }
    if (before.empty()) return std::nullopt;
    const JobNumber all = add({});
    for (const JobNumber job : before) order_.add(job, all);
    return all;
  }

  /// Sites compute vertices in the order of the program: of jobs so large none goes before another that waits shortly.
  JobNumber add_computing(std::size_t site, double seconds) {
    const JobNumber job = add({.seconds = seconds, .at = static_cast<std::int32_t>(site)});
    follow(std::exchange(computed_last_[site], job), job);
    return job;
  }

  JobNumber add_message(std::size_t endpoint, std::int64_t bytes, double latency,
                        const std::optional<JobNumber>& behind) {
    const JobNumber message = add({.seconds = latency,
                                   .bytes = bytes,
                                   .at = static_cast<std::int32_t>(endpoint),
                                   .from = SimulatedJob::everywhere});
    follow(behind, message);
    return message;
  }

  /// What a site receives, which is there when it is in the groups that the site is in, too.
  JobNumber add_arrival(std::size_t site, std::int64_t bytes, double latency, const Crossing& crossing,
                        const std::optional<JobNumber>& behind) {
    const JobNumber message = add_message(site, bytes, latency, behind);
    if (crossing.empty()) return message;
    const JobNumber arrived = add({});
    order_.add(message, arrived);
    for (std::size_t l = 0; l < crossing.size(); ++l)
      follow(crossing[l][site / static_cast<std::size_t>(machine_.links[l].sites)], arrived);
    return arrived;
  }

  /// What groups receive through a link, elements of so many bytes each.
  Arrival cross(std::size_t l, const std::vector<std::int64_t>& elements, std::int64_t size,
                const std::optional<JobNumber>& behind) {
    Arrival groups(elements.size());
    for (std::size_t g = 0; g < elements.size(); ++g) {
      if (elements[g] > 0)
        groups[g] = add_message(first_group_[l] + g, elements[g] * size, machine_.links[l].latency, behind);
    }
    return groups;
  }

  /// A route of a tensor, once.
  // NOLINTNEXTLINE(misc-no-recursion): from a route to the one that it starts from, a few at most
  const Arrival& bring(std::size_t producer, std::size_t number) {
    const auto [found, is_new] = brought_.try_emplace({producer, number});
    if (!is_new) return found->second;
    const Vertex& tensor = graph_.vertices[producer];
    const Route& route = routes_.route(producer, number);
    const Arrival source = route.source ? bring(producer, *route.source) : made_[producer];
    Arrival& arrival = brought_.at({producer, number});
    arrival = source;
    if (stays(tensor)) return arrival;
    const Layout& have = routes_.source(producer, number);
    const std::vector<std::int64_t> elements = transfers_.received(have, route.need, tensor.bound);
    if (std::all_of(elements.begin(), elements.end(), [](std::int64_t count) { return count == 0; })) return arrival;
    const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
    const std::optional<JobNumber> behind = once_everywhere(source);
    Crossing crossing;
    for (const Link& link : machine_.links)
      crossing.push_back(
          cross(crossing.size(), transfers_.crossing(link, have, route.need, tensor.bound), size, behind));
    for (std::size_t site = 0; site < elements.size(); ++site) {
      if (elements[site] == 0) continue;
      const std::int64_t bytes = elements[site] * size;
      const double part =
          static_cast<double>(bytes) * sites_in(route.need) / (bytes_of(tensor) * copies_in(route.need));
      const double messages = messages_to(have, route.need, part, tree_depth(copies_in(route.need)));
      arrival[site] = add_arrival(site, bytes, messages * machine_.network_latency, crossing, behind);
    }
    return arrival;
  }

  /// Copying on each site what a route puts together there, by the first who needs it.
  double copying(std::size_t producer, std::size_t number) {
    if (!copied_.insert({producer, number}).second) return 0;
    const Vertex& tensor = graph_.vertices[producer];
    if (stays(tensor)) return 0;
    return exact_.move(tensor, routes_.source(producer, number), routes_.route(producer, number), nullptr).copying;
  }

  Arrival of(std::size_t v) {
    const Vertex& vertex = graph_.vertices[v];
    if (is_input(vertex)) return nobody();
    const VertexPlan& plan = plan_.vertices[v];
    double seconds = vertex_seconds(graph_, vertex, plan, machine_);
    std::vector<Arrival> operands;
    for (const std::size_t operand : operands_read(vertex)) {
      const std::size_t producer = vertex.inputs[operand].index;
      const std::optional<std::size_t> number = routes_.route_of(v, operand);
      if (number) seconds += copying(producer, *number);
      operands.push_back(number ? bring(producer, *number) : made_[producer]);
    }
    Arrival computed = nobody();
    const Layout computing = partial_layout(vertex, plan);
    for (std::size_t site = 0; site < sites(); ++site) {
      if (elements_at(computing, vertex.bound, static_cast<std::int64_t>(site)) == 0) continue;
      const JobNumber job = add_computing(site, seconds);
      for (const Arrival& operand : operands) follow(operand[site], job);
      computed[site] = job;
    }
    return partial_sites(vertex, plan) == 1 ? computed : reduce(vertex, plan, computed);
  }

  /// Partial results to the owners of results, who add them up; sums, and extremes, back to those who need them.
  Arrival reduce(const Vertex& vertex, const VertexPlan& plan, const Arrival& computed) {
    const std::int64_t others = partial_sites(vertex, plan) - 1;
    const std::int64_t each = partial_bytes(vertex) - bytes_back(vertex);
    const std::int64_t back = plan.all_reduced ? partial_bytes(vertex) : bytes_back(vertex);
    const Layout owners = owned_layout(vertex, plan);
    const double latency = machine_.network_latency;
    const std::optional<JobNumber> behind = once_everywhere(computed);
    Crossing crossing;
    for (std::size_t l = 0; l < machine_.links.size(); ++l)
      crossing.push_back(
          cross(l, parts_crossing(vertex, plan, plan_.sites, machine_.links[l].sites), partial_bytes(vertex), behind));
    const double adding = adding_seconds(vertex, plan, machine_);
    Arrival sums = computed;
    std::vector<std::int64_t> owned(sites());
    for (std::size_t site = 0; site < sites(); ++site) {
      owned[site] = elements_at(owners, vertex.bound, static_cast<std::int64_t>(site));
      if (owned[site] == 0) continue;
      const JobNumber parts =
          add_arrival(site, others * each * owned[site], static_cast<double>(others) * latency, crossing, behind);
      sums[site] = add_computing(site, adding);
      order_.add(parts, *sums[site]);
    }
    return back == 0 ? sums : give_back(vertex, plan, sums, owned);
  }

  /// Sums that are all-reduced, and extremes, to all who have a part of them.
  Arrival give_back(const Vertex& vertex, const VertexPlan& plan, const Arrival& sums,
                    const std::vector<std::int64_t>& owned) {
    const std::optional<JobNumber> added = once_everywhere(sums);
    const Layout owners = owned_layout(vertex, plan);
    const Layout group = partial_layout(vertex, plan);
    const std::int64_t each = plan.all_reduced ? partial_bytes(vertex) : bytes_back(vertex);
    Crossing crossing;
    for (std::size_t l = 0; l < machine_.links.size() && plan.all_reduced; ++l)
      crossing.push_back(
          cross(l, transfers_.crossing(machine_.links[l], owners, result_layout(vertex, plan), vertex.bound),
                partial_bytes(vertex), added));
    const double depth = tree_depth(static_cast<double>(partial_sites(vertex, plan)));
    Arrival all = sums;
    for (std::size_t site = 0; site < sites(); ++site) {
      const std::int64_t lacking = elements_at(group, vertex.bound, static_cast<std::int64_t>(site)) - owned[site];
      if (lacking > 0) all[site] = add_arrival(site, each * lacking, depth * machine_.network_latency, crossing, added);
    }
    return all;
  }

  const EinGraph& graph_;
  const Plan& plan_;
  const Machine& machine_;
  Simulation simulation_;
  SimulationOrder order_;
  Transfers transfers_;
  ExactCosts exact_;
  Routes routes_;
  Arrival computed_last_;                 // per site
  std::vector<std::size_t> first_group_;  // per link, the endpoint of the first group behind it
  std::vector<Arrival> made_;             // per vertex
  std::map<std::pair<std::size_t, std::size_t>, Arrival> brought_;
  std::set<std::pair<std::size_t, std::size_t>> copied_;
};

}  // namespace

SimulatedRun simulate_vertices(const EinGraph& graph, const Plan& plan, const Machine& machine,
                               const SimulationRequest& request) {
  const Simulation simulation = VertexJobs(graph, plan, machine, sites_of(machine, plan.sites, request.speeds)).make();
  SimulatedRun run = simulated_run(simulation, simulate(simulation, request.program), plan.sites);
  run.is_by_task = false;
  return run;
}

}  // namespace einrel
