#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/batches.h"
#include "train/step_program.h"

namespace einrel {

/// Computes what is reported for samples that nothing is learned from, by the program without its next values.
class Evaluator {
 public:
  /// `samples` of `feeds`, in batches as large as those of a step. Statistics come from `statistics`, samples of the
  /// feeds of training, if there are any: every tensor that is computed from samples, has no value for each of them and
  /// is read to compute such (the mean of a batch, say) is what it is over all of those. In this process, on its own,
  /// unless `beside` is the program of training, run by a plan. `step` is that of a step. All must outlive it. All that
  /// it will run is checked and planned here: throws as StepProgram does, and UserError where a state has another shape
  /// for a batch of the tests.
  Evaluator(const TrainRequest& request, const Feeds& feeds, std::vector<std::int64_t> samples, const Feeds& training,
            Batch statistics, std::vector<std::string> names, const EinGraph& step, const StepProgram* beside, Job job);

  /// Means over the samples, of states that so many steps have left, on rank 0; on all ranks of the job. Throws as
  /// Session::step does, and as BatchReader::next.
  std::vector<double> run(const InputSources& states, std::int64_t steps_done);

 private:
  void make_program(std::int64_t batch, const EinGraph& step);
  void make_calibration(const EinGraph& step);
  InputSources calibrated(const InputSources& sources, std::int64_t steps_done);

  const TrainRequest& request_;
  const Feeds& feeds_;
  std::vector<std::int64_t> samples_;
  const Feeds& training_;
  Batch statistics_;
  std::vector<std::string> names_;
  const StepProgram* beside_;
  Job job_;
  std::vector<std::string> statistic_names_;
  std::map<std::int64_t, StepProgram> programs_;  ///< by samples in a batch
  std::optional<StepProgram> calibration_;
};

/// A vertex whose random numbers go into what tests report (those of first values do not); none: nullopt.
std::optional<Vertex> noise_in_tests(const EinGraph& graph, const std::vector<std::string>& names);

/// The batches of some samples: of `size` each, a smaller one behind them if there are samples left.
std::vector<Batch> batches_of(const std::vector<std::int64_t>& samples, std::int64_t size);

}  // namespace einrel
