#pragma once

#include <string>

namespace einrel {

/// Files and folders that must not outlive this process, however it ends: by an error, Ctrl-C, kill -9. A small process
/// that starts with the first of them waits for the end of this one and removes what is left. Best effort: where
/// no process can be started, they stay after a violent end.
void remove_at_death(const std::string& path);
/// The file has got its name, or is removed already.
void forget_at_death(const std::string& path);

/// A private folder for the time that this lives; removed with all that is in it, also when the process is killed.
class ScratchFolder {
 public:
  /// In `parent`, or the system's temporary folder when that is empty. Throws UserError when it cannot be made.
  explicit ScratchFolder(const std::string& parent);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace einrel
