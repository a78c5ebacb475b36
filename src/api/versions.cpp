#include "api/versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "api/plan_options.h"
#include "api/shared_workers.h"
#include "engine/memory.h"
#include "engine/plan_file.h"
#include "engine/recompute.h"
#include "plan/default_planner.h"

namespace einrel::api {

namespace {

void end_process(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& reason) {
    std::fputs(fmt::format("einrel: a run had to end with its process: {}\n", reason.what()).c_str(), stderr);
  }
  constexpr int run_failed = 2;
  std::_Exit(run_failed);
}

}  // namespace

std::function<void(std::exception_ptr)> ending(const Job& job) {
  if (job.ranks == 1) return end_process;
  return [job](const std::exception_ptr& error) { job.on_failure(error, job); };
}

RunRequest request_of(const PlannedAs& asked, const Compiled& compiled) {
  RunRequest request{.plan = asked.plan,
                     .planner = asked.planner,
                     .given = std::nullopt,
                     .threads = asked.threads,
                     .may_spill = asked.spill.has_value()};
  if (asked.given) request.given = parse_plan(*asked.given, "the option 'plan'", compiled);
  return request;
}

void check_plan_options(const RunOptions& options, const Job& job) {
  if (options.spill && !options.memory)
    throw UserError(
        "the option 'spill' needs the option 'memory', how much may stay in memory: without a limit nothing goes to "
        "disk");
  if (options.plan && (options.sites || options.planner || options.cost || options.machine))
    throw UserError("the option 'plan' is a plan already: leave out sites, planner, cost and machine");
  if (job.ranks > 1 && options.sites && *options.sites != job.ranks) {
    throw UserError(
        fmt::format("{} sites, but each of the {} ranks is one: leave out the option 'sites', or start as "
                    "many ranks",
                    *options.sites, job.ranks));
  }
}

bool is_planned(const RunOptions& options, const Job& job) {
  return options.sites || options.planner || options.cost || options.plan || options.machine || options.memory ||
         job.ranks > 1;
}

PlannedAs asked_for(const RunOptions& options, std::size_t threads, const Job& job) {
  std::optional<std::int64_t> sites = options.sites;
  if (job.ranks > 1 && !options.plan) sites = job.ranks;
  PlannedAs asked{.plan = request_of(PlanOptions{sites, options.cost, options.machine, options.memory}),
                  .planner = options.planner.value_or(default_planner),
                  .threads = threads,
                  .ranks = job.ranks,
                  .spill = options.spill ? std::optional(options.spill->string()) : std::nullopt,
                  .given = options.plan};
  asked.plan.memory = options.memory;  // not a machine's: the run is in this process, or shares one machine
  check_planner(asked.planner);
  return asked;
}

PlannedVersion::PlannedVersion(PlannedAs request, ChosenPlan plan, const Job& job)
    : asked(std::move(request)),
      chosen(std::move(plan)),
      session(chosen.tasks, resources_of(chosen, asked.spill, ending(job)), job) {}

std::pair<PlannedVersion&, bool> Version::planned(const PlannedAs& asked, const SourceText& source, const Job& job) {
  constexpr std::size_t most_kept = 8;
  const auto found =
      std::find_if(planned_.begin(), planned_.end(), [&](const auto& version) { return version->asked == asked; });
  if (found != planned_.end()) return {**found, false};
  RunRequest request = request_of(asked, compiled_);
  const std::optional<Compiled> recomputed = recomputed_for(compiled_, request, job);
  ChosenPlan chosen = choose_plan(recomputed ? *recomputed : compiled_, std::move(request), source, job);
  if (planned_.size() == most_kept) planned_.erase(planned_.begin());
  planned_.push_back(std::make_unique<PlannedVersion>(asked, std::move(chosen), job));
  return {*planned_.back(), true};
}

const PlannedTasks& Version::whole_tasks() {
  if (!whole_) whole_ = einrel::whole_tasks(compiled_);
  return *whole_;
}

const PlannedTasks& Version::whole() {
  const std::lock_guard lock(mutex_);
  return whole_tasks();
}

std::int64_t Version::peak_bytes(std::string_view limit) {
  const std::lock_guard lock(mutex_);
  if (!peak_bytes_) {
    check_memory(
        whole_tasks(), {}, [](const StoredRelation&) { return true; }, limit);
    peak_bytes_ = forecast_memory(whole_tasks()).peak_bytes;
  }
  return *peak_bytes_;
}

std::unique_ptr<Session> Version::session_on(const std::shared_ptr<Workers>& workers) {
  const std::lock_guard lock(mutex_);
  const std::size_t threads = workers->threads();
  const auto found =
      std::find_if(idle_.begin(), idle_.end(), [&](const IdleSession& idle) { return idle.threads == threads; });
  if (found == idle_.end())
    return std::make_unique<Session>(whole_tasks(), PlanResources{threads, {}, {}, false, false, workers});
  std::unique_ptr<Session> session = std::move(found->session);
  idle_.erase(found);
  session->compute_on(workers);
  return session;
}

std::vector<einrel::Tensor> Version::run(std::span<const einrel::Tensor> inputs, const ScalarBindings& scalars,
                                         std::size_t threads, const std::stop_token& stop) {
  const SharedWorkers workers(threads);
  std::unique_ptr<Session> session = session_on(*workers);
  std::vector<einrel::Tensor> outputs = session->run(inputs, scalars, stop);
  keep(threads, std::move(session));
  return outputs;
}

PlanRunReport Version::step(const InputSources& sources, std::vector<OutputWriter> writers,
                            const ScalarBindings& scalars, const StepsAsked& asked, std::size_t threads) {
  const SharedWorkers workers(threads);
  std::unique_ptr<Session> session = session_on(*workers);
  PlanRunReport report = session->step(sources, std::move(writers), scalars, asked);
  keep(threads, std::move(session));
  return report;
}

void Version::keep(std::size_t threads, std::unique_ptr<Session> session) {
  session->compute_on(nullptr);
  const std::lock_guard lock(mutex_);
  idle_.push_back({threads, std::move(session)});
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
  constexpr std::size_t most_kept = 8;
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
