#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace einrel {

/// The same sites with more parts on them: every vertex is cut, until what one part reads and makes, with another
/// partial result where that is added to it, takes at most so many bytes as `most_bytes` has for the vertex, or nothing
/// can be cut any more. First along labels that readers have at a constant, as A[3,b]: each then needs one part. Next
/// along a label of which an operand lies in more parts: what comes in the pieces in which it is needed is not put
/// together. Else along the label whose parts are longest, and along labels whose partial results would all be alive
/// together last. An input lies in chunks no larger than its readers want.
void make_parts_finer(const EinGraph& graph, Plan& plan, const std::vector<std::int64_t>& most_bytes);

/// Whether make_parts_finer could cut a vertex further.
bool can_be_finer(const EinGraph& graph, const Plan& plan, std::size_t v);

/// Cuts what a vertex reads at least as finely as the vertex does along each dimension, where that can be cut: a part
/// put together from several others then reads no more than it makes. Whether anything was cut.
bool cut_operands(const EinGraph& graph, Plan& plan, std::size_t reader);

/// Parts of results of a plan that lie in other chunks than their readers need, at least: where chunks of both begin at
/// the same places, each that is read goes to one that is made.
double copies_of(const EinGraph& graph, const Plan& plan);

/// Kernel calls of a plan, all vertices together.
double calls_of(const EinGraph& graph, const Plan& plan);

}  // namespace einrel
