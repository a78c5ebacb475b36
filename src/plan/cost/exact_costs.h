#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/extent.h"
#include "machine/machine.h"
#include "plan/cost/cost.h"
#include "plan/routes.h"

namespace einrel {

/// What it costs to bring a tensor from where it lies to where it is needed.
struct MoveCost {
  double floats = 0;
  double copying = 0;  ///< seconds, on each site
  double moving = 0;   ///< seconds, between sites
  std::int64_t bytes = 0;
  double of(CostKind kind) const;
};

/// Counts bytes where they arrive.
struct Tally {
  std::vector<std::int64_t> received;  ///< per site
  std::vector<double> crossing;        ///< per link of the machine, as PlanCosts::crossing
  void add(std::size_t site, std::int64_t bytes) { received[site] = checked_add(received[site], bytes); }
};

/// The parts that the exact cost of a plan is the sum of (costs_of): of each vertex alone, and of each route.
class ExactCosts {
 public:
  /// All of them must outlive it.
  ExactCosts(const EinGraph& graph, const Machine& machine, Transfers& transfers);

  /// Computing and reducing, without what is brought to it. O(labels); with links O(sites).
  double alone(std::size_t v, const VertexPlan& plan, CostKind kind) const;
  /// At least so much, as if no link were slow. O(labels).
  double alone_at_least(std::size_t v, const VertexPlan& plan, CostKind kind) const;
  /// All that is said of it, and what its sites receive. O(sites).
  VertexCost alone(std::size_t v, const VertexPlan& plan, Tally& tally);
  /// One route of a tensor. O(sites) where it was not asked for before, or is counted.
  MoveCost move(const Vertex& tensor, const TensorRoutes& routes, std::size_t number) {
    return move(tensor, routes.source(number), routes.route(number), nullptr);
  }
  MoveCost move(const Vertex& tensor, const Layout& have, const Route& route, Tally* tally);
  /// Seconds that bringing a tensor there takes at least, whatever else it is brought to, from which some of it may be
  /// taken: each site receives what it lacks, in one message.
  double seconds_at_least(const Vertex& tensor, const Layout& have, const Layout& need);

 private:
  double computing(const Vertex& vertex, const VertexPlan& plan) const;
  double crossing(const Layout& have, const Layout& need, const Vertex& tensor, Tally* tally);
  double crossing_link(std::size_t l, const std::vector<std::int64_t>& elements, double size, Tally* tally) const;
  double receiving_parts(const Vertex& vertex, const VertexPlan& plan, Tally* tally) const;
  std::int64_t reduce(const Vertex& vertex, const VertexPlan& plan, Tally& tally) const;

  const EinGraph& graph_;
  const Machine& machine_;
  Transfers& transfers_;
};

}  // namespace einrel
