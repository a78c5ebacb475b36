#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "run/saved_states.h"
#include "train/course.h"
#include "train/finite.h"

namespace einrel {
namespace {

/// All that steps need, of batches of one size.
class DataParallel {
 public:
  DataParallel(const TrainRequest& request, const TrainListener& listener, const TrainData& data,
               const CheckedProgram& checked, const Job& job)
      : request_(request),
        data_(data),
        job_(job),
        names_(reported(request, *checked.graph)),
        identity_(identity_of(request, data, checked, 0)),
        constants_(constant_inputs(request, checked, data.feeds)) {
    agree(job, [&] {
      if (request.resume) resumed_ = resume_from(*request.resume, identity_, form(), job);
    });
    check_alike(resumed_, job);
    agree(job, [&] {
      program_.emplace(compiled(checked), request, nullptr, job);
      make_rest(checked);
      if (!data.test.empty())
        evaluator_.emplace(request, data.tested(), data.test, data.feeds, data.statistics(request), names_,
                           *checked.graph, &*program_, job);
    });
    program_->tell_passes(listener);
    states_.emplace(first_states());
    finite_.emplace(parts_now());
    course_.emplace(request, listener, names_, data, identity_, resumed_ ? resumed_->position : Position{}, job);
  }

  TrainReport run() {
    const std::int64_t first = states_->steps_done();
    before_ = first;
    const auto evaluate = [&] {
      return evaluator_ ? evaluator_->run(states_now(), states_->steps_done()) : std::vector<double>{};
    };
    while (course_->position().epoch < request_.epochs && !course_->position().is_held && !course_->is_interrupted()) {
      const bool is_held = epoch();
      if (!is_held && course_->position().step < steps_of_epoch_) break;  // interrupted
      course_->end_epoch(states_->steps_done(), is_held, evaluate, learnt());
      save();
    }
    TrainReport report = course_->finish(states_->steps_done(), learnt());
    report.is_held = course_->position().is_held;
    for (std::size_t s = 0; s < program_->tasks().states.size() && job_.ranks == 1; ++s)
      report.states[program_->tasks().states[s].type.name] = std::get<Tensor>((*states_)[s].now());
    return report;
  }

 private:
  Compiled compiled(const CheckedProgram& checked) const {
    return compiled_for(request_, checked, *checked.graph, names_);
  }

  CheckpointForm form() const {
    const auto samples = static_cast<std::int64_t>(data_.training.size());
    return {names_.size(), (samples + (request_.keep_last ? request_.batch - 1 : 0)) / request_.batch};
  }

  /// For an epoch's last, smaller batch, if there is one.
  void make_rest(const CheckedProgram& checked) {
    const std::int64_t left = static_cast<std::int64_t>(data_.training.size()) % request_.batch;
    if (!request_.keep_last || left == 0) return;
    make_ready({fmt::format("the last batch of an epoch, of {}", counted(static_cast<std::size_t>(left), "sample")),
                "leave out --keep-last, or take batches of another size"},
               [&] {
                 const CheckedProgram smaller = check_for(request_, data_.feeds, left);
                 check_states_fit(request_, *checked.graph, *smaller.graph);
                 rest_.emplace(compiled(smaller), request_, &*program_, job_);
               });
  }

  KeptStates first_states() {
    if (resumed_)
      return program_->states(load_states(program_->compiled().graph, resumed_->path, request_.inflate).given());
    InputSources sources = constants_;
    const std::vector<Vertex>& vertices = program_->compiled().initial->graph.vertices;
    const auto reads_feed = [&](const Vertex& vertex) {
      return is_input(vertex) && std::any_of(data_.feeds.feeds.begin(), data_.feeds.feeds.end(),
                                             [&](const Feed& feed) { return feed.name == vertex.name; });
    };
    if (std::any_of(vertices.begin(), vertices.end(), reads_feed)) {
      for (auto& [name, source] : assemble(data_.feeds, data_.batches(request_, 0).front()))
        sources[name] = std::move(source);
    }
    return program_->states(std::nullopt, sources);
  }

  InputSources states_now() const {
    InputSources sources;
    for (std::size_t s = 0; s < program_->tasks().states.size(); ++s)
      sources[program_->tasks().states[s].type.name] = (*states_)[s].now();
    return sources;
  }

  StateParts parts_now() const {
    StateParts parts;
    for (std::size_t s = 0; s < program_->tasks().states.size(); ++s) {
      for (const KeptState::Part& part : (*states_)[s].parts())
        parts.emplace_back(program_->tasks().states[s].type.name, part.elements);
    }
    return parts;
  }

  Learnt learnt() const {
    return {
        .check = [this] { agree(job_, [this] { finite_->check(parts_now(), states_->steps_done()); }); },
        .write = [this](const std::string& path,
                        const AddedTensors& added) { save_states(*states_, program_->tasks(), path, job_, added); }};
  }

  void save() {
    course_->save_if_due(before_, states_->steps_done(), learnt());
    before_ = states_->steps_done();
  }

  /// Whether `until` held before its end.
  bool epoch() {
    std::vector<Batch> batches = data_.batches(request_, course_->position().epoch);
    steps_of_epoch_ = static_cast<std::int64_t>(batches.size());
    batches.erase(batches.begin(), batches.begin() + std::min(course_->position().step, steps_of_epoch_));
    if (batches.empty()) return false;
    const bool has_rest = batches.back().size() < static_cast<std::size_t>(request_.batch);
    BatchReader reader(data_.feeds, batches);
    const std::size_t whole = batches.size() - (has_rest ? 1 : 0);
    if (whole > 0 && steps(*program_, reader, whole, request_.batch)) return true;
    if (!has_rest || course_->is_interrupted()) return false;
    return steps(*rest_, reader, 1, static_cast<std::int64_t>(batches.back().size()));
  }

  bool steps(StepProgram& program, BatchReader& reader, std::size_t count, std::int64_t samples) {
    const auto after = [&](const std::vector<double>& means) {
      agree(job_, [&] {
        if (job_.rank == 0) check_losses(data_.losses, names_, means, states_->steps_done());
      });
      course_->stepped(1, static_cast<double>(samples), means, steps_of_epoch_);
      if (course_->position().step < steps_of_epoch_) {
        course_->stop_clock();
        save();
        course_->start_clock();
      }
      return !course_->is_interrupted();
    };
    course_->start_clock();
    const PlanRunReport report = program.step(constants_, reader, names_, program.scalars(),
                                              {.count = count, .states = &*states_, .stop = request_.stop}, after);
    course_->stop_clock();
    course_->received(report.moved_by_all());
    return report.is_last;
  }

  const TrainRequest& request_;
  const TrainData& data_;
  const Job& job_;
  std::vector<std::string> names_;
  TrainIdentity identity_;
  InputSources constants_;
  std::optional<Resumed> resumed_;
  std::optional<StepProgram> program_;
  std::optional<StepProgram> rest_;  ///< of an epoch's last, smaller batch
  std::optional<Evaluator> evaluator_;
  std::optional<KeptStates> states_;
  std::optional<FiniteStates> finite_;
  std::optional<Course> course_;
  std::int64_t steps_of_epoch_ = 0;
  std::int64_t before_ = 0;  ///< steps done when last asked for a checkpoint
};

}  // namespace

TrainReport train_data_parallel(const TrainRequest& request, const TrainListener& listener, const TrainData& data,
                                const CheckedProgram& checked, const Job& job) {
  return DataParallel(request, listener, data, checked, job).run();
}

}  // namespace einrel
