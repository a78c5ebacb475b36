#include "sql/sqlite/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_error.h"
#include "base/janitor.h"
#include "base/text.h"

namespace einrel::sql {
namespace {

std::string journal_of(const std::string& file) { return file + "-journal"; }

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
  if (std::filesystem::file_size(temporary_, unknown) == 0 || unknown) return;
  // Not in place of another one.
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) return;
  if (errno == EINVAL && ::link(temporary_.c_str(), path_.c_str()) == 0) return;  // of a file system without that
  if (errno == EEXIST)
    throw RunError(
        fmt::format("cannot make the database '{}': somebody else has just made a file of that name; it is "
                    "as that one left it. Try again",
                    printable(path_)));
  throw_write_error(path_, errno);
}

}  // namespace einrel::sql
