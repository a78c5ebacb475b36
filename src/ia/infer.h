#pragma once

#include "ia/ia_program.h"

namespace einrel {

/// The type, placement and cost of an operation from those of its inputs (TRA paper, section 5.3). Throws UserError
/// when it cannot run as it stands: besides what the TRA refuses, a join or concat whose partners lie on different
/// sites, a fold that would count copies of a tuple twice (tuples on several sites and a group that is not the same on
/// each), and operations on partial aggregates other than moving them to one site each, filtering, rekeying and folding
/// them with the same kernel. O(tuples).
void infer_node(IaNode& node, const std::vector<const IaNode*>& inputs, std::int64_t sites);

/// Per chunk, the sites of its tuples, ascending.
using SiteLists = std::vector<std::vector<Site>>;
/// All lists are empty when the relation is Everywhere. Of a partial relation a site may stand several times.
SiteLists sites_of_chunks(const PhysicalType& type);
/// Where tuples lie after their keys were mapped: Partitioned stays so while the map copies its positions.
Placement mapped(const Placement& placement, const KeyMap& map);

}  // namespace einrel
