#pragma once

#include <einrel/program.h>

#include <vector>

#include "node.h"

// An array that somebody holds keeps its value, once a computation of others makes it, and so does what an array that
// is held is still to be computed of: a loop that looks at its progress in each step does not begin anew each time.
// What nobody holds or needs is not kept, nor what is cheap to make again.

namespace einrel::python {

/// What is computed, and the array that keeps it: the same, or what it is a copy of.
struct HeldNode {
  NodePtr computed;
  NodePtr array;
};

/// What a walk computes besides what it wants, and Python holds, or needs for what it holds: no more than 1,024 arrays
/// of 1 GiB together, the newest ones, first those that are held. None where a plan or a limit of memory is given, or
/// several processes compute, which may hold different ones.
std::vector<HeldNode> held_on_the_way(const Walk& walk, const api::RunOptions& options);

}  // namespace einrel::python
