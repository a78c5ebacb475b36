#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "plan/layout.h"
#include "plan/transfers.h"

namespace einrel {

/// What brings a tensor to where vertices need it.
struct Route {
  Layout need;
  std::optional<std::size_t> source;  ///< an earlier route of the tensor that it is taken from; its producer if none
};

/// What brings one tensor to its readers, who are told of one after the other. It has no route where it lies, where it
/// was computed or stored, as a reader needs it; readers that need it alike share one. Readers that need it otherwise
/// take it from where most of it lies already: its producer, or what was brought for a reader before them.
class TensorRoutes {
 public:
  explicit TensorRoutes(Layout stored) : stored_(std::move(stored)) {}

  /// Another reader: what was brought until now may be its source.
  void next_reader() { sources_ = routes_.size(); }
  /// The number of the route, known or new, to where the reader needs the tensor; none where it lies there.
  std::optional<std::size_t> find_or_add(Layout need, const Shape& bound, Transfers& transfers);

  const Route& route(std::size_t number) const { return routes_[number]; }
  std::size_t count() const { return routes_.size(); }
  const Layout& stored() const { return stored_; }
  /// Where a route begins.
  const Layout& source(std::size_t number) const;

 private:
  /// Of the routes that may be sources the one from which least moves, if that is less than from the producer, and no
  /// site receives more.
  std::optional<std::size_t> best_source(const Layout& need, const Shape& bound, Transfers& transfers) const;

  Layout stored_;
  std::vector<Route> routes_;  // in the order of the readers
  std::size_t sources_ = 0;    // so many of the first
};

/// Whether it reads nothing, since a label of it has no positions.
bool computes_nothing(const Vertex& vertex);

/// Where the operands of every vertex come from. At last the next values of states go to where these lie.
class Routes {
 public:
  Routes(const EinGraph& graph, const Plan& plan, Transfers& transfers);

  /// The number of the route among those of the operand's tensor; none where it lies as it is needed.
  std::optional<std::size_t> route_of(std::size_t vertex, std::size_t operand) const {
    return of_operand_[vertex][operand];
  }
  /// The same for the next value of EinGraph::steps.states[state], which goes to where the state lies.
  std::optional<std::size_t> route_of_state(std::size_t state) const { return of_state_[state]; }
  const Route& route(std::size_t tensor, std::size_t number) const { return of_tensor_[tensor].route(number); }
  /// Where a route begins.
  const Layout& source(std::size_t tensor, std::size_t number) const { return of_tensor_[tensor].source(number); }

 private:
  std::vector<TensorRoutes> of_tensor_;
  std::vector<std::vector<std::optional<std::size_t>>> of_operand_;  // per vertex
  std::vector<std::optional<std::size_t>> of_state_;
};

}  // namespace einrel
