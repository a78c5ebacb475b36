#pragma once

#include <exception>
#include <functional>
#include <string>

namespace einrel {

/// Where StarPU puts chunks that memory has no room for.
struct Spill {
  std::string folder;
  /// Told when the disk refuses; has to end the process, since StarPU cannot go on without the chunk.
  std::function<void(std::exception_ptr)> on_failure;
};

/// Throws UserError when no file can be made there.
void check_spill(const Spill& spill);

/// Makes the folder StarPU's swap space: a file per chunk, with room for all of it from the start and without a name,
/// so that nothing is left however the process ends. After StarPU has started; `spill` must outlive it. Throws
/// RunError when StarPU does not take it.
void register_spill(const Spill& spill);

}  // namespace einrel
