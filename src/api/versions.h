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
#include <string_view>
#include <utility>
#include <vector>

#include "engine/choose_plan.h"
#include "engine/compile.h"
#include "engine/session.h"

namespace einrel::api {

/// What runs by a plan are asked for.
struct PlannedAs {
  PlanRequest plan;
  std::string planner;
  std::size_t threads = 1;
  int ranks = 1;                     ///< of the job whose sites they are
  std::optional<std::string> spill;  ///< a folder
  std::optional<std::string> given;  ///< a plan, as JSON
  bool operator==(const PlannedAs&) const = default;
};
/// Throws UserError for a plan that is none, or not one of this program.
RunRequest request_of(const PlannedAs& asked, const Compiled& compiled);

/// Throws UserError where options of plans contradict each other, or the number of ranks.
void check_plan_options(const RunOptions& options, const Job& job);
/// Whether they ask for a plan.
bool is_planned(const RunOptions& options, const Job& job);
/// Throws UserError for a machine or a planner that there is not.
PlannedAs asked_for(const RunOptions& options, std::size_t threads, const Job& job);

/// Ends the process, or all of the job: StarPU cannot go on without a chunk that it could not write, and has no way to
/// stop.
std::function<void(std::exception_ptr)> ending(const Job& job);

/// A plan that was chosen, and what runs it.
struct PlannedVersion {
  PlannedAs asked;
  ChosenPlan chosen;
  Session session;

  PlannedVersion(PlannedAs request, ChosenPlan plan, const Job& job);
};

/// A program compiled for inputs of certain shapes, and what runs it. Several threads may run it whole at a time: each
/// has a session of its own. What runs is kept for the next run.
class Version {
 public:
  explicit Version(Compiled compiled) : compiled_(std::move(compiled)) {}

  const Compiled& compiled() const { return compiled_; }
  /// What runs it by a plan that is chosen when this is first asked for, and whether that was now. For one thread at a
  /// time. Throws as choose_plan does; `source` is what messages quote.
  std::pair<PlannedVersion&, bool> planned(const PlannedAs& asked, const SourceText& source, const Job& job);
  /// Its tasks where it runs whole, made when they are first asked for.
  const PlannedTasks& whole();
  /// What such a run needs at most, with its inputs. The first call throws as check_memory does; `limit` is how to
  /// limit memory.
  std::int64_t peak_bytes(std::string_view limit);
  /// As Session::run, of the whole program. 1 to most_threads threads.
  std::vector<einrel::Tensor> run(std::span<const einrel::Tensor> inputs, const ScalarBindings& scalars,
                                  std::size_t threads, const std::stop_token& stop);
  /// As Session::step, likewise.
  PlanRunReport step(const InputSources& sources, std::vector<OutputWriter> writers, const ScalarBindings& scalars,
                     const StepsAsked& asked, std::size_t threads);

 private:
  struct IdleSession {
    std::size_t threads = 1;
    std::unique_ptr<Session> session;
  };
  const PlannedTasks& whole_tasks();
  std::unique_ptr<Session> session_on(const std::shared_ptr<Workers>& workers);
  void keep(std::size_t threads, std::unique_ptr<Session> session);

  Compiled compiled_;
  std::mutex mutex_;
  std::optional<PlannedTasks> whole_;
  std::optional<std::int64_t> peak_bytes_;
  std::vector<IdleSession> idle_;
  std::vector<std::unique_ptr<PlannedVersion>> planned_;  // few; the one that was made last comes last
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
