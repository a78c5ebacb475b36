#pragma once

#include <cstdint>

namespace einrel::bench {

/// Bytes that this process has given to MPI for others since the last reset, by wrapping MPI's calls (its profiling
/// interface). A broadcast counts once for each process that receives it, a reduction once for each that sends.
struct MovedBytes {
  std::int64_t all = 0;
  std::int64_t of_starpu =
      0;  ///< what StarPU sends of its data; its announcements, and others' messages, are not in it
};
MovedBytes moved_bytes();
void reset_moved_bytes();

}  // namespace einrel::bench
