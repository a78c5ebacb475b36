#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file_error.h"
#include "base/janitor.h"
#include "base/text.h"

namespace einrel {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// The type and permissions of what stands there; nullopt, and the reason in errno, when nothing can be seen.
std::optional<mode_t> mode_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_mode;
}

constexpr std::string_view stand_in_prefix = ".einrel-";
constexpr std::string_view stand_in_extension = ".tmp";

/// A name that nobody can foresee, and so nobody has put a file or a link in its place; it does not grow with the
/// file's own, which may be as long as the system allows.
std::string stand_in_name(const std::string& folder) {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    if (errno != EINTR) throw RunError("the system gives no random numbers for the names of temporary files");
  }
  return fmt::format("{}/{}{:016x}{}", folder, stand_in_prefix, number, stand_in_extension);
}

std::string user_name(uid_t user) {
  std::array<char, 4096> room{};
  struct passwd entry {};
  struct passwd* found = nullptr;
  if (::getpwuid_r(user, &entry, room.data(), room.size(), &found) != 0 || found == nullptr)
    return fmt::format("user {}", user);
  return fmt::format("'{}'", printable(found->pw_name));
}

/// `path` leads over this link, which stands in `folder`.
void check_may_follow(const std::string& path, const fs::path& link, uid_t owner, const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) throw_file_error("write", path, errno);
  const bool is_shared = (status.st_mode & S_ISVTX) != 0 && (status.st_mode & S_IWOTH) != 0;
  if (!is_shared || owner == ::geteuid() || owner == status.st_uid) return;
  throw UserError(fmt::format(
      "cannot write '{}': the link '{}' belongs to {} and is not followed, since all may put links into '{}'; "
      "name the file itself, or another",
      printable(path), printable(link.string()), user_name(owner), printable(folder.string())));
}

/// Puts the parts of a path before those that are still to be walked.
void put_before(std::deque<fs::path>& parts, const fs::path& path) {
  const fs::path relative = path.relative_path();
  parts.insert(parts.begin(), relative.begin(), relative.end());
}

}  // namespace

std::string through_links(const std::string& path) {
  constexpr std::size_t most_links = 40;  // as Linux
  const fs::path whole = absolute_path(path);
  fs::path at = whole.root_path();
  std::deque<fs::path> parts;
  put_before(parts, whole);
  std::size_t links = 0;
  while (!parts.empty()) {
    const fs::path part = parts.front();
    const fs::path here = at / part;
    struct stat status {};
    if (::lstat(here.c_str(), &status) != 0) break;  // what is not there leads nowhere else
    parts.pop_front();
    if (part == "..") {
      at = at.parent_path();  // `at` has no links
    } else if (!S_ISLNK(status.st_mode)) {
      if (part != "." && !part.empty()) at = here;
    } else {
      check_may_follow(path, here, status.st_uid, at);
      if (++links > most_links) throw_file_error("write", path, ELOOP);
      std::error_code unread;
      const fs::path target = fs::read_symlink(here, unread);
      if (unread) throw_file_error("write", path, unread.value());
      if (target.is_absolute()) at = target.root_path();
      put_before(parts, target);
    }
  }
  if (links == 0) return path;
  for (const fs::path& part : parts) at /= part;
  return at.string();
}

namespace {

/// Checks what check_replaceable does; where a rename must go so that a symbolic link stays one.
std::string replaceable(const std::string& path) {
  if (!fs::path(path).has_filename())
    throw UserError(fmt::format("cannot write '{}': it names no file", printable(path)));
  std::string target = through_links(path);
  // Of the path as it was given: where the system does not follow links of others in shared folders, nor is it here.
  if (const auto mode = mode_of(path)) {
    if (S_ISDIR(*mode)) throw UserError(fmt::format("cannot write '{}': it is a folder", printable(path)));
    if (!S_ISREG(*mode)) throw UserError(fmt::format("cannot write '{}': it is a pipe or a device", printable(path)));
    if (::access(target.c_str(), W_OK) != 0) throw_file_error("write", path, errno);
  } else if (errno != ENOENT && errno != ENOTDIR) {
    throw_file_error("write", path, errno);
  }
  const std::string folder = folder_of(target);
  const auto mode = mode_of(folder);
  if (!mode)
    throw UserError(
        fmt::format("cannot write '{}': the folder '{}' does not exist", printable(path), printable(folder)));
  if (!S_ISDIR(*mode))
    throw UserError(fmt::format("cannot write '{}': '{}' is not a folder", printable(path), printable(folder)));
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw UserError(fmt::format("cannot write '{}': you may not create files in the folder '{}'", printable(path),
                                printable(folder)));
  }
  return target;
}

}  // namespace

void check_replaceable(const std::string& path) {
  replaceable(path);
  prepare_to_remove();
}

void remove_leftovers(const std::string& folder) {
  constexpr std::size_t digits = 16;
  std::error_code ignored;  // they do no harm
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.size() == stand_in_prefix.size() + digits + stand_in_extension.size() &&
        name.starts_with(stand_in_prefix) && name.ends_with(stand_in_extension) && entry.is_regular_file(ignored))
      fs::remove(entry.path(), ignored);
  }
}

void write_at(int descriptor, const std::string& name, std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_write_error(name, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void write_text(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

AtomicFile::AtomicFile(const std::string& path) : path_(replaceable(path)) {
  // A private file stays private, from the beginning.
  const std::optional<mode_t> replaced = mode_of(path_);
  const mode_t permissions = replaced ? *replaced & 0777U : 0666U;
  while (descriptor_ < 0) {
    temporary_ = stand_in_name(folder_of(path_));
    remove_at_death(temporary_);  // first, so that there is no moment at which it would be left
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, permissions);
    if (descriptor_ >= 0) break;
    const int refused = errno;
    forget_at_death(temporary_);
    if (refused != EEXIST) throw_file_error("write", path_, refused);
  }
  // What the umask took. Some file systems have no permissions to set, which is no reason to fail.
  if (replaced) std::ignore = ::fchmod(descriptor_, permissions);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  forget_at_death(temporary_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_write_error(path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::rewrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  write_at(descriptor_, path_, offset, bytes);
}

void AtomicFile::extend(std::uint64_t bytes) {
  if (bytes == 0) return;
  const int refused = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes));
  if (refused != 0) throw_write_error(path_, refused);
}

void AtomicFile::close() {
  if (descriptor_ < 0) return;
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_write_error(path_, errno);
}

void AtomicFile::commit() {
  close();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) throw_write_error(path_, errno);
  forget_at_death(std::exchange(temporary_, {}));
}

}  // namespace einrel
