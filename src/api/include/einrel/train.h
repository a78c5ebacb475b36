/// @file
/// Training a program with state on samples.
#pragma once

#include <einrel/program.h>
#include <einrel/ranks.h>
#include <einrel/tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace einrel::api {

/// The samples of an input: in memory, or FILE as `einrel train --feed` takes it ("images.idx.gz", "table.csv:1..4").
using Samples = std::variant<Tensor, std::string>;

/// What an epoch came to.
struct Epoch {
  std::int64_t epoch = 0;                       ///< from 1 on
  std::int64_t steps = 0;                       ///< done so far
  double seconds = 0;                           ///< of training so far, without evaluation and checkpoints
  std::int64_t bytes_moved = 0;                 ///< to sites so far, all together
  std::map<std::string, double> training = {};  ///< means over the samples of this epoch, each before its step
  std::map<std::string, double> test = {};      ///< means over the test samples after it
};

/// How to train: the options of `einrel train` (docs/training.md) of the same names.
struct TrainOptions {
  std::string batch_label = {};                          ///< the label that stands for samples
  std::int64_t batch = 1;                                ///< how many a step takes
  std::int64_t epochs = 1;                               ///< how often to go over all samples
  std::map<std::string, Samples> test = {};              ///< samples to evaluate after each epoch
  std::optional<bool> header = {};                       ///< whether first lines of tables are names; else as they look
  std::optional<double> hold_out = {};                   ///< instead: this share of the samples
  std::map<std::string, Tensor> inputs = {};             ///< those that are the same for all samples
  std::map<std::string, double> scalars = {};            ///< the program's; those with a default may be left out
  bool keep_last = false;                                ///< an epoch's last batch may be smaller
  std::uint64_t seed = 0;                                ///< of the order of samples
  std::vector<std::string> report = {};                  ///< scalars; else all among the outputs
  std::optional<std::int64_t> calibrate_with = {};       ///< samples that give statistics for evaluation
  std::optional<std::filesystem::path> save = {};        ///< folder for checkpoints
  std::optional<std::int64_t> save_every = {};           ///< steps; else after each epoch
  std::optional<std::filesystem::path> resume = {};      ///< folder with checkpoints to go on from
  std::optional<std::filesystem::path> log = {};         ///< FILE.csv; curves go beside it
  std::optional<std::int64_t> local_steps = {};          ///< sites train on their own, so many steps at a time
  std::vector<std::string> subnets = {};                 ///< labels that are divided among them
  std::optional<std::size_t> threads = {};               ///< as in RunOptions, as those below
  std::optional<std::int64_t> sites = {};                ///< to plan for, or that train on their own
  std::optional<std::string> planner = {};               ///< else eindecomp
  std::optional<Cost> cost = {};                         ///< else seconds
  std::optional<std::string> machine = {};               ///< to plan for
  std::optional<std::string> plan = {};                  ///< of the program with this batch
  std::optional<std::int64_t> memory = {};               ///< bytes besides samples
  std::optional<std::filesystem::path> spill = {};       ///< folder for what does not fit
  std::optional<Ranks> ranks = {};                       ///< each is a site; else all sites are in this process
  std::function<void(const Epoch&)> on_epoch = {};       ///< told after each epoch
  std::function<void(const std::string&)> on_note = {};  ///< told what does not end the training
  std::stop_token stop = {};                             ///< as in RunOptions
};

/// What training gives.
struct TrainResult {
  std::vector<Epoch> epochs = {};                        ///< those of this call
  bool is_held = false;                                  ///< `until` ended it
  std::optional<std::filesystem::path> checkpoint = {};  ///< the last one
  State state = {};                                      ///< what was learnt: RunOptions::state takes it
};

/// Trains a program with state. With `ranks`, all of them call this alike; on_epoch and on_note are called on rank 0,
/// every rank gets the epochs, and what was learnt is in the checkpoint, not in the result. Feeds in memory are used
/// where they lie. Throws UserError before the first step for feeds, options and labels that do not fit, and at the
/// step that meets a sample which is infinite or not a number; RunError when memory does not suffice, the loss or a
/// state becomes infinite or not a number, or the last checkpoint cannot be written.
TrainResult train(const Program& program, const std::map<std::string, Samples>& feeds, const TrainOptions& options);

}  // namespace einrel::api
