#include "exec/simulated/simulate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"

namespace einrel {
namespace {

[[noreturn]] void fail(const std::string& program, const std::string& reason) {
  throw RunError(fmt::format("the simulation by {} failed: {}", program, reason));
}

/// Memory that a process that this one starts may map, too.
class SharedWithProgram {
 public:
  SharedWithProgram(std::size_t bytes, const std::string& program) : bytes_(bytes) {
    if (file_.number < 0 || ftruncate(file_.number, static_cast<off_t>(bytes)) != 0)
      fail(program, fmt::format("no memory for it: {}", std::strerror(errno)));
    void* const begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number, 0);
    if (begin == MAP_FAILED) fail(program, fmt::format("no memory for it: {}", std::strerror(errno)));
    begin_ = static_cast<std::byte*>(begin);
  }
  ~SharedWithProgram() { munmap(begin_, bytes_); }
  SharedWithProgram(const SharedWithProgram&) = delete;
  SharedWithProgram& operator=(const SharedWithProgram&) = delete;
  std::byte* begin() const { return begin_; }
  int descriptor() const { return file_.number; }

 private:
  /// Closed also where there is no memory to map.
  struct File {
    int number = memfd_create("einrel-simulation", MFD_CLOEXEC);
    File() = default;
    ~File() {
      if (number >= 0) close(number);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
  };
  File file_;
  std::size_t bytes_;
  std::byte* begin_ = nullptr;
};

/// Starts the program with that memory, and waits for its end.
void run(const std::string& program, int descriptor) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, descriptor, simulation_descriptor);
  std::string name = program;
  const std::array<char*, 2> arguments{name.data(), nullptr};
  pid_t child = 0;
  const int refused = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (refused != 0) {
    fail(program, fmt::format("it does not start: {}\n  help: it is built and installed beside einrel, with SimGrid's "
                              "library (libsimgrid-dev)",
                              std::strerror(refused)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail(program, std::strerror(errno));
  }
  if (WIFSIGNALED(status)) fail(program, fmt::format("it was ended by signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) fail(program, fmt::format("it ended with code {}", WEXITSTATUS(status)));
}

}  // namespace

void SimulationOrder::add(std::size_t before, std::size_t after) {
  before_.push_back(static_cast<std::uint32_t>(before));
  after_.push_back(static_cast<std::uint32_t>(after));
}

void SimulationOrder::put_into(Simulation& simulation) const {
  for (const std::uint32_t job : before_) ++simulation.jobs[job].successors;
  std::uint64_t end = 0;
  for (SimulatedJob& job : simulation.jobs) {
    const std::uint64_t begin = end;
    end += job.successors;
    job.successors = begin;  // goes on to its end as they are put there
  }
  simulation.successors.resize(end);
  for (std::size_t i = 0; i < before_.size(); ++i)
    simulation.successors[simulation.jobs[before_[i]].successors++] = after_[i];
}

std::vector<SimulatedTimes> simulate(const Simulation& simulation, const std::string& program) {
  if (simulation.jobs.size() > std::numeric_limits<std::uint32_t>::max())
    fail(program, fmt::format("{} jobs are too many", simulation.jobs.size()));
  const SimulationSizes sizes{simulation.endpoints.size(), simulation.nodes.size(), simulation.links.size(),
                              simulation.jobs.size(), simulation.successors.size()};
  const SharedWithProgram shared(SimulationMemory::bytes(sizes), program);
  const SimulationMemory memory(shared.begin());
  memory.sizes() = sizes;
  std::copy(simulation.endpoints.begin(), simulation.endpoints.end(), memory.endpoints().begin());
  std::copy(simulation.nodes.begin(), simulation.nodes.end(), memory.nodes().begin());
  std::copy(simulation.links.begin(), simulation.links.end(), memory.links().begin());
  std::copy(simulation.jobs.begin(), simulation.jobs.end(), memory.jobs().begin());
  std::copy(simulation.successors.begin(), simulation.successors.end(), memory.successors().begin());
  run(program, shared.descriptor());
  return {memory.times().begin(), memory.times().end()};
}

}  // namespace einrel
