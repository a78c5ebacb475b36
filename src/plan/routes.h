#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "plan/layout.h"
#include "plan/transfers.h"

namespace einrel {

/// What brings a tensor to where vertices need it.
struct Route {
  Layout need;
  std::optional<std::size_t> source;  ///< an earlier route of the tensor that it is taken from; its producer if none
};

/// Where the operands of every vertex come from. A tensor that lies, where it was computed or stored, as a vertex needs
/// it has no route; vertices that need it alike share one. Vertices that need it otherwise take it from where most of
/// it lies already: its producer, or what was brought for a vertex before them. At last the next values of states go to
/// where these lie.
class Routes {
 public:
  Routes(const EinGraph& graph, const Plan& plan, Transfers& transfers);

  /// The number of the route among those of the operand's tensor; none where it lies as it is needed.
  std::optional<std::size_t> route_of(std::size_t vertex, std::size_t operand) const;
  /// The same for the next value of EinGraph::steps.states[state], which goes to where the state lies.
  std::optional<std::size_t> route_of_state(std::size_t state) const { return of_state_[state]; }
  const Route& route(std::size_t tensor, std::size_t number) const { return of_tensor_[tensor][number]; }
  /// Where a route begins.
  const Layout& source(std::size_t tensor, std::size_t number) const;

 private:
  /// The number of the route of a tensor to a place, known or new; none where it lies there. Taken from one of the
  /// first `sources` routes, or from its producer.
  std::optional<std::size_t> find_or_add(std::size_t tensor, Layout need, const Shape& bound, std::size_t sources,
                                         Transfers& transfers);
  /// Of the first `sources` routes the one from which least moves, if that is less than from the producer, and no site
  /// receives more.
  std::optional<std::size_t> best_source(std::size_t tensor, const Layout& need, const Shape& bound,
                                         std::size_t sources, Transfers& transfers) const;

  std::vector<Layout> stored_;                                       // per tensor
  std::vector<std::vector<Route>> of_tensor_;                        // in the order of the vertices that need them
  std::vector<std::vector<std::optional<std::size_t>>> of_operand_;  // per vertex
  std::vector<std::optional<std::size_t>> of_state_;
};

}  // namespace einrel
