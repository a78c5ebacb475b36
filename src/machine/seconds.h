#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "machine/machine.h"

namespace einrel {

// The one model of seconds. Offers of kernels ask it of nominal_processor, for their order decides which one computes;
// plans ask it of a machine; a session, before it decides how its tasks run. What it is asked of is counted by those
// who ask: operations, bytes, messages.

// On one thread of a processor.

/// To read so many bytes once, or to write them, which takes two transfers: of less than others leave of the cache that
/// several cores share from there, else from memory.
constexpr double transfer_seconds(const Processor& processor, double bytes) {
  const double cached = 0.95 * static_cast<double>(processor.third_cache);
  return bytes / (bytes < cached ? processor.cache_bandwidth : processor.thread_bandwidth);
}

/// A byte that is copied from one place to another, in rows that are not short.
inline constexpr double copied_byte_seconds = 0.14e-9;

/// A kernel call of so many scalar operations on f32 that reads and writes so many bytes.
constexpr double call_seconds(const Processor& processor, double flops, double bytes) {
  return processor.call_seconds + std::max(flops / processor.flops_per_core, bytes / processor.thread_bandwidth);
}

// Parts of a kernel, wherever it runs: of nominal_processor.

/// What a part takes at least to be worth another thread: of what packs nothing, of loops over elements, and of what
/// packs that which other parts pack, too.
inline constexpr double unpacked_part_seconds = nominal_processor.part_seconds;
inline constexpr double looped_part_seconds = 2 * nominal_processor.part_seconds;
inline constexpr double packed_part_seconds = 4 * nominal_processor.part_seconds;

/// Into how many parts to cut what takes so long, few enough to be worth their start. No more than 64, however many
/// cores there are: bits may not depend on that.
constexpr std::int64_t parts_worth(double seconds, double part_seconds) {
  constexpr double most = 64;
  return static_cast<std::int64_t>(std::clamp(seconds / part_seconds, 1.0, most));
}

/// A kernel call that takes so long on one thread, on several: parts are never quite equal, and it waits for the last.
constexpr double seconds_on_threads(double seconds, std::size_t threads) {
  constexpr double efficiency = 0.9;
  if (threads == 1 || seconds <= packed_part_seconds) return seconds;
  return std::max(seconds / (efficiency * static_cast<double>(threads)), packed_part_seconds);
}

// On sites of a machine.

/// What a kernel of this name takes on one thread that its model, of nominal_processor, says so of.
inline double kernel_seconds(const std::string& name, double modelled, const Machine& machine) {
  const auto known = machine.kernel_times.find(name);
  return known == machine.kernel_times.end() ? modelled : known->second * modelled;
}

/// How many times as fast so many sites are as all of them, of which each is so many times as fast alone.
inline double speed_up(double alone, std::int64_t busy, const Machine& machine) {
  const std::int64_t busy_on_node = std::min(busy, machine.sites_per_node);
  return std::min(alone, static_cast<double>(machine.sites_per_node) / static_cast<double>(busy_on_node));
}

/// To read or write so many bytes of memory while so many sites do.
inline double memory_seconds(double bytes, std::int64_t busy, const Machine& machine) {
  return bytes / (machine.memory_bandwidth * speed_up(machine.memory_alone, busy, machine));
}

/// What the site does that has most to do.
struct SiteWork {
  double flops = 0;       ///< scalar operations
  DType on = DType::f32;  ///< what they multiply and add
  double bytes = 0;       ///< read and written
  double calls = 0;       ///< of kernels
  std::int64_t busy = 1;  ///< sites that have work at the time
};

/// Scalar operations a second of one core on numbers of this type, as the machine says. Where it says nothing, f64 is
/// half as fast as f32, and everything else as fast: narrow numbers are computed in f32.
inline double flops_per_core(DType dtype, const Machine& machine) {
  const auto known = machine.flops_of.find(dtype);
  if (known != machine.flops_of.end()) return known->second;
  return machine.processor.flops_per_core * (dtype == DType::f64 ? 0.5 : 1);
}

inline double computing_seconds(const SiteWork& work, const Machine& machine) {
  const double rate =
      machine.cores * flops_per_core(work.on, machine) * speed_up(machine.flops_alone, work.busy, machine);
  return std::max(work.flops / rate, memory_seconds(work.bytes, work.busy, machine)) +
         work.calls / machine.cores * machine.task_seconds;
}

/// What comes to each of so many sites, as if of one node, in so many messages, which a site handles one after the
/// other.
inline double receiving_seconds(double bytes, double messages, double sites, const Machine& machine) {
  if (bytes == 0) return 0;
  const double rate =
      machine.network_bandwidth * speed_up(machine.network_alone, static_cast<std::int64_t>(sites), machine);
  return messages * machine.network_latency + bytes / rate;
}

/// What a group of sites receives through a link that it shares.
inline double crossing_seconds(double bytes, const Link& link) {
  return bytes > 0 ? link.latency + bytes / link.bandwidth : 0;
}

}  // namespace einrel
