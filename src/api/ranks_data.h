#pragma once

#include <einrel/ranks.h>

#include <functional>
#include <vector>

#include "exec/job/alike.h"
#include "exec/job/job.h"

namespace einrel::api {

/// What ranks are.
struct Ranks::Data {
  MpiJob mpi;

  Data();
  /// Tells the others that this one ends: none of them may wait for it any more.
  ~Data();
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
};

/// To the rooms below: a process on its own has no job.
struct RanksAccess {
  static const Job& job(const std::optional<Ranks>& ranks);
};

/// What all ranks do together, beginning here; on each. A rank that fails by itself ends all. Throws UserError, on all
/// of them, unless all have the same facts, which say what they do; a process on its own is not asked for any.
void on_all_ranks(const Job& job, const std::function<std::vector<Fact>()>& facts, const std::function<void()>& action);

/// A part of it that may fail on some ranks, before any waits for another: then it has on all of them. Each throws its
/// own error; those that have none that of the lowest rank that has.
void together(const Job& job, const std::function<void()>& action);

}  // namespace einrel::api
