#pragma once

#include <cstdint>

namespace einrel::test {

/// What this process has given to MPI to send since the last reset, counted between StarPU and the MPI library by
/// wrapping MPI's own calls (its profiling interface), so that it does not rely on what either of them says.
struct SentBytes {
  std::int64_t payload = 0;    ///< of chunks
  std::int64_t messages = 0;   ///< that carried them
  std::int64_t envelopes = 0;  ///< StarPU's announcements, one per message
  std::int64_t others = 0;     ///< messages that are neither
};
SentBytes sent_bytes();
void reset_sent_bytes();

}  // namespace einrel::test
