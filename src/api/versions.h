#pragma once

#include <einrel/input.h>
#include <einrel/program.h>
#include <einrel/tensor.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "run/choose_plan.h"
#include "run/compile.h"
#include "run/session.h"

namespace einrel::api {

/// How a program runs that was asked to run so, and what runs it. Several threads may run it at a time: each has a
/// session of its own, which is kept for the next run.
class ChosenVersion {
 public:
  ChosenVersion(RunRequest asked, Chosen chosen, Job job);

  bool is_for(const RunRequest& asked, const Job& job) const { return asked == asked_ && job.ranks == job_.ranks; }
  const Chosen& chosen() const { return chosen_; }
  const ChosenFigures& figures() const { return figures_; }

  /// As Session::run and Session::step.
  InMemory run(std::span<const InputSource* const> inputs, const ScalarBindings& scalars, const std::stop_token& stop);
  PlanRunReport step(const InputSources& sources, std::vector<OutputWriter> writers, const ScalarBindings& scalars,
                     const StepsAsked& asked);

 private:
  template <class Compute>
  auto with_session(const Compute& compute);

  RunRequest asked_;
  Chosen chosen_;
  Job job_;
  ChosenFigures figures_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Session>> idle_;
};

/// A program compiled for inputs of certain shapes, and what runs it in all the ways that it was asked to run.
class Version {
 public:
  explicit Version(Compiled compiled);

  const Compiled& compiled() const { return compiled_; }
  /// Throws UserError that lists all inputs that are missing; those of initial values are none where there is a state.
  void require(const Inputs& given, bool has_state) const;
  /// How it runs, chosen when this is first asked for, and whether that was now. Throws as choose and `check` do;
  /// `source` is what messages quote.
  std::pair<std::shared_ptr<ChosenVersion>, bool> chosen(const RunRequest& asked, const SourceText& source,
                                                         const Job& job,
                                                         const std::function<void(const Chosen&)>& check);

 private:
  std::shared_ptr<ChosenVersion> find(const RunRequest& asked, const Job& job);

  /// An input, and how the program declares it.
  using Needed = std::pair<std::string, std::string>;
  std::vector<Needed> needed_by(const EinGraph& graph) const;

  Compiled compiled_;
  std::vector<Needed> needed_;
  std::vector<Needed> needed_at_first_;  ///< by the initial values
  std::mutex mutex_;
  std::vector<std::shared_ptr<ChosenVersion>> chosen_;  // few; the one that was made last comes last
};

/// The type and shape of every input that was given, by name.
using InputTypes = std::map<std::string, std::pair<DType, Shape>>;

/// The versions of one program, each made when inputs of its types first come. Safe to use from several threads.
class Versions {
 public:
  /// The version for these inputs if there is one already; as `get` would, without a copy of all types.
  std::shared_ptr<Version> find(const Inputs& inputs);
  /// The version for these inputs, made by `compile` if there is none yet; what that throws is thrown here.
  std::shared_ptr<Version> get(const InputTypes& types, const std::function<Compiled()>& compile);

 private:
  std::mutex mutex_;
  std::vector<std::pair<InputTypes, std::shared_ptr<Version>>> made_;  // few; the one that was made last comes last
};

}  // namespace einrel::api
