#pragma once

#include <cstdint>

namespace einrel::bench {

/// What this process has given to MPI for others since the last reset, counted by wrapping MPI's own calls (its
/// profiling interface), so that it does not rely on what those above MPI say. A broadcast counts once for each process
/// that receives it, a reduction once for each that sends.
struct MovedBytes {
  std::int64_t all = 0;        ///< bytes
  std::int64_t of_starpu = 0;  ///< bytes of StarPU's data
  std::int64_t messages = 0;   ///< that carried those
  std::int64_t envelopes = 0;  ///< StarPU's announcements, one per message
  std::int64_t others = 0;     ///< messages that are neither
};
MovedBytes moved_bytes();
void reset_moved_bytes();

}  // namespace einrel::bench
