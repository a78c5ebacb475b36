#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace einrel {

/// Where the system keeps what is not to stay; when it cannot say, here.
std::string temporary_folder();

/// A file in a folder that has no name there, so that nothing is left however the process ends. Its bytes may be read
/// and written by several threads at a time. Functions throw RunError that names the folder when the disk refuses.
class UnnamedFile {
 public:
  /// Throws UserError, too: when no file can be made there.
  explicit UnnamedFile(std::string folder);
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  /// Takes room on the disk, so that what is written there later is not refused for want of it.
  void take_room(std::int64_t offset, std::int64_t bytes) const;
  void write(std::int64_t offset, std::span<const std::byte> from) const;
  /// What was written or has room.
  void read(std::int64_t offset, std::span<std::byte> to) const;
  /// Takes room for its first `bytes`, more than 0, as memory that the system keeps on the disk where it is short;
  /// lives longer than this.
  std::shared_ptr<std::byte[]> map(std::int64_t bytes) const;

 private:
  std::string folder_;
  int descriptor_;
};

}  // namespace einrel
