#pragma once

#include <map>
#include <set>
#include <vector>

#include "ia/ia_program.h"

namespace einrel {

/// Operations of a plan whose kernels run together, tuple by tuple: what lies between them stays in the cache, as in a
/// run of the whole program. Chosen by the plan alone, so that every executor adds up alike.
struct FusedNodes {
  /// In an order in which they can be lowered. Operations that only pass arrays on with other keys, from one member to
  /// another, belong to them.
  std::vector<IaId> members;
  /// Those of the members that other operations read or that are outputs.
  std::set<IaId> wanted;
};

/// The operations of a plan, in an order in which each comes after what it reads, those that run together in one place.
using NodeOrder = std::vector<FusedNodes>;

/// `nodes` as nodes_of gives them; `apart`, of them, have their kernels called in a way of their own. Merges the
/// kernels of all local operations whose tuples correspond one to one, as tasks do (merge_kernels), and asks
/// chunk_program what of that runs together on the first chunks. O(nodes log nodes).
NodeOrder nodes_together(const IaStore& store, const IaPlan& plan, const std::vector<IaId>& nodes,
                         const std::set<IaId>& apart);

}  // namespace einrel
