#include <einrel/error.h>
#include <einrel/ranks.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "api/ranks_data.h"
#include "base/error.h"
#include "exec/starpu/share.h"

namespace einrel::api {
namespace {

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

/// What keeps the ranks from going on together, if anything, the same on each. `what` each of them is about to do;
/// nothing: it ends.
std::string disagreement(const Job& job, const std::string& what) {
  constexpr double same = 0;
  constexpr double other = 1;
  constexpr double ends = 2;
  const std::string first = from_rank_0(job, what);
  const double differing = what == first ? same : other;
  const double here = what.empty() ? ends : differing;
  std::optional<int> differs;
  std::optional<int> has_ended;
  int rank = 0;
  int ending = 0;
  for (const std::vector<double>& answer : gather(job, {here})) {
    if (answer.front() == other && !differs) differs = rank;
    if (answer.front() == ends && !has_ended) has_ended = rank;
    ending += answer.front() == ends ? 1 : 0;
    ++rank;
  }
  std::string problem;
  if (has_ended && ending < job.ranks) {
    problem = fmt::format("rank {} has ended, while others compute: every rank has to compute the same", *has_ended);
  } else if (differs) {
    problem = fmt::format(
        "rank {} computes something else than rank 0: every rank has to compute the same, in the "
        "same order",
        *differs);
  }
  return from_rank_0(job, problem);
}

}  // namespace

Ranks::Data::Data() : mpi([](const std::exception_ptr& failure, const Job& job) { end_because(failure, job); }) {}

Ranks::Data::~Data() {
  if (mpi.job().ranks > 1) disagreement(mpi.job(), "");
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

void on_all_ranks(const Job& job, const std::string& what, const std::function<void()>& action) {
  if (job.ranks == 1) return action();
  *job.fails_together = false;
  if (const std::string problem = disagreement(job, what); !problem.empty()) throw UserError(problem);
  try {
    action();
  } catch (...) {
    if (!*job.fails_together) job.on_failure(std::current_exception(), job);
    rethrow_alike(job, std::current_exception());
  }
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
