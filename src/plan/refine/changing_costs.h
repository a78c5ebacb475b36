#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "plan/cost/exact_costs.h"
#include "plan/transfers.h"

namespace einrel {

/// The exact cost of a plan while its vertices change one by one: as PlanCosts::of says, but only what a change
/// concerns is computed anew. Inputs that a changed vertex reads and whose placement is not given are laid out anew, so
/// that all their readers together cost least.
class ChangingCosts {
 public:
  /// `graph`, `machine` and `transfers`, of the plan's sites, must outlive it. O(vertices * operands * sites).
  ChangingCosts(const EinGraph& graph, Plan plan, const Machine& machine, CostKind kind, Transfers& transfers);

  /// A plan, and the sum that its cost is.
  struct Costed {
    Plan plan;
    std::vector<double> alone;  ///< per vertex
    std::vector<double> moves;  ///< per tensor: what it costs to bring it to all its readers
    double total = 0;
  };
  const Costed& now() const { return now_; }
  /// Back to what was.
  void restore(const Costed& before) { now_ = before; }

  /// A vertex, or an input alone, with another plan, and what follows from it.
  struct Change {
    double total = std::numeric_limits<double>::infinity();  ///< of the whole plan
    std::vector<std::pair<std::size_t, VertexPlan>> plans;   ///< the vertex first, then inputs
    double alone = 0;                                        ///< of the first
    std::vector<std::pair<std::size_t, double>> moves;       ///< by tensor
  };
  /// What a vertex computed like this costs, without all that is moved.
  double alone(std::size_t v, const VertexPlan& plan) const { return exact_.alone(v, plan, kind_); }
  /// At least so much, in less time.
  double alone_at_least(std::size_t v, const VertexPlan& plan) const { return exact_.alone_at_least(v, plan, kind_); }
  /// The tensors that may move otherwise when a vertex changes.
  std::vector<std::size_t> moved_with(std::size_t v) const;
  /// How long it takes to try a change of a vertex, as many times as of one with few readers around it.
  std::int64_t effort(std::size_t v) const;
  /// The total without what a vertex costs alone and without all moves that may change with it.
  double total_without(std::size_t v) const;
  /// What the change comes to; nothing where that is at least `enough`.
  std::optional<Change> with(std::size_t v, const VertexPlan& plan,
                             double enough = std::numeric_limits<double>::infinity());
  /// An input whose placement is not given where it costs least that its readers, as they are, get it; nothing where
  /// that is where it lies.
  std::optional<Change> with_laid_out(std::size_t input);
  void take(const Change& change);

  /// The vertices that compute something of a tensor.
  std::vector<std::size_t> readers(std::size_t tensor) const;
  /// A tensor, and after a state its next value.
  std::vector<std::size_t> moved_with_input(std::size_t tensor) const;
  /// A vertex with another plan, without what follows from it: for moving().
  void put(std::size_t v, VertexPlan plan) { now_.plan.vertices[v] = std::move(plan); }
  /// What it costs to bring a tensor to its readers, of an input from where that costs least, and the next value of a
  /// state to where the state lies.
  double moving(std::size_t tensor);
  /// The vertices that compute something on whose plans moving() depends, ascending; none of a next value, which counts
  /// with its state.
  std::vector<std::size_t> moving_depends_on(std::size_t tensor) const;

 private:
  struct Reader {
    std::size_t vertex = 0;
    std::vector<std::size_t> operands;
  };
  double cost_of_moves(std::size_t tensor);
  Layout needed_by(const Reader& reader, std::size_t operand) const;
  void lay_out(std::size_t input, Change& change);
  bool is_fed_back(std::size_t input) const;
  void add_up();

  const EinGraph& graph_;
  Costed now_;
  CostKind kind_;
  Transfers& transfers_;
  ExactCosts exact_;
  std::vector<std::vector<Reader>> readers_;             // per tensor, in order
  std::vector<std::vector<std::size_t>> fed_back_;       // per tensor, the states whose next value it is
  std::vector<std::optional<std::size_t>> next_;         // per input
  std::vector<std::vector<std::size_t>> laid_out_with_;  // per vertex, inputs
};

}  // namespace einrel
