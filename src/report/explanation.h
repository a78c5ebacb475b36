#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "run/choose_plan.h"
#include "run/kernels.h"
#include "run/simulated_run.h"

namespace einrel {

/// What is known of a program and of how it runs, before it does: text, JSON and the page tell the same of it.
struct Explanation {
  std::string program;                 ///< its name
  const Compiled* compiled = nullptr;  ///< nothing of one that is written in the TRA
  PlanRequest request = {};            ///< what plans were asked for
  PlanComparison comparison = {};      ///< plans of vertices, that which runs first; none of relations
  std::optional<AlgebraFacts> algebra = std::nullopt;
  std::optional<std::int64_t> peak = std::nullopt;  ///< bytes, of all sites together, where relations are planned
  std::optional<std::size_t> tasks = std::nullopt;  ///< how many; nothing where they were too many to make
  /// Per vertex or, of relations, per operation, how its tasks compute it; nothing without tasks.
  std::vector<std::vector<KernelCall>> calls = {};
  std::optional<double> seconds = std::nullopt;          ///< of those tasks, on a machine whose kernels were measured
  std::optional<SimulatedRun> simulated = std::nullopt;  ///< of the plan that runs, if it was asked for

  bool has_plan() const { return !comparison.plans.empty(); }
  const PlanReport& plan() const { return comparison.plans.front(); }
  const EinGraph& graph() const { return compiled->graph; }
  /// Whether all is computed in one place.
  bool is_on_one_site() const { return has_plan() && plan().plan.sites == 1; }
};

/// What was chosen for a program that is called so; of one that runs by itself, its plan on this machine's one site,
/// where its inputs lie as `layouts` says. Both must outlive the result.
Explanation explanation_of(const std::string& name, const AnyProgram& program, const Chosen& chosen,
                           const LayoutBindings& layouts = {});
Explanation explanation_of(const Compiled& given, const Chosen& chosen, const LayoutBindings& layouts = {});

/// Adds the plan in both algebras. Throws UserError as `lower` does.
void add_algebra(Explanation& explained);

}  // namespace einrel
