#include <einrel/error.h>
#include <einrel/ranks.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "api/ranks_data.h"
#include "base/error.h"
#include "exec/job/share.h"

namespace einrel::api {
namespace {

constexpr double most_seconds_apart = 60;  // as in the command

/// What failed, and the exit code that says so.
int say(const std::exception_ptr& failure, int rank) {
  int exit_code = 1;
  std::string message;
  try {
    std::rethrow_exception(failure);
  } catch (const FailedElsewhere&) {
    return exit_code;
  } catch (const einrel::RunError& error) {
    message = error.what();
    exit_code = 2;
  } catch (const std::exception& error) {
    message = error.what();
  }
  while (message.ends_with('\n')) message.pop_back();
  std::fputs(fmt::format("rank {}: {}\n", rank, message).c_str(), stderr);
  return exit_code;
}

/// Of several threads that fail the first one says so.
[[noreturn]] void end_because(const std::exception_ptr& failure, const Job& job) {
  static std::atomic_flag is_ending;
  while (is_ending.test_and_set()) ::pause();
  end_job(job, say(failure, job.rank));
}

/// Of a failure of all ranks, thrown on each: its own error or, where another rank has one, what that says.
[[noreturn]] void rethrow_alike(const Job& job, const std::exception_ptr& failure) {
  enum Kind { elsewhere, user, run };
  Kind kind = run;
  std::string message;
  try {
    std::rethrow_exception(failure);
  } catch (const FailedElsewhere&) {
    kind = elsewhere;
  } catch (const einrel::UserError& error) {
    kind = user;
    message = error.what();
  } catch (const UserError& error) {
    kind = user;
    message = error.what();
  } catch (const std::exception& error) {
    message = error.what();
  }
  std::vector<double> first;
  for (const std::vector<double>& rank : gather(job, {static_cast<double>(job.rank), static_cast<double>(kind)})) {
    if (first.empty() && rank[1] > 0) first = rank;
  }
  first = from_rank_0(job, first);
  const auto lowest = static_cast<int>(first[0]);
  message = fmt::format("on rank {}: {}", lowest, from_rank(job, lowest, message));
  if (kind != elsewhere) std::rethrow_exception(failure);
  if (static_cast<Kind>(first[1]) == user) throw UserError(message);
  throw RunError(message);
}

/// Which rank has ended, or is about to, while others go on, if any does; the same on each.
std::string ended_rank(const Job& job, bool ends) {
  const std::vector<std::uint64_t> ending = of_all_ranks(job, ends ? 1 : 0);
  const auto first = std::find(ending.begin(), ending.end(), 1);
  if (first == ending.end() || std::count(ending.begin(), ending.end(), 1) == job.ranks) return "";
  return fmt::format("rank {} has ended, while others compute: every rank has to compute the same",
                     first - ending.begin());
}

}  // namespace

Ranks::Data::Data()
    : mpi([](const std::exception_ptr& failure, const Job& job) { end_because(failure, job); }, most_seconds_apart) {}

Ranks::Data::~Data() {
  if (mpi.job().ranks > 1) ended_rank(mpi.job(), true);
}

Ranks::Ranks() {
  try {
    data_ = std::make_shared<const Data>();
  } catch (const einrel::RunError& error) {
    throw RunError(error.what());
  }
}

int Ranks::rank() const { return data_->mpi.job().rank; }
int Ranks::count() const { return data_->mpi.job().ranks; }
void Ranks::end_all(int exit_code) const { end_job(data_->mpi.job(), exit_code); }

const Job& RanksAccess::job(const std::optional<Ranks>& ranks) {
  static const Job none;
  return ranks && ranks->count() > 1 ? ranks->data_->mpi.job() : none;
}

void on_all_ranks(const Job& job, const std::function<std::vector<Fact>()>& facts,
                  const std::function<void()>& action) {
  if (job.ranks == 1) return action();
  static std::recursive_mutex one_at_a_time;  // what ranks tell each other has no name of the thread that tells it
  const std::lock_guard lock(one_at_a_time);
  *job.fails_together = false;
  if (const std::string ended = ended_rank(job, false); !ended.empty()) throw UserError(ended);
  std::string differs;
  try {
    std::vector<Fact> own;
    together(job, [&] { own = facts(); });
    differs = difference(job, own);
    if (differs.empty()) action();
  } catch (...) {
    if (!*job.fails_together) job.on_failure(std::current_exception(), job);
    rethrow_alike(job, std::current_exception());
  }
  if (!differs.empty()) throw UserError(differs);
}

void together(const Job& job, const std::function<void()>& action) {
  std::exception_ptr own;
  try {
    agree(job, [&] {
      try {
        action();
      } catch (...) {
        own = std::current_exception();
        throw;
      }
    });
  } catch (const FailedElsewhere&) {
    if (own) std::rethrow_exception(own);
    throw;
  }
}

}  // namespace einrel::api
