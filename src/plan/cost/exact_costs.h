#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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

/// The parts that the exact cost of a plan is the sum of (costs_of): of each vertex alone, and of each route.
class ExactCosts {
 public:
  /// All of them must outlive it.
  ExactCosts(const EinGraph& graph, const Machine& machine, Transfers& transfers);

  /// Computing and reducing, without what is brought to it. O(sites).
  VertexCost alone(std::size_t v, const VertexPlan& plan);
  /// One route of a tensor. O(sites).
  MoveCost move(const Vertex& tensor, const TensorRoutes& routes, std::size_t number) {
    return move(tensor, routes.source(number), routes.route(number));
  }
  MoveCost move(const Vertex& tensor, const Layout& have, const Route& route);

  /// Bytes that each site has received in all that was asked for.
  const std::vector<std::int64_t>& received() const { return received_; }
  /// Per link of the machine, what crossed it, as PlanCosts::crossing.
  const std::vector<double>& crossing() const { return crossing_; }

 private:
  double crossing_seconds(const Layout& have, const Layout& need, const Vertex& tensor);
  double link_seconds(std::size_t l, const std::vector<double>& bytes);
  double parts_crossing_seconds(const Vertex& vertex, const VertexPlan& plan);
  std::int64_t reduce(const Vertex& vertex, const VertexPlan& plan);

  const EinGraph& graph_;
  const Machine& machine_;
  Transfers& transfers_;
  std::vector<std::int64_t> received_;
  std::vector<double> crossing_;
};

}  // namespace einrel
