#include "exec/memory/spill.h"

// The one header of StarPU 1.3 that forgets to say that it is C; before starpu.h, which includes it.
extern "C" {
#include <starpu_disk.h>
}

#include <starpu.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "base/error.h"

namespace einrel {
namespace {

template <class Action>
auto or_end(const Spill& spill, Action&& action) -> decltype(action()) {
  try {
    return action();
  } catch (...) {
    spill.on_failure(std::current_exception());
    std::_Exit(2);
  }
}

SpillSpace& space_of(void* base) { return *static_cast<SpillSpace*>(base); }
/// What goes through StarPU as an opaque pointer.
const FilePart& chunk_of(void* object) { return *static_cast<const FilePart*>(object); }

// The operations that StarPU wants of a disk (starpu_disk.h).

void* plug(void* space, starpu_ssize_t) { return space; }
void unplug(void*) {}
int no_bandwidth(unsigned, void*) { return 1; }  // tasks are not scheduled by what moving them takes

void* make_chunk(void* base, std::size_t bytes) {
  SpillSpace& space = space_of(base);
  return or_end(space.spill, [&] {
    return std::make_unique<FilePart>(space.file->take(static_cast<std::int64_t>(bytes))).release();
  });
}
void free_chunk(void* base, void* object, std::size_t) {
  const std::unique_ptr<FilePart> chunk(static_cast<FilePart*>(object));
  space_of(base).file->give_back(*chunk);
}

int read_chunk(void* base, void* object, void* to, off_t offset, std::size_t bytes) {
  SpillSpace& space = space_of(base);
  or_end(space.spill, [&] {
    space.file->file().read(chunk_of(object).begin + offset, {static_cast<std::byte*>(to), bytes});
  });
  space.read += static_cast<std::int64_t>(bytes);
  return static_cast<int>(bytes);
}
int write_chunk(void* base, void* object, const void* from, off_t offset, std::size_t bytes) {
  SpillSpace& space = space_of(base);
  or_end(space.spill, [&] {
    space.file->file().write(chunk_of(object).begin + offset, {static_cast<const std::byte*>(from), bytes});
  });
  space.written += static_cast<std::int64_t>(bytes);
  return 0;
}

}  // namespace

void register_spill(SpillSpace& space) {
  static starpu_disk_ops operations = [] {
    starpu_disk_ops made{};
    made.plug = plug;
    made.unplug = unplug;
    made.bandwidth = no_bandwidth;
    made.alloc = make_chunk;
    made.free = free_chunk;
    made.read = read_chunk;
    made.write = write_chunk;
    return made;
  }();
  constexpr starpu_ssize_t without_limit = -1;
  const int node = starpu_disk_register(&operations, &space, without_limit);
  if (node < 0) throw RunError("StarPU takes no folder for chunks");
  starpu_disk_swap_node = node;
}

}  // namespace einrel
