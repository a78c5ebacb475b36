#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/plan.h"

namespace einrel {

/// Says which vertices of a plan are alike, as those of equal layers are, with all that the cost of another way to
/// compute one of them depends on.
class Likeness {
 public:
  /// `graph` must outlive it.
  Likeness(const EinGraph& graph, const Plan& plan);

  /// Equal for vertices that are alike: those that compute the same, in the same way, as do those that they read, and
  /// all readers of these, and what takes the place of an input that one of them is, in the next step. O(readers).
  std::vector<std::size_t> of(std::size_t v) const;
  /// A vertex is computed in another way from now on.
  void change(std::size_t v, const VertexPlan& plan);
  const std::vector<std::size_t>& readers(std::size_t tensor) const { return readers_[tensor]; }
  /// The vertex and all vertices that `of` says something of, in the same order for vertices that are alike.
  std::vector<std::size_t> around(std::size_t v) const;

 private:
  const EinGraph& graph_;
  std::vector<std::string> computation_;  // per vertex
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<std::size_t> own_;                   // number of what and how each computes
  std::vector<std::vector<std::size_t>> readers_;  // per tensor, with each operand
  std::vector<std::vector<std::size_t>> beside_;   // per input, what takes its place, and back
};

}  // namespace einrel
