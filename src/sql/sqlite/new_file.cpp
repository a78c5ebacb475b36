#include "sql/sqlite/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_error.h"
#include "base/janitor.h"
#include "base/open_file.h"
#include "base/text.h"

namespace einrel::sql {
namespace {

std::string journal_of(const std::string& file) { return file + "-journal"; }

/// Another name than the one it has, but not in place of another file.
void give_name(const std::string& file, const std::string& name) {
  if (::link(file.c_str(), name.c_str()) == 0) {
    ::unlink(file.c_str());
    return;
  }
  // Of a file system without second names (FAT). Network file systems have these, and rename only in place of others.
  if (errno != EEXIST && ::renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, name.c_str(), RENAME_NOREPLACE) == 0) return;
  if (errno != EEXIST) throw_write_error(name, errno);
  throw RunError(
      fmt::format("cannot make the database '{}': somebody else has just made a file of that name; it is as that one "
                  "left it. Try again",
                  printable(name)));
}

}  // namespace

NewFile::NewFile(const std::string& path) {
  check_replaceable(path);
  path_ = through_links(path);
  temporary_ = AtomicFile(path_).temporary();  // which is gone, and whose name nobody can foresee
  remove_at_death(temporary_);
  remove_at_death(journal_of(temporary_));
}

NewFile::~NewFile() {
  for (const std::string& file : {temporary_, journal_of(temporary_)}) {
    std::error_code absent;
    std::filesystem::remove(file, absent);
    forget_at_death(file);
  }
}

void NewFile::keep() {
  std::error_code unknown;
  if (std::filesystem::file_size(temporary_, unknown) == 0 || unknown) return;  // it may be kept already
  give_name(temporary_, path_);
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  // As SQLite does for its journals: after this a crash of the machine leaves the name. Not every file system can.
  std::ignore = ::fsync(OpenFile(folder.empty() ? "." : folder).descriptor());
}

}  // namespace einrel::sql
