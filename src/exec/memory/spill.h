#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "exec/memory/spill_file.h"

namespace einrel {

/// Where StarPU puts chunks that memory has no room for.
struct Spill {
  std::string folder;
  /// Told when the disk refuses; has to end the process, since StarPU cannot go on without the chunk.
  std::function<void(std::exception_ptr)> on_failure;
};

/// The disk as StarPU sees it.
struct SpillSpace {
  explicit SpillSpace(Spill where) : spill(std::move(where)) {}
  Spill spill;
  std::optional<SpillFile> file;          ///< that all chunks share; made before StarPU sees the disk
  std::atomic<std::int64_t> written = 0;  ///< bytes, of chunks that had no room
  std::atomic<std::int64_t> read = 0;     ///< bytes, when they were needed again
};

/// Makes the file StarPU's swap space. After StarPU has started; `space` must outlive it. Throws RunError when StarPU
/// does not take it.
void register_spill(SpillSpace& space);

}  // namespace einrel
