#include "train/course.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "einsum/check/expand.h"
#include "einsum/front/text/print_program.h"
#include "train/collected.h"

namespace einrel {

Batch TrainData::statistics(const TrainRequest& request) const {
  if (!request.calibrate_with || test.empty()) return {};
  Batch chosen;
  for (const std::int64_t at : shuffled(static_cast<std::int64_t>(training.size()), request.seed, 0, "statistics")) {
    if (std::ssize(chosen) == *request.calibrate_with) break;
    chosen.push_back(training[static_cast<std::size_t>(at)]);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<Batch> TrainData::batches(const TrainRequest& request, std::int64_t epoch) const {
  std::vector<std::int64_t> order;
  const auto count = static_cast<std::int64_t>(training.size());
  for (const std::int64_t at : shuffled(count, request.seed, epoch, "epoch"))
    order.push_back(training[static_cast<std::size_t>(at)]);
  std::vector<Batch> all = batches_of(order, request.batch);
  if (!request.keep_last && all.back().size() < static_cast<std::size_t>(request.batch)) all.pop_back();
  return all;
}

TrainIdentity identity_of(const TrainRequest& request, const TrainData& data, const CheckedProgram& checked,
                          std::int64_t sites) {
  build::Program program = expanded(checked);
  std::string text = print(program);
  text += fmt::format("\n{} {} {} {}", request.batch_label, request.keep_last, request.hold_out.value_or(0),
                      fmt::join(request.report, ","));
  for (const auto& [label, extent] : request.dims) text += fmt::format(" {}:{}", label, extent);
  for (const auto& [name, value] : request.scalars) text += fmt::format(" {}={}", name, value);
  if (request.local) text += fmt::format(" {} {}", request.local->steps, fmt::join(request.local->subnets, ","));
  return {hash_of(text), static_cast<std::int64_t>(request.seed), static_cast<std::int64_t>(data.training.size()),
          request.batch, sites};
}

namespace {

std::vector<std::string> read_by(const TrainRequest& request) {
  std::vector<std::string> files = request.files;
  for (const FeedSources* const sources : {&request.feeds, &request.test}) {
    const std::vector<std::string> paths = paths_of(*sources);
    files.insert(files.end(), paths.begin(), paths.end());
  }
  return files;
}

void note_left_out(const TrainRequest& request, const TrainData& data,
                   const std::function<void(const std::string&)>& note) {
  const std::int64_t together = request.batch * (request.local ? request.local->sites : 1);
  const auto left_out = static_cast<std::int64_t>(data.training.size()) % together;
  if (left_out == 0 || request.keep_last) return;
  const std::string samples =
      fmt::format("each epoch leaves out {} that {}", counted(static_cast<std::size_t>(left_out), "sample"),
                  left_out == 1 ? "makes" : "make");
  if (request.local)
    note(fmt::format("{} no whole batch for each of {}", samples,
                     counted(static_cast<std::size_t>(request.local->sites), "site")));
  else
    note(fmt::format("{} no whole batch; --keep-last takes {}", samples, left_out == 1 ? "it" : "them"));
}

}  // namespace

Course::Course(const TrainRequest& request, const TrainListener& listener, std::vector<std::string> names,
               const TrainData& data, const TrainIdentity& identity, Position position, const Job& job)
    : request_(request), listener_(listener), job_(job), names_(std::move(names)), position_(std::move(position)) {
  position_.sums.resize(names_.size(), 0);
  report_.names = names_;
  if (request.save) {
    const bool goes_on = request.resume && std::filesystem::weakly_canonical(*request.resume) ==
                                               std::filesystem::weakly_canonical(*request.save);
    checkpoints_.emplace(*request.save, goes_on, identity, job);
  }
  agree(job, [&] {
    if (job.rank == 0 && request.log)
      log_.emplace(*request.log, names_, !data.test.empty(), position_.epoch, read_by(request));
  });
  if (job.rank == 0 && listener.note) note_left_out(request, data, listener.note);
  for (const std::string& text : data.notes) note(text);
  if (job.rank == 0 && listener.begin) listener.begin(names_);
}

void Course::note(const std::string& text) const {
  if (job_.rank == 0 && listener_.note) listener_.note(text);
}

void Course::stop_clock() {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - clock_).count();
  position_.seconds += seconds;
  seconds_of_epoch_ += seconds;
}

void Course::stepped(std::int64_t steps, double samples, const std::vector<double>& means,
                     std::int64_t steps_of_epoch) {
  position_.step += steps;
  position_.samples += samples;
  samples_of_epoch_ += samples;
  for (std::size_t i = 0; i < means.size(); ++i) position_.sums[i] += means[i] * samples;
  if (job_.rank != 0 || !listener_.progress) return;
  const double seconds =
      seconds_of_epoch_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - clock_).count();
  TrainProgress progress{position_.epoch + 1, request_.epochs, position_.step,
                         steps_of_epoch,      position_.sums,  samples_of_epoch_ / seconds};
  for (double& mean : progress.means) mean /= position_.samples;
  const auto epochs_left = static_cast<double>(request_.epochs - position_.epoch);  // times steps: beyond 63 bits
  const double steps_left = static_cast<double>(steps_of_epoch) * epochs_left - static_cast<double>(position_.step);
  progress.seconds_left = steps_left * (samples / static_cast<double>(steps)) / progress.samples_per_second;
  listener_.progress(progress);
}

bool Course::is_interrupted() {
  // Ranks ask each other, so all ask as often.
  report_.is_interrupted = report_.is_interrupted || (request_.is_interrupted && request_.is_interrupted());
  return report_.is_interrupted;
}

std::vector<double> Course::tested(std::int64_t steps_done, const Evaluate& evaluate, const Learnt& learnt) {
  try {
    return evaluate();
  } catch (const std::runtime_error&) {  // samples to test on that are no numbers, say
    if (checkpoints_ && job_.ranks == 1) checkpoints_->save(steps_done, position_, learnt.write);
    throw;
  }
}

void Course::end_epoch(std::int64_t steps_done, bool is_held, const Evaluate& evaluate, const Learnt& learnt) {
  learnt.check();
  position_.is_held = is_held;
  // A training that goes on may have nothing left of its first epoch but the test.
  const double rate = samples_of_epoch_ > 0 ? samples_of_epoch_ / seconds_of_epoch_ : 0;
  EpochReport epoch{position_.epoch + 1, steps_done, position_.seconds, rate, position_.bytes, position_.sums, {}};
  for (double& mean : epoch.training) mean /= position_.samples;
  epoch.training = on_all_ranks(epoch.training, job_);
  epoch.test = on_all_ranks(tested(steps_done, evaluate, learnt), job_);
  ++position_.epoch;
  position_.step = 0;
  position_.samples = samples_of_epoch_ = seconds_of_epoch_ = 0;
  position_.sums.assign(names_.size(), 0);
  report_.epochs.push_back(epoch);
  if (job_.rank == 0 && listener_.epoch) listener_.epoch(epoch);
  if (!log_) return;
  try {
    log_->add(epoch);
    log_error_.reset();
  } catch (const std::runtime_error& error) {  // as of checkpoints: the next row brings this one, too
    log_error_ = error.what();
    note(fmt::format("no row in the log after epoch {}: {}; training goes on", epoch.epoch, error.what()));
  }
}

void Course::save_if_due(std::int64_t steps_before, std::int64_t steps_done, const Learnt& learnt) {
  if (!checkpoints_) return;
  const bool is_due = request_.save_every ? steps_before / *request_.save_every != steps_done / *request_.save_every
                                          : position_.step == 0;
  if (!is_due) return;
  learnt.check();
  try {
    checkpoints_->save(steps_done, position_, learnt.write);
    saved_ = steps_done;
  } catch (const FailedElsewhere&) {
    *job_.fails_together = false;
  } catch (const std::runtime_error& error) {  // UserError or RunError: training has not lost anything yet
    *job_.fails_together = false;
    note(
        fmt::format("no checkpoint after {}: {}; training goes on{}",
                    counted(static_cast<std::size_t>(steps_done), "step"), error.what(),
                    checkpoints_->last() ? fmt::format(", and {} is complete", printable(*checkpoints_->last())) : ""));
  }
}

TrainReport Course::finish(std::int64_t steps_done, const Learnt& learnt) {
  report_.steps = steps_done;
  learnt.check();
  try {
    if (checkpoints_ && saved_ != steps_done) checkpoints_->save(steps_done, position_, learnt.write);
    agree(job_, [&] {
      if (log_error_) throw RunError(fmt::format("the log is not complete: {}", *log_error_));
    });
  } catch (const UserError& error) {  // somebody removed the folder meanwhile, say
    report_.unwritten = std::make_exception_ptr(RunError(error.what()));
  } catch (...) {  // RunError, or of another rank
    report_.unwritten = std::current_exception();
  }
  if (checkpoints_) report_.saved = checkpoints_->last();
  return std::move(report_);
}

}  // namespace einrel
