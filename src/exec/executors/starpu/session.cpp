#include "exec/executors/starpu/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <starpu.h>
#include <starpu_expert.h>
#include <starpu_mpi.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <new>
#include <random>
#include <string>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/janitor.h"
#include "base/text.h"

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
    const std::filesystem::path temporary = std::filesystem::temp_directory_path(failed);
    if (failed) refuse();
    check_room(temporary.string());
    check_files();
    std::random_device random;
    path_ = (temporary / fmt::format("einrel-{:08x}{:08x}", random(), random())).string();
    remove_at_death(path_);  // first, so that there is no moment at which it would be left
    if (::mkdir(path_.c_str(), S_IRWXU) == 0) return;
    forget_at_death(path_);
    refuse();
  }
  ~StartFolder() {
    std::error_code failed;
    std::filesystem::remove_all(path_, failed);
    if (!failed) forget_at_death(path_);
  }
  StartFolder(const StartFolder&) = delete;
  StartFolder& operator=(const StartFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  [[noreturn]] static void refuse() {
    throw RunError("there is no folder for temporary files: name one that can be written in TMPDIR");
  }
  /// StarPU ends the process where it cannot write its few files.
  static void check_room(const std::string& folder) {
    struct statvfs disk {};
    if (::statvfs(folder.c_str(), &disk) != 0 || disk.f_blocks == 0) return;
    constexpr std::uint64_t files = 100;  // some file systems count none
    if (disk.f_bavail * disk.f_frsize >= static_cast<std::uint64_t>(mebibyte) &&
        (disk.f_files == 0 || disk.f_favail >= files))
      return;
    throw RunError(
        fmt::format("there is no room left in '{}': free 1 MiB and {} files, or name another folder in TMPDIR",
                    printable(folder), files));
  }
  /// Nor does it go on where this process may not, however much room there is; and what cannot be opened is not
  /// removed.
  static void check_files() {
    constexpr rlim_t longest = 1 << 16;  // what it writes has a few lines
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < longest)
      throw RunError("this process may write files of less than 64 KiB only: let it write longer ones (ulimit -f)");
    constexpr std::size_t wanted = 16;
    std::vector<int> opened;
    while (opened.size() < wanted) {
      const int file = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (file < 0) break;
      opened.push_back(file);
    }
    for (const int file : opened) ::close(file);
    if (opened.size() == wanted) return;
    throw RunError(fmt::format("this process cannot open {} more files: let it open more (ulimit -n)", wanted));
  }

  std::string path_;
};

/// StarPU ends the process where the system gives it no thread, or no memory for what it keeps: as many are tried
/// before. Throws RunError.
void check_threads(std::size_t threads) {
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::vector<std::jthread> tried;
  bool is_refused = false;
  try {
    for (std::size_t i = 0; i < threads; ++i) tried.emplace_back([ended] { ended.wait(); });
    constexpr std::size_t kept_by_starpu = std::size_t{48} << 20U;
    MemoryPool().allocate(kept_by_starpu);  // not touched: it takes addresses only
  } catch (const std::exception&) {
    is_refused = true;
  }
  end.set_value();
  if (!is_refused) return;
  throw RunError(
      fmt::format("the system refuses {} more threads, or memory for them: give fewer (--threads), or let this process "
                  "have more (ulimit -u, ulimit -v)",
                  threads));
}

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
  return current_memory().load()->take_for_starpu(bytes, memory);
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

ChunkMemory::ChunkMemory(bool keeps, std::function<void(std::exception_ptr)> on_failure)
    : keeps_(keeps), on_failure_(std::move(on_failure)) {
  current_memory() = this;
}
ChunkMemory::~ChunkMemory() { current_memory() = nullptr; }

void* ChunkMemory::take(std::size_t bytes) {
  std::shared_ptr<std::byte> chunk = keeps_ ? pool_.allocate(bytes) : MemoryPool().allocate(bytes);
  void* const memory = chunk.get();
  const std::lock_guard lock(mutex_);
  chunks_.emplace(memory, std::move(chunk));
  return memory;
}

int ChunkMemory::take_for_starpu(std::size_t bytes, void** memory) {
  try {
    *memory = take(bytes);
    return 0;
  } catch (const std::exception&) {
    // Without a disk StarPU would ask again for ever, and other ranks wait with it.
    if (keeps_ && on_failure_) {
      on_failure_(std::make_exception_ptr(RunError(
          fmt::format("there is no memory for a chunk of {}; give --memory SIZE --spill FOLDER, or let this process "
                      "have more (ulimit -v)",
                      bytes_text(static_cast<double>(bytes))))));
    }
    return -ENOMEM;
  }
}

void ChunkMemory::give_back(void* memory) {
  const std::lock_guard lock(mutex_);
  chunks_.erase(memory);
}

std::size_t most_session_threads() { return STARPU_MAXCPUS; }

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
      memory_(!is_limited_, [job](std::exception_ptr error) {
        if (job.on_failure) job.on_failure(std::move(error), job);
      }) {
  std::optional<StartFolder> folder;
  agree(job, [&] {                        // first on all ranks: one where StarPU runs waits for the others when it ends
    constexpr std::size_t of_starpu = 2;  // that wait for what others send, and for time to pass
    if (options.memory) spill_.file.emplace(options.spill.folder);
    check_threads(options.threads + of_starpu);
    folder.emplace();
  });
  const SessionEnvironment while_starting({{"STARPU_PERF_MODEL_DIR", folder->path()}});
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
    agree(job, [&] {
      if (is_limited_) register_spill(spill_);
    });
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

void StarpuSession::cancel_on(const std::stop_token& stop) {
  for (const std::unique_ptr<Workers>& workers : workers_) workers->cancel_on(stop);
}

AtWork::AtWork() { starpu_resume(); }
AtWork::~AtWork() { starpu_pause(); }

}  // namespace einrel
