#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "run/saved_states.h"
#include "tensor/convert.h"
#include "tensor/tensor_file.h"
#include "train/course.h"
#include "train/finite.h"
#include "train/subnets.h"

namespace einrel {
namespace {

/// Sums of a state over the sites, in their order, whose mean is rounded once.
class Mean {
 public:
  void add(const Tensor& tensor) {
    const std::vector<double> values = values_of(tensor);
    if (count_++ == 0) return sums_ = values, void();
    for (std::size_t i = 0; i < values.size(); ++i) sums_[i] += values[i];
  }
  /// Integers are the same on all sites, or what the first one has.
  Tensor mean(const Subnets::SlicedState& state) const {
    std::vector<double> means = sums_;
    for (double& mean : means) mean /= static_cast<double>(count_);
    return tensor_of(state.dtype, state.bound, means);
  }

 private:
  std::vector<double> sums_;
  std::size_t count_ = 0;
};

bool is_averaged(const Subnets::SlicedState& state) {
  const bool is_float = state.dtype != DType::i32 && state.dtype != DType::i64 && state.dtype != DType::boolean;
  return is_float && !state.is_sliced();
}

/// The coordinator (rank 0) has the whole network between rounds. In a round every site gets its part, trains it on its
/// own for some steps, and gives it back (Luo's thesis, algorithms 1 and 2).
class LocalSgd {
 public:
  using States = std::map<std::string, Tensor>;

  LocalSgd(const TrainRequest& request, const TrainListener& listener, const TrainData& data,
           const CheckedProgram& checked, const Job& job)
      : request_(request),
        data_(data),
        job_(job),
        sites_(request.local->sites),
        names_(reported(request, *checked.graph)),
        identity_(identity_of(request, data, checked, sites_)),
        constants_(constant_inputs(request, checked, data.feeds)) {
    agree(job, [&] {
      if (checked.graph->steps.until)
        throw UserError(fmt::format(
            "with --local-steps {} no site knows the whole network, so `until` has no meaning; leave it out",
            request.local->steps));
      subnets_ = find_subnets(request, data.feeds, checked);
      const auto batches = static_cast<std::int64_t>(data.batches(request, 0).size());
      steps_of_epoch_ = batches / sites_;
      if (steps_of_epoch_ == 0)
        throw UserError(fmt::format("an epoch has {}, fewer than the {} sites; take smaller ones, or fewer sites",
                                    counted(static_cast<std::size_t>(batches), "batch", "batches"), sites_));
      if (request.resume) resumed_ = resume_from(*request.resume, identity_, {names_.size(), steps_of_epoch_}, job);
    });
    check_alike(resumed_, job);
    agree(job, [&] {
      if (job.rank == 0) begin_whole(checked);
      for (std::int64_t s = 0; s < sites_; ++s) {
        if (is_here(s)) program_of(s);
      }
      if (job.rank == 0 && !data.test.empty())
        evaluator_.emplace(request, data.tested(), data.test, data.feeds, data.statistics(request), names_,
                           *checked.graph, nullptr, Job{});
    });
    if (job.rank == 0) program_of(0).tell_passes(listener);
    finite_.emplace(parts_now());
    course_.emplace(request, listener, names_, data, identity_, resumed_ ? resumed_->position : Position{}, job);
    if (resumed_) steps_done_ = course_->position().epoch * steps_of_epoch_ + course_->position().step;
  }

  TrainReport run() {
    while (course_->position().epoch < request_.epochs && !course_->is_interrupted()) {
      epoch();
      if (course_->position().step < steps_of_epoch_) break;  // interrupted
      const auto evaluate = [&] {
        return evaluator_ ? evaluator_->run({whole_.begin(), whole_.end()}, steps_done_) : std::vector<double>{};
      };
      course_->end_epoch(steps_done_, false, evaluate, learnt());
      save();
    }
    TrainReport report = course_->finish(steps_done_, learnt());
    report.states = whole_;
    return report;
  }

 private:
  bool is_here(std::int64_t site) const { return job_.ranks == 1 || site == job_.rank; }

  /// The first values of the whole network, on rank 0.
  void begin_whole(const CheckedProgram& checked) {
    const Compiled compiled = compiled_for(request_, checked, *checked.graph, names_);
    if (resumed_) {
      const LoadedStates loaded = load_states(compiled.graph, resumed_->path, request_.inflate);
      for (const auto& [name, file] : loaded.files) whole_[name] = owned(read(file.first, file.second));
      return;
    }
    const StepProgram program(compiled, request_, nullptr, Job{});
    InputSources sources = constants_;
    for (auto& [name, source] : assemble(data_.feeds, data_.batches(request_, 0).front())) sources[name] = source;
    const KeptStates states = program.states(std::nullopt, sources);
    for (std::size_t s = 0; s < program.tasks().states.size(); ++s)
      whole_[program.tasks().states[s].type.name] = owned(std::get<Tensor>(states[s].now()));
  }

  static Tensor owned(const Tensor& tensor) {
    Tensor copy(tensor.dtype(), tensor.shape());
    copy_elements(tensor.dtype(), tensor.shape(), {tensor.data(), tensor.strides()}, copy.mutable_data(),
                  copy.strides());
    return copy;
  }

  StepProgram& program_of(std::int64_t site) {
    std::vector<std::int64_t> extents;
    std::map<std::string, std::int64_t> dims;
    for (std::size_t l = 0; l < subnets_.labels.size(); ++l) {
      extents.push_back(part_of(subnets_.extents[l], site, sites_));
      dims[subnets_.labels[l]] = extents.back();
    }
    const auto known = programs_.find(extents);
    if (known != programs_.end()) return known->second;
    const CheckedProgram checked = check_for(request_, data_.feeds, request_.batch, dims);
    const EinGraph graph = placed_in_whole(*checked.graph, subnets_, sites_);
    StepProgram program(compiled_for(request_, checked, graph, names_), request_, nullptr, Job{});
    return programs_.emplace(extents, std::move(program)).first->second;
  }

  void epoch() {
    const std::vector<Batch> batches = data_.batches(request_, course_->position().epoch);
    while (course_->position().step < steps_of_epoch_ && !course_->is_interrupted()) {
      const std::int64_t first = course_->position().step;
      const std::int64_t count = std::min(request_.local->steps, steps_of_epoch_ - first);
      course_->start_clock();
      round(batches, first, count);
      course_->stop_clock();
      if (course_->position().step < steps_of_epoch_) save();
    }
  }

  /// Every site's states before a round: on rank 0 those that stay, the others' are sent.
  States part_for(const Parts& parts) {
    States part;
    for (const Subnets::SlicedState& state : subnets_.states)
      part[state.name] = slice_of(whole_.at(state.name), state, parts);
    return part;
  }

  void send_states(int to, const States& states) const {
    for (const Subnets::SlicedState& state : subnets_.states) {
      const Tensor tensor = states.at(state.name).row_major();
      send(to, {tensor.data(), static_cast<std::size_t>(tensor.byte_count())});
    }
  }

  States receive_states(int from, const Parts& parts) const {
    States states;
    for (const Subnets::SlicedState& state : subnets_.states) {
      Tensor tensor(state.dtype, bound_of(state, parts));
      receive(from, {tensor.mutable_data(), static_cast<std::size_t>(tensor.byte_count())});
      states[state.name] = std::move(tensor);
    }
    return states;
  }

  /// What a site makes of its part on its own batches, and the sums of what is reported.
  States train_site(std::int64_t site, const Parts& parts, const States& part, std::vector<Batch> batches,
                    std::vector<double>& sums) {
    StepProgram& program = program_of(site);
    KeptStates states = program.states(GivenStates{{part.begin(), part.end()}, steps_done_});
    const std::size_t count = batches.size();
    BatchReader reader(data_.feeds, std::move(batches));
    InputSources all = constants_;
    all.merge(places_of(subnets_, site, parts));
    const auto after = [&](const std::vector<double>& values) {
      check_losses(data_.losses, names_, values, states.steps_done());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
      return true;
    };
    program.step(all, reader, names_, program.scalars(), {.count = count, .states = &states, .stop = request_.stop},
                 after);
    States trained;
    for (std::size_t s = 0; s < program.tasks().states.size(); ++s)
      trained[program.tasks().states[s].type.name] = std::get<Tensor>(states[s].now());
    return trained;
  }

  /// The batches of a site are every n-th.
  std::vector<Batch> batches_for(std::int64_t site, const std::vector<Batch>& all, std::int64_t first,
                                 std::int64_t count) const {
    std::vector<Batch> batches;
    for (std::int64_t j = first; j < first + count; ++j)
      batches.push_back(all[static_cast<std::size_t>(j * sites_ + site)]);
    return batches;
  }

  void round(const std::vector<Batch>& batches, std::int64_t first, std::int64_t count) {
    const std::vector<Parts> parts = divide(subnets_, sites_, request_.seed, steps_done_);
    const auto parts_of = [&](std::int64_t site) -> const Parts& { return parts[static_cast<std::size_t>(site)]; };
    std::vector<double> sums(names_.size(), 0);
    const auto trained = [&](std::int64_t site, const States& part) {
      return train_site(site, parts_of(site), part, batches_for(site, batches, first, count), sums);
    };
    if (job_.rank != 0) {
      send_states(0, trained(job_.rank, receive_states(0, parts_of(job_.rank))));
    } else {
      for (std::int64_t s = 1; s < job_.ranks; ++s) send_states(static_cast<int>(s), part_for(parts_of(s)));
      std::map<std::string, Mean> means;
      for (std::int64_t s = 0; s < sites_; ++s) {
        const States back =
            is_here(s) ? trained(s, part_for(parts_of(s))) : receive_states(static_cast<int>(s), parts_of(s));
        take_back(s, parts_of(s), back, means);
      }
      for (const Subnets::SlicedState& state : subnets_.states) {
        if (is_averaged(state)) whole_[state.name] = means.at(state.name).mean(state);
      }
    }
    count_bytes(parts);
    steps_done_ += count;
    std::vector<double> all(names_.size(), 0);
    for (const std::vector<double>& rank : gather(job_, sums)) {
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += rank[i] / static_cast<double>(count * sites_);
    }
    course_->stepped(count, static_cast<double>(count * sites_ * request_.batch), all, steps_of_epoch_);
  }

  void take_back(std::int64_t site, const Parts& parts, const States& part, std::map<std::string, Mean>& means) {
    for (const Subnets::SlicedState& state : subnets_.states) {
      const Tensor& tensor = part.at(state.name);
      if (state.is_sliced()) {
        put_back(tensor, state, parts, whole_.at(state.name));
      } else if (is_averaged(state)) {
        means[state.name].add(tensor);
      } else if (site == 0) {
        whole_[state.name] = owned(tensor);
      }
    }
  }

  /// What sites get and give back, also the one that lies beside the coordinator.
  void count_bytes(const std::vector<Parts>& parts) {
    std::int64_t bytes = 0;
    for (const Parts& site : parts) {
      for (const Subnets::SlicedState& state : subnets_.states)
        bytes += element_count(bound_of(state, site)) * static_cast<std::int64_t>(size_of(state.dtype));
    }
    course_->received(2 * bytes);
  }

  StateParts parts_now() const { return {whole_.begin(), whole_.end()}; }

  Learnt learnt() const {
    return {.check = [this] { agree(job_, [this] { finite_->check(parts_now(), steps_done_); }); }, .write = writer()};
  }

  Checkpoints::Write writer() const {
    return [this](const std::string& path, const AddedTensors& added) {
      agree(job_, [&] {
        if (job_.rank != 0) return;
        FileTensors tensors;
        tensors.emplace_back(FileRef{path, iteration_name},
                             tensor_of(DType::i64, {}, {static_cast<double>(steps_done_)}));
        for (const auto& [name, tensor] : whole_) tensors.emplace_back(FileRef{path, name}, tensor);
        added.add(tensors);
        write_tensors(tensors);
      });
    };
  }

  void save() {
    course_->save_if_due(before_, steps_done_, learnt());
    before_ = steps_done_;
  }

  const TrainRequest& request_;
  const TrainData& data_;
  const Job& job_;
  std::int64_t sites_;
  std::vector<std::string> names_;
  TrainIdentity identity_;
  InputSources constants_;
  Subnets subnets_;
  std::int64_t steps_of_epoch_ = 0;  ///< of each site
  std::int64_t steps_done_ = 0;      ///< by each site
  std::int64_t before_ = 0;          ///< when last asked for a checkpoint
  std::optional<Resumed> resumed_;
  std::map<std::vector<std::int64_t>, StepProgram> programs_;  ///< by extents of the subnet labels
  States whole_;                                               ///< on rank 0
  std::optional<FiniteStates> finite_;
  std::optional<Evaluator> evaluator_;
  std::optional<Course> course_;
};

}  // namespace

TrainReport train_local_sgd(const TrainRequest& request, const TrainListener& listener, const TrainData& data,
                            const CheckedProgram& checked, const Job& job) {
  return LocalSgd(request, listener, data, checked, job).run();
}

}  // namespace einrel
