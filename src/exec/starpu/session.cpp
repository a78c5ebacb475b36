#include "exec/starpu/session.h"

#include <malloc.h>
#include <mpi.h>
#include <starpu.h>
#include <starpu_expert.h>
#include <starpu_mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <thread>

#include "base/error.h"

namespace einrel {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

/// What StarPU reads when it starts.
std::vector<std::pair<const char*, std::string>> settings_of(const SessionOptions& options) {
  std::vector<std::pair<const char*, std::string>> settings{
      {"STARPU_SILENT", "1"},
      // Ranks on one machine would all bind their threads to the first cores.
      {"STARPU_WORKERS_NOBIND", "1"},
      {"STARPU_MPI_NOBIND", "1"}};
  if (options.memory) {
    // StarPU 1.3 would also write chunks to disk ahead of need, and fails an assertion when it ends before that is
    // done.
    settings.emplace_back("STARPU_MINIMUM_CLEAN_BUFFERS", "0");
    settings.emplace_back("STARPU_TARGET_CLEAN_BUFFERS", "0");
    settings.emplace_back("STARPU_LIMIT_CPU_MEM",
                          std::to_string(chunk_memory(*options.memory, options.threads) / mebibyte));
  }
  return settings;
}

/// A folder for what StarPU writes about a machine when it starts. Left to itself it keeps that in the home folder, and
/// ends the process where it cannot write there, or finds what another process that starts has half-written, or what
/// one left that was killed meanwhile. It takes no longer to write than to read.
class StartFolder {
 public:
  StartFolder() {
    std::error_code failed;
    path_ = (std::filesystem::temp_directory_path(failed) / "einrel-XXXXXX").string();
    if (failed || mkdtemp(path_.data()) == nullptr) {
      throw RunError("there is no folder for temporary files: name one that can be written in TMPDIR");
    }
  }
  ~StartFolder() {
    std::error_code failed;
    std::filesystem::remove_all(path_, failed);
  }
  StartFolder(const StartFolder&) = delete;
  StartFolder& operator=(const StartFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A thread without work looks for some without pause; other ranks and the thread that sends and receives may need its
/// core meanwhile.
unsigned give_way(void*) {
  std::this_thread::yield();
  return 1;
}

std::atomic<ChunkMemory*>& current_memory() {
  static std::atomic<ChunkMemory*> memory = nullptr;
  return memory;
}

int allocate_chunk(unsigned, void** memory, std::size_t bytes, int) {
  try {
    *memory = current_memory().load()->take(bytes);
    return 0;
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}
int free_chunk(unsigned, void* memory, std::size_t, int) {
  current_memory().load()->give_back(memory);
  return 0;
}

}  // namespace

SessionEnvironment::SessionEnvironment(const std::vector<std::pair<const char*, std::string>>& settings) {
  for (const auto& [name, value] : settings) {
    if (std::getenv(name) != nullptr) continue;
    setenv(name, value.c_str(), 0);
    set_.push_back(name);
  }
}

SessionEnvironment::~SessionEnvironment() {
  for (const char* const name : set_) unsetenv(name);
}

ChunkMemory::ChunkMemory(bool keeps) : keeps_(keeps) { current_memory() = this; }
ChunkMemory::~ChunkMemory() { current_memory() = nullptr; }

void* ChunkMemory::take(std::size_t bytes) {
  std::shared_ptr<std::byte> chunk = keeps_ ? pool_.allocate(bytes) : MemoryPool().allocate(bytes);
  void* const memory = chunk.get();
  const std::lock_guard lock(mutex_);
  chunks_.emplace(memory, std::move(chunk));
  return memory;
}

void ChunkMemory::give_back(void* memory) {
  const std::lock_guard lock(mutex_);
  chunks_.erase(memory);
}

std::int64_t chunk_memory(std::int64_t memory, std::size_t threads) {
  const std::int64_t workspaces = static_cast<std::int64_t>(threads) * 2 * most_workspace_bytes;
  const std::int64_t chunks = std::max(memory - workspaces, memory / 2);
  return std::max<std::int64_t>(8, chunks / mebibyte) * mebibyte;
}

StarpuSession::StarpuSession(const SessionOptions& options, const Job& job)
    : environment_(settings_of(options)),
      is_job_(job.is_started),
      is_limited_(options.memory.has_value()),
      spill_(options.spill),
      memory_(!is_limited_) {
  if (options.memory) {
    check_spill(options.spill);
    // The C library would keep what was freed, in pieces, beside what StarPU counts.
    constexpr int returned_at_once = 1 << 20;
    mallopt(M_MMAP_THRESHOLD, returned_at_once);
  }
  const StartFolder folder;
  const SessionEnvironment while_starting({{"STARPU_PERF_MODEL_DIR", folder.path()}});
  starpu_malloc_set_hooks(allocate_chunk, free_chunk);
  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.ncpus = is_job_ ? 1 : static_cast<int>(options.threads);
  conf.ncuda = 0;
  conf.nopencl = 0;
  conf.sched_policy_name = "prio";
  conf.catch_signals = 0;
  const int failed = is_job_ ? starpu_mpi_init_conf(nullptr, nullptr, 0, MPI_COMM_WORLD, &conf) : starpu_init(&conf);
  if (failed != 0) throw RunError("StarPU does not start");
  try {
    if (options.memory) register_spill(spill_);
  } catch (...) {
    shut_down();
    throw;
  }
  starpu_idle_hook_register(give_way, nullptr);
  // To the thread that sends and receives. Where ranks share cores, another rank would take them for longer.
  const bool has_cores = is_job_ && static_cast<double>(options.threads) <= job.cores + 1e-6;
  for (unsigned worker = 0; worker < starpu_worker_get_count(); ++worker)
    workers_.push_back(std::make_unique<Workers>(is_job_ ? options.threads : 1, has_cores));
  starpu_pause();
}

StarpuSession::~StarpuSession() {
  starpu_resume();
  shut_down();
}

void StarpuSession::shut_down() const {
  if (is_job_) {
    starpu_mpi_shutdown();
  } else {
    starpu_shutdown();
  }
}

Workers& StarpuSession::workers() { return *workers_[static_cast<std::size_t>(starpu_worker_get_id())]; }

AtWork::AtWork() { starpu_resume(); }
AtWork::~AtWork() { starpu_pause(); }

void FirstError::keep() {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::current_exception();
  failed_ = true;
}

std::exception_ptr FirstError::get() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace einrel
