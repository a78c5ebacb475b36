#pragma once

#include <cstdint>

#include "machine/machine.h"
#include "plan/layout.h"
#include "plan/plan.h"

namespace einrel {

/// What the models of searches (cost_models.cpp) and the exact costs of a plan (exact_costs.h) are both made of. Shapes
/// are whole tensors', seconds those of the site that has most to do.

double elements_in(const Shape& bound);
double copies_in(const Layout& layout);
double sites_in(const Layout& layout);

/// Whether it finds the position of an extreme: that travels before the position does.
bool is_argument(const Vertex& vertex);
/// Bytes of each result that go back to those who have a part of it.
std::int64_t bytes_back(const Vertex& vertex);
/// Floats, and bytes, of the partial results that others than their owners have, on all sites.
double reduced_floats(const Vertex& vertex, const VertexPlan& plan);
double reduced_bytes(const Vertex& vertex, const VertexPlan& plan);

/// Work and memory traffic of the site that has most of them, and the start of its kernel calls.
double vertex_seconds(const EinGraph& graph, const Vertex& vertex, const VertexPlan& plan, const Machine& machine);
/// An owner of results adds the others' parts of these to its own, one after the other, and finishes them.
double adding_seconds(const Vertex& vertex, const VertexPlan& plan, const Machine& machine);
/// An owner of results receives the others' parts of these.
double receiving_parts_seconds(const Vertex& vertex, const VertexPlan& plan, const Machine& machine);

/// Whether a site has several parts in one layout that are not made of whole parts of another.
bool cuts_parts_of(const Layout& other, const Layout& layout);
/// Copying, on each site, what it needs: where that cuts finer than it lies, or puts together what lies in parts.
double copying_seconds(const Vertex& tensor, const Layout& have, const Layout& need, const Machine& machine);
/// What many sites need goes from one to two others, from these to the next ones, and so on (ia/traffic, deliveries).
double tree_depth(double copies);
/// How many messages a site waits for that receives this part of what it needs: a piece each, and no fewer than copies
/// take to come to it.
double messages_to(const Layout& have, const Layout& need, double part, double fewest);

}  // namespace einrel
