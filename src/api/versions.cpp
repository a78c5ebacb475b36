#include "api/versions.h"

#include <algorithm>

#include "api/shared_workers.h"
#include "engine/memory.h"

namespace einrel::api {

namespace {

constexpr std::size_t most_kept = 8;  // versions of a program, and ways to run each

std::int64_t peak_of(const Chosen& chosen) {
  if (const auto* const by_plan = std::get_if<ByPlan>(&chosen.how)) return by_plan->plan.peak.bytes;
  return forecast_memory(chosen.tasks).bytes;
}

}  // namespace

ChosenVersion::ChosenVersion(RunRequest asked, Chosen chosen, Job job)
    : asked_(std::move(asked)),
      chosen_(std::move(chosen)),
      job_(std::move(job)),
      predicted_peak_(peak_of(chosen_)),
      is_direct_(job_.ranks == 1 && !is_limited(chosen_.memory) && chosen_.tasks.states.empty()),
      shares_workers_(job_.ranks == 1 && !is_limited(chosen_.memory) &&
                      is_serial(chosen_.tasks.graph, chosen_.resources())) {}

template <class Compute>
auto ChosenVersion::with_session(const Compute& compute) {
  std::optional<SharedWorkers> workers;
  if (shares_workers_) workers.emplace(chosen_.threads);
  std::unique_ptr<Session> session;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      session = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!session) {
    RunResources resources = chosen_.resources();
    if (workers) resources.workers = **workers;
    session = std::make_unique<Session>(chosen_.tasks, std::move(resources), job_);
  } else if (workers) {
    session->compute_on(**workers);
  }
  auto result = compute(*session);
  if (workers) session->compute_on(nullptr);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(session));
  return result;
}

std::vector<einrel::Tensor> ChosenVersion::run(std::span<const einrel::Tensor> inputs, const ScalarBindings& scalars,
                                               const std::stop_token& stop) {
  return with_session([&](Session& session) { return session.run(inputs, scalars, stop); });
}

PlanRunReport ChosenVersion::step(const InputSources& sources, std::vector<OutputWriter> writers,
                                  const ScalarBindings& scalars, const StepsAsked& asked) {
  return with_session([&](Session& session) { return session.step(sources, std::move(writers), scalars, asked); });
}

std::shared_ptr<ChosenVersion> Version::find(const RunRequest& asked, const Job& job) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(chosen_.begin(), chosen_.end(), [&](const auto& version) { return version->is_for(asked, job); });
  return found == chosen_.end() ? nullptr : *found;
}

std::pair<std::shared_ptr<ChosenVersion>, bool> Version::chosen(const RunRequest& asked, const SourceText& source,
                                                                const Job& job,
                                                                const std::function<void(const Chosen&)>& check) {
  if (std::shared_ptr<ChosenVersion> known = find(asked, job)) return {std::move(known), false};
  Chosen chosen = choose(compiled_, asked, source, job);
  check(chosen);
  auto made = std::make_shared<ChosenVersion>(asked, std::move(chosen), job);
  const std::lock_guard lock(mutex_);
  if (chosen_.size() == most_kept) chosen_.erase(chosen_.begin());
  chosen_.push_back(made);
  return {std::move(made), true};
}

std::shared_ptr<Version> Versions::find(const Inputs& inputs) {
  const auto is_for = [&](const auto& version) {
    return std::equal(inputs.begin(), inputs.end(), version.first.begin(), version.first.end(),
                      [](const auto& input, const auto& type) {
                        return input.first == type.first && input.second.dtype() == type.second.first &&
                               input.second.shape() == type.second.second;
                      });
  };
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(made_.begin(), made_.end(), is_for);
  return found == made_.end() ? nullptr : found->second;
}

std::shared_ptr<Version> Versions::get(const InputTypes& types, const std::function<Compiled()>& compile) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(made_.begin(), made_.end(), [&](const auto& version) { return version.first == types; });
  if (found != made_.end()) return found->second;
  auto version = std::make_shared<Version>(compile());
  if (made_.size() == most_kept) made_.erase(made_.begin());
  made_.emplace_back(types, version);
  return version;
}

}  // namespace einrel::api
