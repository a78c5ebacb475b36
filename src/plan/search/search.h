#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plan/cost/cost.h"
#include "plan/plan.h"

namespace einrel {

namespace search {
struct Tables;
}

/// The ways of cutting a vertex that a search chooses from; the first of an Input's is what it takes where its place
/// does not matter. Called once for equal vertices.
using Candidates = std::function<std::vector<VertexPlan>(const Vertex&, std::size_t)>;

/// The plans of a graph in which every vertex has one of its candidates, and searches for the cheapest. What vertices
/// have in common is computed once: a model of 32 equal layers takes the tables of one.
class SearchSpace {
 public:
  /// Makes searches take no such candidates from now on; whether there are any.
  bool leave_out(const std::function<bool(const VertexPlan&)>& is_left_out);

  /// Per vertex the position of its candidate.
  using Choice = std::vector<std::size_t>;

  SearchSpace(const EinGraph& graph, const CostModel& model, const Candidates& candidates);
  ~SearchSpace();
  SearchSpace(const SearchSpace&) = delete;
  SearchSpace& operator=(const SearchSpace&) = delete;

  /// F(v, dZ) of EinDecomp, section 8: optimal where no vertex but inputs has several consumers. Else paths are taken,
  /// the longest first, each planned together; with `charges`, what it costs to bring tensors from and to vertices that
  /// are planned already counts, without it (as in the paper) it does not.
  Choice by_paths(bool charges) const;

  /// Takes the vertices in order and keeps the cheapest plans of those that it has taken, one for each way in which
  /// what is still to be read may lie; fewer of them where vertices have many candidates, so that a vertex takes at
  /// most so many steps. Finds what paths, of which each is planned before the next, do not: branches that suit each
  /// other.
  Choice by_beam(std::size_t most_steps) const;

  /// Changes one vertex after the other to what is cheapest beside the others, as long as that gains anything: what
  /// several consumers need alike is sent once.
  void improve(Choice& choice) const;

  /// By the model, see `improve`.
  double cost(const Choice& choice) const;

  /// The candidates that are most like a plan: nullopt where a vertex has no such candidate.
  std::optional<Choice> choice_of(const Plan& plan) const;

  const std::vector<VertexPlan>& candidates(std::size_t vertex) const;

 private:
  std::unique_ptr<search::Tables> tables_;
};

}  // namespace einrel
