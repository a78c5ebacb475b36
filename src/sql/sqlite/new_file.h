#pragma once

#include <string>

namespace einrel::sql {

/// A file that SQLite makes: under a temporary name in the folder of its own, so that a run which fails, or is killed,
/// leaves nothing, and nobody opens what is half done.
class NewFile {
 public:
  /// Throws UserError where a file cannot be made there (check_replaceable).
  explicit NewFile(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Where it is until it is kept.
  const std::string& temporary() const { return temporary_; }
  /// Gives it its name, if something is in it, once. Throws RunError where another one has got that name in the
  /// meantime.
  void keep();

 private:
  std::string path_;
  std::string temporary_;
};

}  // namespace einrel::sql
