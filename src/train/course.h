#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/batches.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/log.h"
#include "train/train.h"

namespace einrel {

/// The samples that a training goes over, and those that it is tested on.
struct TrainData {
  Feeds feeds;
  std::vector<std::int64_t> training;
  std::optional<Feeds> test_feeds;  ///< none: the test samples are of `feeds`, too
  std::vector<std::int64_t> test;
  std::vector<std::string> losses = {};  ///< that are to become small
  std::vector<std::string> notes = {};   ///< to be said before the first step

  const Feeds& tested() const { return test_feeds ? *test_feeds : feeds; }
  /// Those that statistics are of, which the seed chooses: a file may have its samples in the order of their classes.
  Batch statistics(const TrainRequest& request) const;
  /// The batches of an epoch, in its order.
  std::vector<Batch> batches(const TrainRequest& request, std::int64_t epoch) const;
};

/// What is learnt so far, on all ranks.
struct Learnt {
  std::function<void()> check;  ///< throws RunError where it is no longer finite (FiniteStates)
  Checkpoints::Write write;
};

/// What a training has done and what it tells of it, whoever does the steps: position, report, log, checkpoints. On all
/// ranks, which call the same; rank 0 has the numbers.
class Course {
 public:
  using Evaluate = std::function<std::vector<double>()>;

  Course(const TrainRequest& request, const TrainListener& listener, std::vector<std::string> names,
         const TrainData& data, const TrainIdentity& identity, Position position, const Job& job);

  const Position& position() const { return position_; }
  const std::vector<std::string>& names() const { return names_; }

  /// Training begins, or goes on after something that is not counted.
  void start_clock() { clock_ = std::chrono::steady_clock::now(); }
  void stop_clock();
  /// So many steps of the epoch's were done together on so many samples, whose means these are.
  void stepped(std::int64_t steps, double samples, const std::vector<double>& means, std::int64_t steps_of_epoch);
  void received(std::int64_t bytes) { position_.bytes += bytes; }
  /// The steps of an epoch are done, the last of all if `until` is held. That no row can be written is noted, and said
  /// by `finish`, if no later one can. What is no longer finite ends training; so does what the test throws, after a
  /// checkpoint that nothing is lost with.
  void end_epoch(std::int64_t steps_done, bool is_held, const Evaluate& evaluate, const Learnt& learnt);
  /// Writes a checkpoint if it is time for one, or the last one if not: `steps_before` were done at the last call. What
  /// fails is noted, and said with the last; what is no longer finite takes no checkpoint's place, and ends training.
  void save_if_due(std::int64_t steps_before, std::int64_t steps_done, const Learnt& learnt);
  TrainReport finish(std::int64_t steps_done, const Learnt& learnt);
  /// Whether somebody wants training to end here. Once it is so, it stays.
  bool is_interrupted();

 private:
  void note(const std::string& text) const;
  std::vector<double> tested(std::int64_t steps_done, const Evaluate& evaluate, const Learnt& learnt);

  const TrainRequest& request_;
  const TrainListener& listener_;
  Job job_;
  std::vector<std::string> names_;
  Position position_;
  std::optional<TrainLog> log_;
  std::optional<std::string> log_error_;  ///< why its last row could not be written
  std::optional<Checkpoints> checkpoints_;
  std::optional<std::int64_t> saved_;  ///< steps done then
  std::chrono::steady_clock::time_point clock_;
  double seconds_of_epoch_ = 0;
  double samples_of_epoch_ = 0;
  TrainReport report_;
};

/// Trains all sites together, by a plan or in one process.
TrainReport train_data_parallel(const TrainRequest& request, const TrainListener& listener, const TrainData& data,
                                const CheckedProgram& checked, const Job& job);
/// Each on its own (LocalTraining).
TrainReport train_local_sgd(const TrainRequest& request, const TrainListener& listener, const TrainData& data,
                            const CheckedProgram& checked, const Job& job);

/// What has to be the same where this training goes on.
TrainIdentity identity_of(const TrainRequest& request, const TrainData& data, const CheckedProgram& checked,
                          std::int64_t sites);

}  // namespace einrel
