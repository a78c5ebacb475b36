#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace einrel {

/// This process among those of the job that mpirun (or Slurm) started: rank 0 of 1 without it.
struct Job {
  int rank = 0;
  int ranks = 1;
  std::size_t ranks_here = 1;  ///< of them on this machine
  double cores = 1;            ///< its share of those that it may use: an n-th of a core that n ranks may
  bool is_started = false;     ///< by mpirun, with one rank or more
  /// The site that it is, where there are several ranks.
  std::optional<std::int64_t> site() const { return ranks > 1 ? std::optional<std::int64_t>(rank) : std::nullopt; }
  /// Told what failed on this rank when there is no way back: has to end all of them (end_job).
  std::function<void(std::exception_ptr, const Job&)> on_failure;
  /// Whether all ranks throw at the same place: set by `agree`.
  std::shared_ptr<bool> fails_together = std::make_shared<bool>(false);
};

/// What mpirun or Slurm calls this process, "rank 2", if they started it.
std::optional<std::string> name_in_job();

/// A rank's share of the cores of its machine, by what each rank there may use: of a core that n of them may, an n-th.
double share_of_cores(const std::vector<cpu_set_t>& allowed, std::size_t rank);

/// MPI for as long as this lives, if the process was started as one of a job. What MPI keeps in files goes with the
/// process, however it ends.
class MpiJob {
 public:
  /// `timeout`: seconds that it waits, while MPI starts, for a rank of this machine that stands still (start_watch.h).
  /// Throws RunError when MPI does not start, or would find no memory.
  MpiJob(std::function<void(std::exception_ptr, const Job&)> on_failure, double timeout);
  ~MpiJob();
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;

  const Job& job() const { return job_; }
  /// Does what all ranks do together. An exception of this rank alone, outside of `agree`, is told `on_failure`: the
  /// others would wait for it for ever.
  void run(const std::function<void(const Job&)>& action) const;

 private:
  Job job_;
  std::vector<std::string> segments_;  ///< files of memory that ranks share
};

/// On rank 0, what each rank gave, by rank; on the others nothing. Every rank has to call these, in the same order.
std::vector<std::vector<double>> gather(const Job& job, const std::vector<double>& values);
/// On all ranks, what each of them gave, by rank.
std::vector<std::uint64_t> of_all_ranks(const Job& job, std::uint64_t number);
/// The largest number that a rank gives, on all of them.
int largest(const Job& job, int number);
/// What rank 0 gave.
std::string from_rank_0(const Job& job, const std::string& text);
std::vector<double> from_rank_0(const Job& job, const std::vector<double>& numbers);
/// What that rank gave.
std::string from_rank(const Job& job, int rank, const std::string& text);
/// Bytes of that rank, into the memory of all others.
void broadcast(int from, std::span<std::byte> bytes);
/// Bytes from one rank to another, which waits for them.
void send(int to, std::span<const std::byte> bytes);
void receive(int from, std::span<std::byte> bytes);
/// What a rank throws when it is another one that failed: its message has been, or will be, said there.
struct FailedElsewhere : std::exception {
  explicit FailedElsewhere(int failed_rank) : rank(failed_rank) {}
  const char* what() const noexcept override { return "another rank failed"; }
  int rank;
};
/// Does something that may fail on some ranks only, on all of them. When it has failed, the lowest rank where it did
/// throws its exception, the others FailedElsewhere; so either all go on or none does.
void agree(const Job& job, const std::function<void()>& action);
/// Ends all processes of the job, this one too, with that exit code.
[[noreturn]] void end_job(const Job& job, int exit_code);

}  // namespace einrel
