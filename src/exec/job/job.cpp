#include "exec/job/job.h"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <set>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/janitor.h"
#include "base/text.h"
#include "exec/executors/starpu/start_watch.h"
#include "kernel/workers.h"
#include "tensor/memory_pool.h"

namespace einrel {
namespace {

/// This rank's share among those of its machine. Of masks that the system does not give, as beyond 1024 cores, an equal
/// one.
double own_share_of_cores(MPI_Comm here) {
  int ranks = 1;
  int rank = 0;
  MPI_Comm_size(here, &ranks);
  MPI_Comm_rank(here, &rank);
  cpu_set_t own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof(own), &own) != 0) CPU_ZERO(&own);
  std::vector<cpu_set_t> allowed(static_cast<std::size_t>(ranks));
  MPI_Allgather(&own, sizeof(own), MPI_BYTE, allowed.data(), sizeof(own), MPI_BYTE, here);
  if (CPU_COUNT(&own) == 0) return static_cast<double>(available_cores()) / ranks;
  return share_of_cores(allowed, static_cast<std::size_t>(rank));
}

/// Open MPI waits for ever, or ends the process with words of its own, where it finds no memory while it starts.
void check_addresses() {
  constexpr std::size_t of_open_mpi = std::size_t{224} << 20U;
  try {
    MemoryPool().allocate(of_open_mpi);  // not touched: it takes addresses only
  } catch (const std::exception&) {
    throw RunError("MPI needs 224 MiB of addresses to start: let this process have more (ulimit -v)");
  }
}

/// The files of memory that Open MPI shares between the ranks of a machine, as mapped by this process. It removes them
/// when it ends in peace.
std::vector<std::string> shared_segments() {
  std::set<std::string> paths;
  std::ifstream mappings("/proc/self/maps");
  for (std::string line; std::getline(mappings, line);) {
    const std::size_t path = line.find('/');
    if (path != std::string::npos && line.find("/vader_segment.", path) != std::string::npos)
      paths.insert(line.substr(path));
  }
  return {paths.begin(), paths.end()};
}

/// What this rank's own will be called, for one that is killed while MPI starts; nullopt where that is not known.
std::optional<std::string> coming_segment() {
  const char* const job = std::getenv("OMPI_MCA_ess_base_jobid");
  const char* const rank = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  std::array<char, HOST_NAME_MAX + 1> host{};
  std::uint32_t number = 0;
  if (job == nullptr || rank == nullptr || ::gethostname(host.data(), host.size() - 1) != 0) return std::nullopt;
  const std::string_view digits = job;
  if (std::from_chars(digits.begin(), digits.end(), number).ec != std::errc{}) return std::nullopt;
  const std::string_view own = rank;
  if (own.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return fmt::format("/dev/shm/vader_segment.{}.{}.{:x}.{}", host.data(), ::geteuid(), number, own);
}

/// As many as MPI counts.
constexpr std::size_t most_bytes_at_once = std::size_t{1} << 30U;

/// The items of that rank, however many it has.
template <class Items>
Items items_from(const Job& job, int rank, Items items) {
  if (!job.is_started) return items;
  std::size_t count = items.size();
  broadcast(rank, std::as_writable_bytes(std::span(&count, 1)));
  items.resize(count);
  broadcast(rank, std::as_writable_bytes(std::span(items.data(), items.size())));
  return items;
}

}  // namespace

std::optional<std::string> name_in_job() {
  for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (const char* const rank = std::getenv(name)) return "rank " + printable(rank);
  }
  return std::nullopt;
}

double share_of_cores(const std::vector<cpu_set_t>& allowed, std::size_t rank) {
  double share = 0;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed[rank])) continue;
    const auto ranks =
        std::count_if(allowed.begin(), allowed.end(), [&](const cpu_set_t& set) { return CPU_ISSET(core, &set); });
    share += 1 / static_cast<double>(ranks);
  }
  return share;
}

MpiJob::MpiJob(std::function<void(std::exception_ptr, const Job&)> on_failure, double timeout) {
  job_.on_failure = std::move(on_failure);
  if (!name_in_job()) return;
  check_addresses();
  if (const auto segment = coming_segment()) remove_at_death(*segment);
  int provided = 0;
  std::optional<StartWatch> watch(std::in_place, timeout);
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    throw RunError("MPI does not start");
  if (provided < MPI_THREAD_SERIALIZED) throw RunError("this MPI library allows no calls from several threads");
  watch.reset();
  job_.is_started = true;
  segments_ = shared_segments();
  for (const std::string& segment : segments_) remove_at_death(segment);
  MPI_Comm_rank(MPI_COMM_WORLD, &job_.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job_.ranks);
  MPI_Comm here = MPI_COMM_NULL;
  int ranks_here = 1;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_size(here, &ranks_here);
  job_.cores = own_share_of_cores(here);
  MPI_Comm_free(&here);
  job_.ranks_here = static_cast<std::size_t>(ranks_here);
}

MpiJob::~MpiJob() {
  if (job_.is_started) MPI_Finalize();
  for (const std::string& segment : segments_) forget_at_death(segment);
}

void MpiJob::run(const std::function<void(const Job&)>& action) const {
  try {
    action(job_);
  } catch (...) {
    if (job_.ranks > 1 && !*job_.fails_together) job_.on_failure(std::current_exception(), job_);
    throw;
  }
}

std::vector<std::uint64_t> of_all_ranks(const Job& job, std::uint64_t number) {
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(job.ranks), number);
  if (job.is_started) MPI_Allgather(&number, 1, MPI_UINT64_T, numbers.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
  return numbers;
}

std::vector<std::vector<double>> gather(const Job& job, const std::vector<double>& values) {
  if (!job.is_started) return {values};
  std::vector<int> counts;
  for (const std::uint64_t count : of_all_ranks(job, values.size())) counts.push_back(static_cast<int>(count));
  std::vector<int> begins;
  int all = 0;
  for (const int count : counts) {
    begins.push_back(all);
    all += count;
  }
  std::vector<double> received(job.rank == 0 ? static_cast<std::size_t>(all) : 0);
  MPI_Gatherv(values.data(), static_cast<int>(values.size()), MPI_DOUBLE, received.data(), counts.data(), begins.data(),
              MPI_DOUBLE, 0, MPI_COMM_WORLD);
  std::vector<std::vector<double>> by_rank;
  for (std::size_t rank = 0; job.rank == 0 && rank < counts.size(); ++rank)
    by_rank.emplace_back(received.begin() + begins[rank], received.begin() + begins[rank] + counts[rank]);
  return by_rank;
}

int largest(const Job& job, int number) {
  if (job.is_started) MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return number;
}

std::string from_rank_0(const Job& job, const std::string& text) { return from_rank(job, 0, text); }

std::vector<double> from_rank_0(const Job& job, const std::vector<double>& numbers) {
  return items_from(job, 0, numbers);
}

std::string from_rank(const Job& job, int rank, const std::string& text) { return items_from(job, rank, text); }

void broadcast(int from, std::span<std::byte> bytes) {
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), most_bytes_at_once)))
    MPI_Bcast(bytes.data(), static_cast<int>(std::min(bytes.size(), most_bytes_at_once)), MPI_BYTE, from,
              MPI_COMM_WORLD);
}

void send(int to, std::span<const std::byte> bytes) {
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), most_bytes_at_once)))
    MPI_Send(bytes.data(), static_cast<int>(std::min(bytes.size(), most_bytes_at_once)), MPI_BYTE, to, 0,
             MPI_COMM_WORLD);
}

void receive(int from, std::span<std::byte> bytes) {
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), most_bytes_at_once)))
    MPI_Recv(bytes.data(), static_cast<int>(std::min(bytes.size(), most_bytes_at_once)), MPI_BYTE, from, 0,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void agree(const Job& job, const std::function<void()>& action) {
  std::exception_ptr error;
  try {
    action();
  } catch (...) {
    error = std::current_exception();
  }
  const int lowest = -largest(job, error ? -job.rank : -job.ranks);
  if (lowest == job.ranks) return;
  *job.fails_together = true;
  if (lowest == job.rank) std::rethrow_exception(error);
  throw FailedElsewhere(lowest);
}

void end_job(const Job& job, int exit_code) {
  // Another thread may be in the middle of a call of MPI.
  constexpr unsigned seconds = 10;
  std::signal(SIGALRM, SIG_DFL);
  ::alarm(seconds);
  if (job.is_started) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace einrel
