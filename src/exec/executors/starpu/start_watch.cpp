#include "exec/executors/starpu/start_watch.h"

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
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/thread.h"
#include "exec/executors/starpu/start_hindrance.h"

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

/// What stands behind the name in the status of a process, "PID (NAME) T PARENT ...": names may hold anything.
std::string status_of(const fs::path& process) {
  const std::string status = all_of(process / "stat");
  const std::size_t name_end = status.rfind(") ");
  return name_end == std::string::npos ? "" : status.substr(name_end + 2);
}

bool is_stopped(const fs::path& process) { return status_of(process).starts_with('T'); }

std::optional<int> parent_of(const fs::path& process) {
  const std::string status = status_of(process);
  if (status.size() < 2) return std::nullopt;
  return number_of(std::string_view(status).substr(2, status.find(' ', 2) - 2));
}

std::optional<int> rank_in(std::string_view environment) {
  for (const std::string_view variable : rank_variables) {
    if (const std::optional<int> rank = number_of(value_in(environment, variable))) return rank;
  }
  return std::nullopt;
}

std::optional<int> own_rank() {
  for (const std::string_view variable : rank_variables) {
    if (const std::optional<int> rank = own_number(variable.data())) return rank;
  }
  return std::nullopt;
}

/// Whether what started this rank is among the processes that are seen from here: above a rank of a container, say, is
/// nothing but what belongs to that rank.
bool sees_starter() {
  const fs::path all = "/proc";
  std::optional<int> process = parent_of(all / "self");
  for (; process && *process > 0; process = parent_of(all / fmt::format("{}", *process))) {
    const std::string environment = all_of(all / fmt::format("{}", *process) / "environ");
    if (!environment.empty() && !rank_in(environment)) return true;
  }
  return false;
}

SeenJob seen_job() {
  SeenJob seen{
      {}, own_rank(), own_number("OMPI_COMM_WORLD_LOCAL_SIZE"), own_number("OMPI_COMM_WORLD_SIZE"), sees_starter()};
  const auto job = std::find_if(job_variables.begin(), job_variables.end(),
                                [](std::string_view name) { return std::getenv(name.data()) != nullptr; });
  if (job == job_variables.end()) return seen;
  const std::string own = std::getenv(job->data());
  std::error_code unseen;  // a process that ends meanwhile, or of others
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", unseen)) {
    const std::string name = entry.path().filename().string();
    const std::optional<int> process = number_of(name);
    if (!process) continue;
    const std::string environment = all_of(entry.path() / "environ");
    if (value_in(environment, *job) != own) continue;
    const std::optional<int> rank = rank_in(environment);
    if (!rank) continue;
    SeenRank& here = seen.ranks[*rank];
    if (here.is_stopped) continue;
    here = {*process, is_stopped(entry.path())};
  }
  return seen;
}

[[noreturn]] void fail(const std::string& message) {
  constexpr int exit_run_failed = 2;
  const std::string line = "error: " + message + "\n";
  std::ignore = ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(exit_run_failed);
}

}  // namespace

StartWatch::StartWatch(double timeout)
    : thread_(start_thread([this, timeout](const std::stop_token& stop) {
        StartHindrance hindrance(timeout);
        constexpr double most_seconds = 1;
        constexpr double looks = 20;
        // All processes are looked at only where MPI takes long: after half the time.
        Seconds pause(timeout / 2);
        for (;;) {
          std::unique_lock lock(mutex_);
          if (wake_.wait_for(lock, stop, pause, [] { return false; }); stop.stop_requested()) return;
          lock.unlock();
          if (const std::string message = hindrance.look(seen_job(), Clock::now()); !message.empty()) fail(message);
          pause = Seconds(std::min(timeout / looks, most_seconds));
        }
      })) {}

StartWatch::~StartWatch() {
  thread_.request_stop();
  wake_.notify_all();
}

}  // namespace einrel
