#pragma once

#include "ia/ia_program.h"

namespace einrel {

/// The type, placement and cost of an operation from those of its inputs (TRA paper, section 5.3). Throws UserError
/// when it cannot run as it stands: besides what the TRA refuses, a join or concat whose partners lie on different
/// sites, and operations on partial aggregates other than moving, filtering, rekeying and folding them with the same
/// kernel. O(tuples).
void infer_node(IaNode& node, const std::vector<const IaNode*>& inputs, std::int64_t sites);

/// Where `positions` of the right key stand in the joined key.
KeyPositions joined_positions_of_right(const KeyPositions& positions, std::size_t left_arity, std::size_t right_arity,
                                       const KeyPositions& keys_left, const KeyPositions& keys_right);
/// Where tuples lie after their keys were mapped: Partitioned stays so while the map copies its positions.
Placement mapped(const Placement& placement, const KeyMap& map);

}  // namespace einrel
