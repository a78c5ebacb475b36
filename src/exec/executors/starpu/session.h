#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exec/job/job.h"
#include "exec/memory/spill.h"
#include "kernel/workers.h"
#include "tensor/memory_pool.h"

namespace einrel {

/// What a session may use.
struct SessionOptions {
  std::size_t threads = 1;             ///< that compute, in this process
  std::optional<std::int64_t> memory;  ///< bytes for chunks; more go to disk
  Spill spill;
};

/// The most tasks that run side by side in a process: StarPU has no more threads, of cores, than it was built for.
std::size_t most_session_threads();

/// What a limit of a process's memory leaves for chunks beside the workspaces of its threads, as StarPU takes it: in
/// whole MiB, and never less than 8 of them, below which it cannot work.
std::int64_t chunk_memory(std::int64_t memory, std::size_t threads);

/// Variables of the environment for as long as this lives; those that the user has set stay as they are. The next
/// session of a process may want others.
class SessionEnvironment {
 public:
  explicit SessionEnvironment(const std::vector<std::pair<const char*, std::string>>& settings);
  ~SessionEnvironment();
  SessionEnvironment(const SessionEnvironment&) = delete;
  SessionEnvironment& operator=(const SessionEnvironment&) = delete;

 private:
  std::vector<const char*> set_;
};

/// Memory for StarPU's chunks. Any thread. StarPU asks that of the session at work: it gives what it calls nothing to
/// find it by.
class ChunkMemory {
 public:
  /// `keeps`: what chunks give back is for those to come. Else it goes to the system at once, so that StarPU's count of
  /// bytes is true.
  /// `on_failure`: told, if it keeps, when there is none.
  ChunkMemory(bool keeps, std::function<void(std::exception_ptr)> on_failure);
  ~ChunkMemory();
  ChunkMemory(const ChunkMemory&) = delete;
  ChunkMemory& operator=(const ChunkMemory&) = delete;

  /// Throws what MemoryPool does.
  void* take(std::size_t bytes);
  /// As StarPU wants it: 0, or -ENOMEM.
  int take_for_starpu(std::size_t bytes, void** memory);
  /// What `take` gave.
  void give_back(void* memory);

 private:
  bool keeps_;
  std::function<void(std::exception_ptr)> on_failure_;
  /// Parts and the whole that is made of them do not live as long as each other: with less slack the result beside them
  /// is cleared again in every run.
  MemoryPool pool_{Slack{.part = 0.5}};
  std::mutex mutex_;
  std::unordered_map<void*, std::shared_ptr<std::byte>> chunks_;
};

/// StarPU at work in this process, and in all processes of the job if it was started by mpirun. One at a time.
/// In one process, tasks run side by side, one per thread, most_session_threads at most; in a job, one task at a time
/// runs on all threads of its rank, while others send and receive.
class StarpuSession {
 public:
  /// On all ranks, which agree: throws RunError when StarPU does not start, UserError when there can be no files in
  /// the folder for chunks.
  StarpuSession(const SessionOptions& options, const Job& job);
  ~StarpuSession();
  StarpuSession(const StarpuSession&) = delete;
  StarpuSession& operator=(const StarpuSession&) = delete;

  /// The threads that a task runs on which runs in the calling thread.
  Workers& workers();
  /// As Workers::cancel_on, of all of them.
  void cancel_on(const std::stop_token& stop);
  /// Whether chunks go to disk when there is no memory left for them.
  bool is_limited() const { return is_limited_; }
  const SpillSpace& spill() const { return spill_; }

 private:
  void shut_down() const;

  SessionEnvironment environment_;
  bool is_job_;
  bool is_limited_;
  SpillSpace spill_;
  ChunkMemory memory_;
  std::vector<std::unique_ptr<Workers>> workers_;  // by number of the StarPU worker
};

/// StarPU's threads look for work while this lives, and sleep before and after.
class AtWork {
 public:
  AtWork();
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
};

}  // namespace einrel
