#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/kernels.h"
#include "plan/cost/memory.h"

namespace einrel {

/// What a run in this process holds if its tasks run in order and each tensor is freed after its last use. Inputs count
/// all the time: their owner, or the mapping of their file, outlives the run. Those that lie as `layouts` says may have
/// to be copied besides. Workspaces of kernels, and what lies between the vertices that one task computes, come on top.
/// O(tasks). Throws UserError where that takes more than 63 bits.
SitePeak forecast_memory(const PlannedTasks& tasks, const LayoutBindings& layouts = {});

/// Throws RunError, naming need, vertex and what is there, when running a program needs more memory than the machine
/// has left. `in_place` tells of an input whether it is there already (mapped from its file, say) and costs nothing
/// more; `limit` is how the user limits memory, as in "--memory SIZE".
void check_memory(const PlannedTasks& tasks, const LayoutBindings& layouts,
                  const std::function<bool(const StoredRelation&)>& in_place, std::string_view limit);

/// What this process can still get: the least of what the machine has free, what its control group and what its own
/// address space allow. Unset where the system does not say.
std::optional<std::int64_t> available_memory();

/// Throws RunError when the machine has less than `needed` bytes left for `what`, as in "computing 'Z'".
void check_available(std::int64_t needed, const std::string& what, std::string_view limit);

/// The largest memory this process has had so far, mapped files included, if the system says so.
std::optional<std::int64_t> peak_resident_bytes();

/// How much of this process's memory now is pages of files: mapped inputs and the program itself, not what it
/// allocated. The system takes them back when memory is short. If the system says so.
std::optional<std::int64_t> resident_file_bytes();

}  // namespace einrel
