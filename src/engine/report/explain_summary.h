#pragma once

#include <string>
#include <vector>

#include "base/source.h"
#include "engine/kernels.h"
#include "engine/report/fold.h"
#include "engine/report/plan_report.h"

namespace einrel {

/// Ten lines on a program that runs vertex by vertex: inputs, operations, seconds by its kernels, memory.
std::string summary_text(const Compiled& compiled, const std::vector<std::optional<VertexKernel>>& kernels,
                         const Folding& folding, const SourceText& source);

/// Ten lines on a program and a plan of it: besides, sites, planner and what moves.
std::string summary_text(const Compiled& compiled, const PlanReport& report, const PlanRequest& request,
                         const Folding& folding, const SourceText& source);

/// "Q_1 x 32" where it stands for 32 vertices.
std::string folded_name(const EinGraph& graph, const Folding& folding, std::size_t vertex);

/// The line above vertices that come several times: "26 vertices x 32: N1_1 to X_2, and so on to X_33".
std::string group_text(const EinGraph& graph, const FoldedGroup& group);

/// The group that begins with this vertex, if any.
const FoldedGroup* group_at(const Folding& folding, std::size_t vertex);

/// Whether a vertex is shown as part of a group.
bool is_in_group(const Folding& folding, std::size_t vertex);

}  // namespace einrel
