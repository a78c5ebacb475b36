#include "exec/starpu/spill.h"

// The one header of StarPU 1.3 that forgets to say that it is C; before starpu.h, which includes it.
extern "C" {
#include <starpu_disk.h>
}

#include <fcntl.h>
#include <starpu.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>

#include "base/error.h"
#include "base/file_error.h"

namespace einrel {
namespace {

/// What goes through StarPU as an opaque pointer: the number of an open file.
struct SpilledChunk {
  int file = -1;
};

/// The part of a chunk that is read or written.
struct Stretch {
  std::byte* memory = nullptr;
  off_t offset = 0;
  std::size_t bytes = 0;
};

template <class Action>
auto or_end(const Spill& spill, Action&& action) -> decltype(action()) {
  try {
    return action();
  } catch (...) {
    spill.on_failure(std::current_exception());
    std::_Exit(2);
  }
}

int nameless_file(const std::string& folder) {
  const int unnamed = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (unnamed >= 0) return unnamed;
  // Not every file system has these; then it has a name for a moment.
  std::string name = folder + "/einrel-spill-XXXXXX";
  const int file = ::mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) throw_file_error("make a file in", folder, errno);
  ::unlink(name.c_str());
  return file;
}

/// Reads or writes all of a stretch.
template <class Call>
void transfer(const Spill& spill, const SpilledChunk& chunk, Stretch stretch, Call&& call) {
  while (stretch.bytes > 0) {
    const ssize_t done = call(chunk.file, stretch.memory, stretch.bytes, stretch.offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw_write_error(spill.folder, done == 0 ? EIO : errno);
    stretch.memory += done;
    stretch.offset += done;
    stretch.bytes -= static_cast<std::size_t>(done);
  }
}

SpillSpace& space_of(void* base) { return *static_cast<SpillSpace*>(base); }
const SpilledChunk& chunk_of(void* object) { return *static_cast<const SpilledChunk*>(object); }

// The operations that StarPU wants of a disk (starpu_disk.h).

void* plug(void* space, starpu_ssize_t) { return space; }
void unplug(void*) {}
int no_bandwidth(unsigned, void*) { return 1; }  // tasks are not scheduled by what moving them takes

void* make_chunk(void* base, std::size_t bytes) {
  const Spill& spill = space_of(base).spill;
  return or_end(spill, [&] {
    auto chunk = std::make_unique<SpilledChunk>(SpilledChunk{nameless_file(spill.folder)});
    const int refused = ::posix_fallocate(chunk->file, 0, static_cast<off_t>(bytes));
    if (refused != 0) throw_write_error(spill.folder, refused);
    return chunk.release();
  });
}
void free_chunk(void*, void* object, std::size_t) {
  const std::unique_ptr<SpilledChunk> chunk(static_cast<SpilledChunk*>(object));
  ::close(chunk->file);
}

int read_chunk(void* base, void* object, void* to, off_t offset, std::size_t bytes) {
  SpillSpace& space = space_of(base);
  or_end(space.spill, [&] {
    transfer(space.spill, chunk_of(object), {static_cast<std::byte*>(to), offset, bytes}, ::pread);
  });
  space.read += static_cast<std::int64_t>(bytes);
  return static_cast<int>(bytes);
}
int write_chunk(void* base, void* object, const void* from, off_t offset, std::size_t bytes) {
  SpillSpace& space = space_of(base);
  or_end(space.spill, [&] {
    // Not written through: both directions share one type.
    auto* const memory = const_cast<std::byte*>(static_cast<const std::byte*>(from));
    transfer(space.spill, chunk_of(object), {memory, offset, bytes}, ::pwrite);
  });
  space.written += static_cast<std::int64_t>(bytes);
  return 0;
}

}  // namespace

void check_spill(const Spill& spill) { ::close(nameless_file(spill.folder)); }

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
