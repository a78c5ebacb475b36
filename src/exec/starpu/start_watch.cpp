#include "exec/starpu/start_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/thread.h"

namespace einrel {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::array<std::string_view, 3> job_variables{"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"};
constexpr std::array<std::string_view, 3> rank_variables{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

/// The value of a variable among those of a process, which the system keeps one behind the other, each with a 0 at its
/// end.
std::optional<std::string_view> value_in(std::string_view environment, std::string_view variable) {
  while (!environment.empty()) {
    const std::string_view setting = environment.substr(0, environment.find('\0'));
    if (setting.starts_with(variable) && setting.substr(variable.size()).starts_with('='))
      return setting.substr(variable.size() + 1);
    environment.remove_prefix(std::min(setting.size() + 1, environment.size()));
  }
  return std::nullopt;
}

std::optional<int> number_of(std::optional<std::string_view> digits) {
  int number = 0;
  if (!digits) return std::nullopt;
  const auto [end, error] = std::from_chars(digits->begin(), digits->end(), number);
  return error == std::errc{} && end == digits->end() ? std::optional(number) : std::nullopt;
}

std::optional<int> own_number(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? std::nullopt : number_of(value);
}

std::string all_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A rank of this job on this machine.
struct RankHere {
  int process = 0;
  bool is_stopped = false;
};

/// Whether a process stands still by a signal: "PID (NAME) T ...", of names that may hold anything.
bool is_stopped(const fs::path& process) {
  const std::string status = all_of(process / "stat");
  const std::size_t name_end = status.rfind(") ");
  return name_end != std::string::npos && status.compare(name_end + 2, 1, "T") == 0;
}

/// Of this job, by rank. One of several processes of a rank is the one that is stopped, if any is.
std::map<int, RankHere> ranks_here() {
  std::map<int, RankHere> ranks;
  const auto job = std::find_if(job_variables.begin(), job_variables.end(),
                                [](std::string_view name) { return std::getenv(name.data()) != nullptr; });
  if (job == job_variables.end()) return ranks;
  const std::string own = std::getenv(job->data());
  std::error_code unseen;  // a process that ends meanwhile, or of others
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", unseen)) {
    const std::string name = entry.path().filename().string();
    const std::optional<int> process = number_of(name);
    if (!process) continue;
    const std::string environment = all_of(entry.path() / "environ");
    if (value_in(environment, *job) != own) continue;
    std::optional<int> rank;
    for (const std::string_view variable : rank_variables) {
      if (!rank) rank = number_of(value_in(environment, variable));
    }
    if (!rank) continue;
    RankHere& here = ranks[*rank];
    if (here.is_stopped) continue;
    here = {*process, is_stopped(entry.path())};
  }
  return ranks;
}

/// What keeps MPI from starting, since when.
class Hindrance {
 public:
  explicit Hindrance(double timeout) : timeout_(timeout) {}

  /// What is to be said of it once it has lasted too long.
  std::string look() {
    const std::map<int, RankHere> ranks = ranks_here();
    const auto stopped =
        std::find_if(ranks.begin(), ranks.end(), [](const auto& rank) { return rank.second.is_stopped; });
    if (stopped != ranks.end()) {
      if (!lasts(fmt::format("{}", stopped->first), timeout_, ranks)) return "";
      return fmt::format("rank {} (process {}) made no progress for {:.0f} s: it is stopped by a signal",
                         stopped->first, stopped->second.process, timeout_);
    }
    const std::optional<int> count = own_number("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (!count || std::ssize(ranks) >= *count) {
      what_.clear();
      return "";
    }
    constexpr double least = 10;  // it may be about to begin
    const double patience = std::max(timeout_, least);
    if (!lasts("absent", patience, ranks)) return "";
    return fmt::format("{} for {:.0f} s: it has ended, or was given another command", absent(ranks, *count), patience);
  }

 private:
  static std::string absent(const std::map<int, RankHere>& ranks, int count) {
    int rank = 0;
    while (ranks.count(rank) != 0) ++rank;
    if (own_number("OMPI_COMM_WORLD_SIZE") == count) return fmt::format("rank {} was not there", rank);
    return fmt::format("one of the {} ranks of this machine was not there", count);
  }

  /// Whether the same has lasted for so long. The lowest rank that is there says so, and others a little later if it
  /// does not.
  bool lasts(std::string what, double patience, const std::map<int, RankHere>& ranks) {
    if (what != what_) {
      what_ = std::move(what);
      since_ = Clock::now();
    }
    const auto lowest =
        std::find_if(ranks.begin(), ranks.end(), [](const auto& rank) { return !rank.second.is_stopped; });
    const bool is_lowest = lowest != ranks.end() && own_rank() == lowest->first;
    return Clock::now() - since_ > Seconds(patience / 2 + (is_lowest ? 0 : 1));
  }

  static std::optional<int> own_rank() {
    for (const std::string_view variable : rank_variables) {
      if (const std::optional<int> rank = own_number(variable.data())) return rank;
    }
    return std::nullopt;
  }

  double timeout_;
  std::string what_;
  Clock::time_point since_;
};

[[noreturn]] void fail(const std::string& message) {
  constexpr int exit_run_failed = 2;
  const std::string line = "error: " + message + "\n";
  std::ignore = ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(exit_run_failed);
}

}  // namespace

StartWatch::StartWatch(double timeout)
    : thread_(start_thread([this, timeout](const std::stop_token& stop) {
        Hindrance hindrance(timeout);
        constexpr double most_seconds = 1;
        constexpr double looks = 20;
        // All processes are looked at only where MPI takes long: after half the time.
        Seconds pause(timeout / 2);
        for (;;) {
          std::unique_lock lock(mutex_);
          if (wake_.wait_for(lock, stop, pause, [] { return false; }); stop.stop_requested()) return;
          lock.unlock();
          if (const std::string message = hindrance.look(); !message.empty()) fail(message);
          pause = Seconds(std::min(timeout / looks, most_seconds));
        }
      })) {}

StartWatch::~StartWatch() {
  thread_.request_stop();
  wake_.notify_all();
}

}  // namespace einrel
