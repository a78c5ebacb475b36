#pragma once

#include <cstdint>
#include <optional>

#include "exec/tasks/fuse.h"
#include "exec/tasks/task_graph.h"

namespace einrel {

/// What every site has to do to run a plan of the implementation algebra, tuple by tuple: one kernel call per tuple
/// that an operation makes, one Send per delivery (ia/traffic.h), so that the bytes sent are those that bytes_of
/// counts. Of a chunk that is needed in part only that part is sent. Partial results are folded in the order of their
/// keys and sites; joins that are reduced onto one result begin with what does not have to come from other sites, then
/// follow their keys: the same sums in the same order for every number of threads. Throws Bug when the plan is faulty
/// or an output is no tensor (why_no_tensor in tra/relation.h). O(tuples and pieces delivered). With `most_bytes`, a
/// reduction that needs more while it runs, as one through a window does, is done in several tasks, each for a range of
/// a label.
/// `order`, of the operations as the two below have them, says whose kernels are called together; without it,
/// operations_together does.
TaskGraph tasks_of(const IaStore& store, const IaPlan& plan, const NodeOrder& order, SiteMemory memory,
                   std::optional<std::int64_t> most_bytes = std::nullopt);
TaskGraph tasks_of(const IaStore& store, const IaPlan& plan, SiteMemory memory,
                   std::optional<std::int64_t> most_bytes = std::nullopt);

/// The operations of a plan in the order in which they are lowered, those whose kernels are called together in one
/// place. Throws Bug when the plan is faulty.
NodeOrder operations_together(const IaStore& store, const IaPlan& plan);
/// The same where each calls its kernels alone.
NodeOrder operations_apart(const IaStore& store, const IaPlan& plan);

}  // namespace einrel
