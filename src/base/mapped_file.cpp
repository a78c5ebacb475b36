#include "base/mapped_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/cut_files.h"
#include "base/error.h"
#include "base/file_error.h"
#include "base/open_file.h"
#include "base/text.h"

namespace einrel {
namespace {

std::size_t ordinary_size(const OpenFile& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw_file_error("read", path, errno);
  if (S_ISDIR(status.st_mode)) throw UserError(fmt::format("cannot read '{}': it is a folder", printable(path)));
  if (!S_ISREG(status.st_mode)) {
    throw UserError(
        fmt::format("cannot read '{}': it is a pipe or a device; save its contents to a file first", printable(path)));
  }
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

FileBytes map_file(const std::string& path) {
  const OpenFile file(path);
  const std::size_t size = ordinary_size(file, path);
  if (size == 0) return {printable(path), {}, nullptr};  // mmap refuses a length of 0

  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (address == MAP_FAILED) throw_file_error("map", path, errno);
  std::shared_ptr<const void> owner(address, [size](void* mapped) { ::munmap(mapped, size); });
  const std::span bytes(static_cast<const std::byte*>(address), size);
  return {printable(path), bytes, remember_mapped(path, bytes, std::move(owner))};
}

}  // namespace einrel
