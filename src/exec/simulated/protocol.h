#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace einrel {

// What the program einrel-simgrid is told, and answers, in memory that it shares with the process that started it.
// Nothing but numbers, so that it needs no other code of ours, and we none of SimGrid.

/// What computes one job after the other and receives one message after the other.
struct SimulatedEndpoint {
  double speed = 1;        ///< seconds of computing that it does in a second
  double bandwidth = 1;    ///< bytes a second that it receives, and as many that it sends
  std::uint64_t node = 0;  ///< of SimulatedNode, whose network it shares
};

/// The network of a node: what its endpoints receive together, from each other too, and what they send.
struct SimulatedNode {
  double bandwidth = 1;  ///< bytes a second in each direction
};

/// A link that groups of so many neighbouring endpoints share: what comes from other groups, and what goes there.
struct SimulatedLink {
  std::uint64_t endpoints = 1;
  double bandwidth = 1;  ///< bytes a second in each direction
};

/// Something to do once all jobs are done that it is a successor of.
struct SimulatedJob {
  /// Where what it brings has no place in the network: only who receives it limits it. Not where there are links.
  static constexpr std::int32_t everywhere = -2;
  static constexpr std::int32_t nowhere = -1;

  double seconds = 0;            ///< of computing at speed 1; of a message, that its receiver is busy before its bytes
  std::int64_t bytes = 0;        ///< of a message
  std::int32_t at = nowhere;     ///< the endpoint that computes or receives; nowhere: done as soon as it may begin
  std::int32_t from = nowhere;   ///< of a message, the endpoint that sends
  std::uint64_t successors = 0;  ///< where its own end, behind those of the job before
};

/// When a job began and ended, in seconds; a message from when its receiver is busy with it.
struct SimulatedTimes {
  double begin = 0;
  double end = 0;
};

/// How many there are of each.
struct SimulationSizes {
  std::uint64_t endpoints = 0;
  std::uint64_t nodes = 0;
  std::uint64_t links = 0;
  std::uint64_t jobs = 0;
  std::uint64_t successors = 0;
};

/// That memory: the sizes, then endpoints, nodes, links (the outermost first), jobs, times, successors by job.
class SimulationMemory {
 public:
  explicit SimulationMemory(std::byte* begin) : sizes_(reinterpret_cast<SimulationSizes*>(begin)) {}
  static constexpr std::size_t bytes(const SimulationSizes& sizes) {
    return sizeof(SimulationSizes) + sizes.endpoints * sizeof(SimulatedEndpoint) + sizes.nodes * sizeof(SimulatedNode) +
           sizes.links * sizeof(SimulatedLink) + sizes.jobs * (sizeof(SimulatedJob) + sizeof(SimulatedTimes)) +
           sizes.successors * sizeof(std::uint32_t);
  }
  SimulationSizes& sizes() const { return *sizes_; }
  std::span<SimulatedEndpoint> endpoints() const { return behind<SimulatedEndpoint>(sizes_ + 1, sizes_->endpoints); }
  std::span<SimulatedNode> nodes() const { return behind<SimulatedNode>(end_of(endpoints()), sizes_->nodes); }
  std::span<SimulatedLink> links() const { return behind<SimulatedLink>(end_of(nodes()), sizes_->links); }
  std::span<SimulatedJob> jobs() const { return behind<SimulatedJob>(end_of(links()), sizes_->jobs); }
  std::span<SimulatedTimes> times() const { return behind<SimulatedTimes>(end_of(jobs()), sizes_->jobs); }
  std::span<std::uint32_t> successors() const { return behind<std::uint32_t>(end_of(times()), sizes_->successors); }

 private:
  template <class Item>
  static std::span<Item> behind(void* begin, std::size_t count) {
    return {static_cast<Item*>(begin), count};
  }
  template <class Item>
  static void* end_of(std::span<Item> items) {
    return items.data() + items.size();
  }

  SimulationSizes* sizes_;
};

/// The descriptor of that memory in einrel-simgrid.
inline constexpr int simulation_descriptor = 3;

}  // namespace einrel
