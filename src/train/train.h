#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/source.h"
#include "exec/job/job.h"
#include "run/run_request.h"
#include "run/session.h"
#include "tensor/inflate.h"
#include "train/feeds.h"

namespace einrel {

/// Every site runs the program alone on its own batches, for some steps at a time: local SGD, or, with labels whose
/// extents are divided among the sites, independent subnet training (Luo's thesis, chapter 2).
struct LocalTraining {
  std::int64_t steps = 1;            ///< between two exchanges
  std::vector<std::string> subnets;  ///< labels
  std::int64_t sites = 1;            ///< in one process; in a job every rank is one
};

/// What is to be trained, on what, and how.
struct TrainRequest {
  SourceText source;
  std::map<std::string, std::int64_t> dims = {};
  ScalarBindings scalars = {};
  std::string batch_label = {};
  std::int64_t batch = 1;  ///< samples in a step
  FeedSources feeds = {};
  FeedSources test = {};                            ///< evaluated after each epoch, if there are any
  std::optional<bool> header = {};                  ///< whether the first lines of tables name the columns
  std::optional<double> hold_out = {};              ///< instead: this share of the samples of the feeds
  std::map<std::string, StoredTensor> inputs = {};  ///< those that are the same for all samples
  std::int64_t epochs = 1;
  bool keep_last = false;                ///< an epoch's last batch may be smaller; else it is left out
  std::uint64_t seed = 0;                ///< of all shuffling
  std::vector<std::string> report = {};  ///< scalars; empty: all among the outputs
  std::optional<std::int64_t> calibrate_with =
      {};                                       ///< samples of training that give what evaluation takes for statistics
  std::optional<std::string> save = {};         ///< folder for checkpoints
  std::optional<std::int64_t> save_every = {};  ///< steps; else at the end of each epoch
  std::optional<std::string> resume = {};       ///< folder with checkpoints
  std::optional<std::string> log = {};          ///< FILE.csv; a curve goes beside it
  std::vector<std::string> files = {};          ///< that are read beside the feeds: a log is none of them
  RunRequest run = {};                          ///< how a step with a whole batch runs
  PassOptions passes = {};                      ///< of every program; told of that of a step with a whole batch
  InflateFolder inflate = {};                   ///< for compressed files; without it, they are decompressed into memory
  std::optional<LocalTraining> local = {};
  std::stop_token stop = {};
  /// Asked before the first step and after each, or round: whether to end after it, in good order. On all ranks of a
  /// job, which have to answer the same.
  std::function<bool()> is_interrupted = {};
};

/// What an epoch came to.
struct EpochReport {
  std::int64_t epoch = 0;  ///< from 1 on
  std::int64_t steps = 0;  ///< done so far
  double seconds = 0;      ///< of training so far, without evaluation and checkpoints
  double samples_per_second = 0;
  std::int64_t bytes = 0;        ///< that sites received so far, all together
  std::vector<double> training;  ///< means over the samples of this epoch, each as it was when it was trained on
  std::vector<double> test;      ///< means over the test samples after it; empty without any
};

/// How far training is, after a step.
struct TrainProgress {
  std::int64_t epoch = 0;  ///< from 1 on
  std::int64_t epochs = 0;
  std::int64_t step = 0;  ///< of the epoch, from 1 on
  std::int64_t steps = 0;
  std::vector<double> means;  ///< of the epoch so far
  double samples_per_second = 0;
  double seconds_left = 0;
};

/// Is told on rank 0, by the thread that trains.
struct TrainListener {
  std::function<void(const std::vector<std::string>& names)> begin = {};  ///< of what is reported
  std::function<void(const TrainProgress&)> progress = {};
  std::function<void(const EpochReport&)> epoch = {};
  std::function<void(const std::string&)> note = {};
  /// Of a step with a whole batch, where PassOptions::are_told.
  std::function<void(const Compiled& program, const PlannedTasks& tasks)> passes = {};
};

struct TrainReport {
  std::vector<std::string> names;        ///< of what is reported
  std::vector<EpochReport> epochs;       ///< those of this call
  std::int64_t steps = 0;                ///< done in all
  bool is_held = false;                  ///< `until` ended it
  bool is_interrupted = false;           ///< TrainRequest::is_interrupted did
  std::optional<std::string> saved;      ///< the last checkpoint
  std::map<std::string, Tensor> states;  ///< in one process; nothing on ranks, which keep parts
  std::exception_ptr unwritten;          ///< RunError: why the last checkpoint or row of the log is not there
};

/// Trains, on all ranks of a job. Throws UserError for what is wrong with program, feeds and options, before the first
/// step; at the step that would use a sample which is infinite or not a number; RunError where what is learnt becomes
/// so, and as Session::step does. What cannot be written is noted,
/// and training goes on; of the last checkpoint and row of the log the report says it, for callers to throw on all
/// ranks when they have told the rest.
TrainReport train(TrainRequest request, const TrainListener& listener, const Job& job);

}  // namespace einrel
