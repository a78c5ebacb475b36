#pragma once

#include <string>

namespace einrel {

/// The right to write into a folder, for one process at a time: it ends with this value, and with the process however
/// that ends. Where the file system knows no locks, everybody has it.
class FolderLock {
 public:
  /// Takes it. Throws UserError, which calls the folder `name`, when another process has it.
  FolderLock(const std::string& folder, const std::string& name);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  int descriptor_ = -1;
};

}  // namespace einrel
