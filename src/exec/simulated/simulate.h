#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/simulated/protocol.h"

namespace einrel {

/// Jobs, and what they run on.
struct Simulation {
  std::vector<SimulatedEndpoint> endpoints;
  std::vector<SimulatedNode> nodes;
  std::vector<SimulatedLink> links;  ///< the outermost first, groups inside groups
  std::vector<SimulatedJob> jobs;
  std::vector<std::uint32_t> successors;  ///< of each job, one after the other
};

/// Jobs whose order is said by pairs: what has to be done before what.
class SimulationOrder {
 public:
  void add(std::size_t before, std::size_t after);
  /// Puts them into a simulation that has all of its jobs.
  void put_into(Simulation& simulation) const;

 private:
  std::vector<std::uint32_t> before_;
  std::vector<std::uint32_t> after_;
};

/// When each job begins and ends. An endpoint computes one job after the other and receives one message after the
/// other, of those that may begin the first in the order of jobs; both at a time. Bytes that flow at the same time
/// share what senders, nodes, links and receivers carry as evenly as these allow (max-min fairness, by SimGrid:
/// Casanova et al., Versatile, Scalable, and Accurate Simulation of Distributed Applications and Platforms, 2014).
/// `program` is einrel-simgrid. Throws RunError when it cannot start, or fails.
std::vector<SimulatedTimes> simulate(const Simulation& simulation, const std::string& program);

}  // namespace einrel
