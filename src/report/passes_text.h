#pragma once

#include <string>

#include "run/planned_tasks.h"

namespace einrel {

/// What each pass made of a program, on the way to these tasks of it: vertices before and after, seconds, what changed.
/// Of fusion, kernels before and after, and which tensors are computed together; nothing where tasks were not made.
std::string passes_text(const Compiled& compiled, const PlannedTasks& tasks);

/// `einrel list passes`.
std::string passes_list();

}  // namespace einrel
