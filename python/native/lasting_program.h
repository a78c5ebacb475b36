#pragma once

#include <einrel/database.h>
#include <einrel/program.h>
#include <einrel/train.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace einrel::python {

class LastingStepper;

/// A program that also runs after a fork: its threads are not in the child, which makes it anew.
class LastingProgram {
 public:
  /// `again` makes the same program.
  LastingProgram(api::Program program, std::function<api::Program()> again);
  /// Of what `make` makes, without Python's lock; signals as in `run`.
  explicit LastingProgram(const std::function<api::Program()>& make);
  ~LastingProgram();
  LastingProgram(LastingProgram&&) = delete;
  LastingProgram& operator=(LastingProgram&&) = delete;
  const api::Program& get();
  /// What it says of itself, found without Python's lock; signals as in `run`.
  std::string tell(const std::function<std::string(const api::Program&)>& what);
  /// As api::Program::placements, found in the same way.
  api::Placements placements(const api::ExplainOptions& how);
  /// Runs it without Python's lock. A signal whose handler throws, as that of Ctrl-C does, ends the run.
  /// Where mpirun started this process, it is one on all ranks. What functions of Python raise in it is raised here.
  api::RunResult run(const api::Inputs& inputs, api::RunOptions options);
  /// Its steps, one at a time, as api::Program::stepper has them.
  std::unique_ptr<LastingStepper> stepper(api::Inputs inputs, const std::vector<std::string>& fed,
                                          api::RunOptions options);
  /// Trains it in the same way.
  api::TrainResult train(const std::map<std::string, api::Samples>& feeds, api::TrainOptions options);
  /// Runs it in a database, in the same way but in this process alone.
  api::DatabaseResult run_in_database(const std::string& database,
                                      const std::map<std::string, api::DatabaseInput>& inputs,
                                      api::DatabaseOptions options);

 private:
  std::function<api::Program()> again_;
  std::shared_ptr<const api::Program> program_;
  std::int64_t forks_;
  double last_seconds_ = std::numeric_limits<double>::infinity();  ///< that a run took
};

/// Steps of a program, each done as LastingProgram::run does a run. They do not go on in a fork. Throws UserError where
/// something is asked of them during a step, as another thread may.
class LastingStepper {
 public:
  LastingStepper(api::Stepper stepper, api::Inputs inputs, bool on_ranks);
  ~LastingStepper();
  LastingStepper(LastingStepper&&) = delete;
  LastingStepper& operator=(LastingStepper&&) = delete;
  /// As api::Stepper::step. Throws RunError in a fork; after a step that failed there is none.
  api::RunResult step(const api::Inputs& fed);
  /// As api::Stepper::placements; signals as in LastingProgram::run.
  api::Placements placements();
  api::State state();

 private:
  std::shared_ptr<api::Stepper> get() const;

  std::shared_ptr<api::Stepper> stepper_;  // nothing after a failure: what was left may still be at work with it
  api::Inputs inputs_;                     // that stay
  bool on_ranks_;
  bool is_busy_ = false;  // with a step, or a copy of the state
  std::int64_t forks_;
  double last_seconds_ = std::numeric_limits<double>::infinity();
};

/// api::calibrate_database without Python's lock; signals as in a run.
std::string calibrate_database(const std::string& database);

/// The processes that mpirun started with this one, if it did and this one is no fork of it: MPI starts with the first
/// call.
std::optional<api::Ranks> ranks();
/// The same, if it has started.
std::optional<api::Ranks> ranks_if_started();

/// To be called in the child after a fork.
void forked();
/// To be called before the interpreter ends: stops what runs on other threads, and waits for it.
void end_runs();

}  // namespace einrel::python
