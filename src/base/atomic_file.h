#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace einrel {

/// Where a file of this name lies: the name itself, or where the symbolic links on the way to it lead, whether there is
/// something or not. In a folder where all may write but remove only what is theirs (/tmp), a link is followed only if
/// it belongs to who runs this or to the folder's owner, as Linux does with fs.protected_symlinks; else throws
/// UserError that names the link and its owner.
std::string through_links(const std::string& path);

/// Throws UserError unless an ordinary file can be made, or one that stands there replaced, at `path`:
/// links are followed as through_links does, its folder must exist and be writable, and what stands there must be a
/// writable ordinary file.
void check_replaceable(const std::string& path);

/// Removes what an AtomicFile in this folder left whose process was killed. No other may be at work there (FolderLock).
void remove_leftovers(const std::string& folder);

/// Writes all bytes to an open file, from `offset` on. Throws RunError that calls it `name`.
void write_at(int descriptor, const std::string& name, std::uint64_t offset, std::span<const std::byte> bytes);

/// Makes or replaces a file that holds this text, or changes nothing. Throws as AtomicFile does.
void write_text(const std::string& path, const std::string& text);

/// A file that appears under its name only when it is complete. Bytes go to a temporary name in the same
/// folder; `commit` renames it; without a commit the destructor removes it and nothing has changed.
/// Symbolic links are followed as through_links does, the permissions of a replaced file are kept, those of a new one
/// follow the umask. Nothing is synced to the disk: it guards against failure of the run, not of the power.
class AtomicFile {
 public:
  /// Throws as check_replaceable does, and RunError when the temporary cannot be made.
  explicit AtomicFile(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Appends. Throws RunError (disk full, ...) with the path and the reason.
  void write(std::span<const std::byte> bytes);
  /// Replaces bytes that were written before. Throws RunError.
  void rewrite(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Makes the file that long and takes the room for it on the disk, so that filling it in cannot fail for want of it.
  /// Throws RunError.
  void extend(std::uint64_t bytes);
  /// Where the bytes are until `commit`.
  const std::string& temporary() const { return temporary_; }
  /// Hands the last bytes to the system; no writing afterwards. Throws RunError.
  void close();
  /// Closes and renames: the file is now there, complete. Throws RunError.
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

}  // namespace einrel
