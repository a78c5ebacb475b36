#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace einrel {

/// Where parts of inputs come from: chunks of the plan, or any box can be read, whatever the plan says
/// (exec/tasks/from_ia with `most_bytes`, sites sharing memory).
enum class InputParts : std::uint8_t { of_chunks, any_box };

/// The same sites with more parts on them: every vertex is cut, until what one part reads and makes, with another
/// partial result where that is added to it, takes at most so many bytes as `most_bytes` has for the vertex, or nothing
/// can be cut any more. First along labels that readers have at a constant, as A[3,b]: each then needs one part. Next
/// along a label of which an operand lies in more parts: what comes in the pieces in which it is needed is not put
/// together. Else along the label whose parts are longest, and along labels whose partial results would all be alive
/// together last. An input lies in chunks no larger than its readers want, unless any box of it can be read.
void make_parts_finer(const EinGraph& graph, Plan& plan, const std::vector<std::int64_t>& most_bytes,
                      InputParts inputs);

/// Whether make_parts_finer could cut a vertex further.
bool can_be_finer(const EinGraph& graph, const Plan& plan, std::size_t v);

/// Cuts what a vertex reads at least as finely as the vertex does along each dimension, where that can be cut: a part
/// put together from several others then reads no more than it makes. Whether anything was cut.
bool cut_operands(const EinGraph& graph, Plan& plan, std::size_t reader, InputParts inputs);

/// Parts of results of a plan that lie in other chunks than their readers need, at least: where chunks of both begin at
/// the same places, each that is read goes to one that is made.
double copies_of(const EinGraph& graph, const Plan& plan, InputParts inputs);

/// Kernel calls of a plan, all vertices together.
double calls_of(const EinGraph& graph, const Plan& plan);

}  // namespace einrel
