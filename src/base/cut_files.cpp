#include "base/cut_files.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace einrel {
namespace {

/// A mapped file, or room for one. The handler of the signal reads begin, end and next, and writes cut.
struct Mapped {
  std::atomic<std::uintptr_t> begin = 0;
  std::atomic<std::uintptr_t> end = 0;  ///< 0: room
  std::atomic<std::size_t> cut = 0;     ///< which cut of the process it met last; 0: none
  Mapped* next = nullptr;
  Mapped* next_room = nullptr;
  std::string path;
  struct stat status = {};
};

/// Of this process. Its list only grows, so that it can be read while a file is added.
struct Mappings {
  std::mutex mutex;  ///< of what the handler does not look at
  std::deque<Mapped> all;
  std::map<std::uintptr_t, Mapped*> by_begin;  ///< those that are mapped
  Mapped* first_room = nullptr;                ///< of the others
  std::atomic<Mapped*> first = nullptr;
  std::atomic<std::size_t> cuts = 0;
  std::atomic<std::size_t> watches = 0;  ///< that live
  std::string last_cut;                  ///< of those that are forgotten
  std::size_t last_cut_number = 0;
  struct sigaction before = {};
};

Mappings& mappings() {
  // Owned by nobody: files may be read until the process ends, and the handler of a signal looks here.
  static Mappings& of_process = *new Mappings;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
  return of_process;
}

/// For the handler.
Mapped* look_for_mapped_at(std::uintptr_t address) {
  for (Mapped* file = mappings().first; file != nullptr; file = file->next) {
    if (file->begin <= address && address < file->end) return file;
  }
  return nullptr;
}

/// Under the mutex.
const Mapped* mapped_at(std::uintptr_t address) {
  const auto behind = mappings().by_begin.upper_bound(address);
  if (behind == mappings().by_begin.begin()) return nullptr;
  const Mapped* const file = std::prev(behind)->second;
  return address < file->end ? file : nullptr;
}

std::uintptr_t address_of(std::span<const std::byte> bytes) { return reinterpret_cast<std::uintptr_t>(bytes.data()); }

/// Puts zeros where the file has ended. Runs in a handler: nothing may allocate, lock or throw.
void read_as_zeros(int, siginfo_t* information, void*) {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(information->si_addr);
  const bool is_of_file = information->si_code == BUS_ADRERR && mappings().watches > 0;
  Mapped* const file = is_of_file ? look_for_mapped_at(address) : nullptr;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t within = address % page;
  if (file == nullptr || ::mmap(static_cast<std::byte*>(information->si_addr) - within, file->end - (address - within),
                                PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
    ::sigaction(SIGBUS, &mappings().before, nullptr);  // who reads again meets what was there before
  } else {
    file->cut = ++mappings().cuts;
  }
  errno = error;
}

/// Whether the file is the one that was mapped, and shorter.
bool has_shrunk(const Mapped& file) {
  struct stat now = {};
  return ::stat(file.path.c_str(), &now) == 0 && now.st_dev == file.status.st_dev && now.st_ino == file.status.st_ino &&
         now.st_size < file.status.st_size;
}

void forget(Mapped& file) {
  const std::lock_guard lock(mappings().mutex);
  if (file.cut > mappings().last_cut_number) {
    mappings().last_cut_number = file.cut;
    mappings().last_cut = file.path;
  }
  mappings().by_begin.erase(file.begin);
  file.next_room = std::exchange(mappings().first_room, &file);
  file.end = 0;
  file.begin = 0;
}

}  // namespace

void outlive_cut_files() {
  const std::lock_guard lock(mappings().mutex);
  struct sigaction action = {};
  ::sigaction(SIGBUS, nullptr, &action);
  if (action.sa_sigaction == read_as_zeros && (action.sa_flags & SA_SIGINFO) != 0) return;
  mappings().before = action;
  action = {};
  action.sa_sigaction = read_as_zeros;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

std::optional<std::string> file_mapped_at(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mappings().mutex);
  const Mapped* const file = mapped_at(address_of(bytes));
  return file != nullptr ? std::optional(printable(file->path)) : std::nullopt;
}

std::optional<std::string> cut_file_mapped_at(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mappings().mutex);
  const Mapped* const file = mapped_at(address_of(bytes));
  if (file == nullptr || (file->cut == 0 && !has_shrunk(*file))) return std::nullopt;
  return printable(file->path);
}

CutWatch::CutWatch() : cuts_(mappings().cuts) { ++mappings().watches; }
CutWatch::~CutWatch() { --mappings().watches; }

void CutWatch::check() const {
  if (mappings().cuts == cuts_) return;
  const std::lock_guard lock(mappings().mutex);
  std::string name = mappings().last_cut;
  std::size_t number = mappings().last_cut_number;
  for (const Mapped& file : mappings().all) {
    if (file.end == 0 || file.cut <= number) continue;
    number = file.cut;
    name = file.path;
  }
  throw RunError(fmt::format("the file '{}' became shorter while it was in use", printable(name)));
}

std::shared_ptr<const void> remember_mapped(const std::string& path, std::span<const std::byte> bytes,
                                            std::shared_ptr<const void> owner) {
  const std::lock_guard lock(mappings().mutex);
  if (mappings().first_room == nullptr) {
    Mapped& made = mappings().all.emplace_back();
    made.next = mappings().first;
    mappings().first = &made;
    mappings().first_room = &made;
  }
  Mapped* const room = mappings().first_room;
  mappings().first_room = std::exchange(room->next_room, nullptr);
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored);
  room->path = ignored ? path : whole.string();
  ::stat(room->path.c_str(), &room->status);
  room->cut = 0;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  room->begin = address_of(bytes);
  mappings().by_begin[room->begin] = room;
  room->end = (address_of(bytes) + bytes.size() + page - 1) / page * page;
  return {bytes.data(), [room, owner = std::move(owner)](const void*) mutable {
            forget(*room);
            owner.reset();
          }};
}

}  // namespace einrel
