#include "api/versions.h"

#include <einrel/error.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "run/forecast_memory.h"

namespace einrel::api {

namespace {

constexpr std::size_t most_kept = 8;  // versions of a program, and ways to run each

}  // namespace

ChosenVersion::ChosenVersion(RunRequest asked, Chosen chosen, Job job)
    : asked_(std::move(asked)), chosen_(std::move(chosen)), job_(std::move(job)), figures_(figures_of(chosen_)) {}

template <class Compute>
auto ChosenVersion::with_session(const Compute& compute) {
  std::unique_ptr<Session> session;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      session = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!session) session = std::make_unique<Session>(chosen_.tasks, chosen_.resources(), job_);
  auto result = compute(*session);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(session));
  return result;
}

InMemory ChosenVersion::run(std::span<const InputSource* const> inputs, const ScalarBindings& scalars,
                            const std::stop_token& stop) {
  return with_session([&](Session& session) { return session.run(inputs, scalars, stop); });
}

PlanRunReport ChosenVersion::step(const InputSources& sources, std::vector<OutputWriter> writers,
                                  const ScalarBindings& scalars, const StepsAsked& asked) {
  return with_session([&](Session& session) { return session.step(sources, std::move(writers), scalars, asked); });
}

Version::Version(Compiled compiled) : compiled_(std::move(compiled)), needed_(needed_by(compiled_.graph)) {
  if (compiled_.initial) needed_at_first_ = needed_by(compiled_.initial->graph);
}

std::vector<Version::Needed> Version::needed_by(const EinGraph& graph) const {
  std::set<std::string> states;
  for (const einrel::State& state : compiled_.graph.steps.states) states.insert(compiled_.graph[state.now].name);
  std::vector<Needed> needed;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex) && states.count(vertex.name) == 0) needed.emplace_back(vertex.name, formula(vertex, graph));
  }
  return needed;
}

void Version::require(const Inputs& given, bool has_state) const {
  std::vector<std::string> missing;
  const auto look_for = [&](const std::vector<Needed>& inputs) {
    for (const auto& [name, declaration] : inputs) {
      if (given.find(name) == given.end()) missing.push_back(declaration);
    }
  };
  look_for(needed_);
  if (!has_state) look_for(needed_at_first_);
  if (!missing.empty())
    throw UserError(fmt::format("missing {}: run the program with a tensor for it", fmt::join(missing, ", ")));
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
