#pragma once

#include <string>
#include <vector>

#include "base/source.h"
#include "report/explanation.h"
#include "report/plan_facts.h"

namespace einrel {

/// "measured on 2 ranks" where the machine's figures were on another number of ranks than there are sites; else "".
std::string measured_on_others(const PlanRequest& request);

/// Ten lines on a program and its plan: inputs, operations, seconds, memory, what moves. `costs` are costs_together. Of
/// one that has no plan of vertices, those that say what it computes.
std::string summary_text(const Explanation& explained, const std::vector<VertexCost>& costs, const Folding& folding,
                         const SourceText& source);

/// The most that a site holds, when, and of which tensors, with the lines of `source` that make them: "29.4 MB on site
/// 0 while C (line 3) is computed: partial results of C (line 3) 16.8 MB, A (line 2) 4.19 MB".
std::string peak_text(const EinGraph& graph, const PlanReport& report, const PlanRequest& request,
                      const SourceText& source);

/// The line above vertices that come several times: "26 vertices x 32: N1_1 to X_2, and so on to X_33".
std::string group_text(const EinGraph& graph, const FoldedGroup& group);

/// The group that begins with this vertex, if any.
const FoldedGroup* group_at(const Folding& folding, std::size_t vertex);

/// Whether a vertex is shown as part of a group.
bool is_in_group(const Folding& folding, std::size_t vertex);

}  // namespace einrel
