#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "engine/choose_plan.h"
#include "engine/compare_plans.h"
#include "engine/kernels.h"
#include "engine/report/algebra_facts.h"
#include "engine/report/summary.h"
#include "engine/session.h"

namespace einrel {

/// A run of a whole program.
struct WholeRun {
  const PlannedTasks& tasks;
  const PlanRunReport& report;
  const std::map<std::string, Summary>& outputs;
  LayoutBindings layouts;                      ///< of the inputs
  std::optional<std::int64_t> peak_bytes;      ///< peak_resident_bytes after it
  std::map<std::string, std::string> sources;  ///< for each input, where it came from
};

/// What `run --json` prints (docs/language.md, "JSON"), as text.
std::string run_json(const Compiled& compiled, const WholeRun& run);

/// What `run --json` prints of a run by a plan; of a job, what all ranks did together. `peak_bytes` are this process's.
std::string run_plan_json(const Compiled& compiled, const PlanReport& plan, const PlanRequest& request,
                          const PlanRunReport& run, const std::map<std::string, Summary>& outputs,
                          std::optional<std::int64_t> peak_bytes);

/// The same of a run by a plan of relations: what EXPLAIN says of it, and per operation what was predicted and
/// measured.
std::string run_algebra_json(const std::string& program, const PlannedTasks& tasks, const ByRelations& chosen,
                             const PlanRunReport& run, const std::map<std::string, Summary>& outputs,
                             std::optional<std::int64_t> peak_bytes);

/// What `explain --json` prints of plans: the same without measurements.
std::string plans_json(const Compiled& compiled, const PlanComparison& comparison, const PlanRequest& request);

/// What it prints of both algebras and the derivation.
std::string explain_json(const Compiled& compiled, const AlgebraFacts& facts);

/// The same for a program that was written in the TRA: it has no vertices.
std::string explain_json(const std::string& program, const AlgebraFacts& facts);

}  // namespace einrel
