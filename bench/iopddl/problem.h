#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "plan/search/limited_network.h"

namespace einrel::iopddl {

/// A problem of the ASPLOS / EuroSys 2025 contest on intra-operator parallelism (google/iopddl): a strategy for each
/// node, of least cost, so that what nodes use stays within a limit at every time at which they are alive.
struct Problem {
  std::string name;
  LimitedNetwork network;
};

/// Reads the contest's JSON. Costs from a tenth of 10^18 on are impossible. Throws std::runtime_error, with what is
/// wrong, for anything else.
Problem read_problem(std::istream& from);

}  // namespace einrel::iopddl
