#include "base/unnamed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file_error.h"

namespace einrel {
namespace {

int open_unnamed(const std::string& folder) {
  const int unnamed = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (unnamed >= 0) return unnamed;
  // Not every file system has these; then it has a name for a moment.
  std::string name = folder + "/einrel-spill-XXXXXX";
  const int file = ::mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) throw_file_error("make a file in", folder, errno);
  ::unlink(name.c_str());
  return file;
}

/// Calls for what is left until all bytes are done.
template <class Bytes, class Call>
void transfer(const std::string& folder, int file, std::int64_t offset, Bytes bytes, Call&& call) {
  while (!bytes.empty()) {
    const ssize_t done = call(file, bytes.data(), bytes.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw_write_error(folder, done == 0 ? EIO : errno);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += done;
  }
}

}  // namespace

std::string temporary_folder() {
  std::error_code unknown;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(unknown);
  return unknown ? "." : folder.string();
}

UnnamedFile::UnnamedFile(std::string folder) : folder_(std::move(folder)), descriptor_(open_unnamed(folder_)) {}
UnnamedFile::~UnnamedFile() { ::close(descriptor_); }

void UnnamedFile::take_room(std::int64_t offset, std::int64_t bytes) const {
  if (bytes == 0) return;
  int refused = EINTR;
  while (refused == EINTR) refused = ::posix_fallocate(descriptor_, offset, bytes);
  if (refused != 0) throw_write_error(folder_, refused);
}

void UnnamedFile::write(std::int64_t offset, std::span<const std::byte> from) const {
  transfer(folder_, descriptor_, offset, from, ::pwrite);
}
void UnnamedFile::read(std::int64_t offset, std::span<std::byte> to) const {
  transfer(folder_, descriptor_, offset, to, ::pread);
}

std::shared_ptr<std::byte[]> UnnamedFile::map(std::int64_t bytes) const {
  take_room(0, bytes);  // a page that has none would end the process when it is written
  const auto size = static_cast<std::size_t>(bytes);
  void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (address == MAP_FAILED) throw_file_error("map a file in", folder_, errno);
  return {static_cast<std::byte*>(address), [size](std::byte* mapped) { ::munmap(mapped, size); }};
}

}  // namespace einrel
