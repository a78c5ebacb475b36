#include "run/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "exec/executors/serial/shared_workers.h"

namespace einrel {
namespace {

/// The number behind a word in one of the system's status files.
std::optional<std::int64_t> number_after(const char* path, const std::string& word) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(word)) return std::strtoll(line.c_str() + word.size(), nullptr, 10);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> available_memory() {
  std::optional<std::int64_t> least;
  const auto limit = [&](std::int64_t bytes) {
    least = std::min(least.value_or(bytes), std::max<std::int64_t>(bytes, 0));
  };
  if (const auto kilobytes = number_after("/proc/meminfo", "MemAvailable:")) limit(*kilobytes * 1024);
  const auto group_limit = number_after("/sys/fs/cgroup/memory.max", "");
  const auto group_use = number_after("/sys/fs/cgroup/memory.current", "");
  const auto group_files = number_after("/sys/fs/cgroup/memory.stat", "file ");  // cached files make room when asked
  const bool has_group = group_limit && *group_limit > 0 && group_use && group_files;  // "max" reads as 0
  if (has_group) limit(*group_limit - *group_use + *group_files);
  rlimit space{};
  const auto used = number_after("/proc/self/status", "VmSize:");
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY && used) {
    limit(static_cast<std::int64_t>(space.rlim_cur) - *used * 1024);
  }
  return least;
}

void check_available(std::int64_t needed, const std::string& what, std::string_view limit) {
  auto available = available_memory();
  if (available && needed > *available) {
    SharedWorkers::end_idle();  // what they keep is in use, to the system
    available = available_memory();
  }
  if (!available || needed <= *available) return;
  const auto [wanted, free] = bytes_texts(needed, *available);
  throw RunError(
      fmt::format("{} needs {} of memory, but only {} are free; use smaller extents, or limit it ({}): chunks then go "
                  "to disk",
                  what, wanted, free, limit));
}

std::optional<std::int64_t> peak_resident_bytes() {
  // Not getrusage: what it reports begins with the peak of the process that started this one.
  const auto kilobytes = number_after("/proc/self/status", "VmHWM:");
  return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
}

std::optional<std::int64_t> resident_file_bytes() {
  const auto kilobytes = number_after("/proc/self/status", "RssFile:");
  return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
}

}  // namespace einrel
