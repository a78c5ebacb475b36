#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "einsum/check/check.h"
#include "run/choose_plan.h"
#include "run/kept_states.h"
#include "run/session.h"
#include "train/batches.h"
#include "train/train.h"

namespace einrel {

/// The program for so many samples in a step, with `extents` for some of its labels. Throws ProgramError, and UserError
/// where extents are missing.
CheckedProgram check_for(const TrainRequest& request, const Feeds& feeds, std::int64_t batch,
                         const std::map<std::string, std::int64_t>& extents = {});

/// The inputs that are the same for all samples. Throws UserError where the program needs one that nobody gives, or has
/// none of a name.
InputSources constant_inputs(const TrainRequest& request, const CheckedProgram& program, const Feeds& feeds);

/// A program that check_for gave, without the passes that are left out; `graph` is its own, or made of it.
Compiled compiled_for(const TrainRequest& request, const CheckedProgram& checked, const EinGraph& graph,
                      const std::vector<std::string>& outputs);

/// What is to be reported: the scalars that are asked for, or all among the outputs. Throws UserError for one that is
/// none.
std::vector<std::string> reported(const TrainRequest& request, const EinGraph& graph);

/// The statement of a vertex as messages show it: as it is written, since the vertex may be a part of it that has a
/// name of ours.
std::string written(const TrainRequest& request, const Vertex& vertex);

/// Batches of another size than those of a step, for messages.
struct OtherBatches {
  std::string which;   ///< "the last batch of the tests, of 7 samples"
  std::string remedy;  ///< "take batches of another size"
};
/// Makes ready what runs on them; what it throws as UserError, NoRoom or another RunError then says that it is of them.
/// Where it was stopped, it says no more than that.
void make_ready(const OtherBatches& batches, const std::function<void()>& make);
/// Throws UserError where a program for other batches reads, or keeps, a state in another shape than a step has it.
void check_states_fit(const TrainRequest& request, const EinGraph& step, const EinGraph& other);

/// Tasks that are ready to run again and again, on all ranks of a job.
class StepProgram {
 public:
  /// Runs as the request says or, of a program `beside` that of whole batches, as choose_beside says. Its scalars say
  /// whether it is a step of training. Throws as those and check_room do.
  StepProgram(Compiled compiled, const TrainRequest& request, const StepProgram* beside, const Job& job);

  const Compiled& compiled() const { return chosen_->program(*compiled_); }
  const PlannedTasks& tasks() const { return chosen_->tasks; }
  /// Tells rank 0 what passes made of it, where that is wanted.
  void tell_passes(const TrainListener& listener) const;
  /// Session::step, on batches of `feeds`, of which `batch` is always the one under way: an index out of range says
  /// which sample it comes from.
  PlanRunReport step(const InputSources& sources, std::vector<OutputWriter> writers, const ScalarBindings& scalars,
                     const StepsAsked& asked, const Feeds& feeds, const Batch& batch);
  /// The same on the next batches of a reader, as many as steps are asked for. `told` takes after each step the scalars
  /// of these names, which rank 0 knows, and says whether to go on.
  PlanRunReport step(const InputSources& constants, BatchReader& reader, const std::vector<std::string>& names,
                     const ScalarBindings& scalars, StepsAsked asked,
                     const std::function<bool(const std::vector<double>&)>& told);
  const ScalarBindings& scalars() const { return scalars_; }
  /// As begun_states.
  KeptStates states(const std::optional<GivenStates>& given, const InputSources& inputs = {}) const;

 private:
  /// What is under way, also for the threads that end a job.
  struct Doing {
    const EinGraph* graph = nullptr;
    const Feeds* feeds = nullptr;
    const Batch* batch = nullptr;
    std::exception_ptr named(const std::exception_ptr& error) const;
  };

  const TrainRequest& request_;
  std::shared_ptr<Doing> doing_ = std::make_shared<Doing>();
  Job job_;
  ScalarBindings scalars_;
  std::unique_ptr<const Compiled> compiled_;  ///< as it was given
  std::unique_ptr<const Chosen> chosen_;
  std::unique_ptr<Session> session_;
};

}  // namespace einrel
