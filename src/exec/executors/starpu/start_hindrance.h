#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace einrel {

/// A rank of a job, as another one on its machine sees it. One of several processes of a rank is the one that is
/// stopped, if any is.
struct SeenRank {
  int process = 0;
  bool is_stopped = false;
};

/// What a rank sees of its job while MPI starts.
struct SeenJob {
  std::map<int, SeenRank> ranks;  ///< that are there, with itself
  std::optional<int> own = {};
  std::optional<int> count_here = {};  ///< how many belong to this machine
  std::optional<int> count = {};       ///< how many there are
  bool sees_starter = false;           ///< the process that started this rank
};

/// What keeps MPI from starting, since when.
class StartHindrance {
 public:
  /// `timeout`: seconds that a rank may be stopped; it may not be there for as long, and at least 10.
  explicit StartHindrance(double timeout) : timeout_(timeout) {}

  /// What is to be said once something has lasted too long, which is asked for the first time after half of it. A rank
  /// in a container of its own sees no other, and so says of none that it is not there.
  std::string look(const SeenJob& seen, std::chrono::steady_clock::time_point now);

 private:
  bool lasts(std::string what, double patience, const SeenJob& seen, std::chrono::steady_clock::time_point now);

  double timeout_;
  bool sees_others_ = false;
  std::string what_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace einrel
