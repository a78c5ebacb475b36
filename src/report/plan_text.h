#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "report/explanation.h"
#include "report/plan_facts.h"

namespace einrel {

/// "i=2 k=2", "j=2 of 8 parts" for 2 sites that have 8 parts, "j=4, result k=4" where 4 sites share it out along k,
/// "j=4, result on each" where all 4 get it; "i=2, each on 4 sites", where 4 compute the same; "whole, on one site",
/// "whole, on each of 8 sites".
std::string cut_text(const CutFacts& cut);

/// How the plan computes a vertex, and `cost` of all that it stands for: how it is cut, bytes, seconds, what moves.
std::string planned_text(const Explanation& explained, std::size_t vertex, const VertexCost& cost,
                         const Folding& folding);

/// The second best way to cut a vertex, and why it lost, on a line of its own.
std::string runner_up_text(const std::string& vertex, const RunnerUpFacts& other, CostKind kind);
/// Why labels of a vertex are not cut in any plan; "" where all can be.
std::string whole_labels_text(const std::vector<WholeLabel>& whole);

/// "1.13 times the least that any plan moves", on a line of its own; nothing where that is nothing, and where an
/// earlier vertex has received what this one needs.
std::string least_text(const VertexCost& cost, const std::optional<double>& least);

/// Each input, and on which sites it lies.
std::string placed_inputs_text(const Explanation& explained, const std::vector<VertexCost>& costs,
                               const Folding& folding);

/// Tilings of plans by kcut; of several plans, or in full, their costs, and the most that sites hold.
std::string comparison_text(const Explanation& explained, const SourceText& source, const Folding& folding, bool full);

/// The vertices that two plans compute differently, and what the difference costs.
std::string plan_difference_text(const Compiled& compiled, const PlanReport& first, const PlanReport& second);

}  // namespace einrel
