#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/source.h"
#include "engine/compile.h"
#include "engine/kept_states.h"
#include "engine/report/summary.h"
#include "engine/saved_states.h"
#include "engine/session.h"
#include "exec/starpu/job.h"
#include "plan_arguments.h"
#include "program_input.h"
#include "tensor/tensor_file.h"

namespace einrel::cli {

/// Outputs and the files that they are to be written to, as given.
using OutputFiles = std::vector<std::pair<std::string, FileRef>>;

/// A run by a plan, of vertices or of relations: on sites, the ranks of a job or threads of this process.
struct PlannedRun {
  AnyProgram program;
  const SourceText& source;
  const OpenInputs& inputs;
  std::optional<std::uint64_t> seed;
  ScalarBindings scalars;
  OutputFiles outputs;
  const PlanArguments& plan;
  std::optional<std::string> planner;
  std::size_t threads = 1;
  std::optional<std::string> spill;
  std::optional<std::string> trace;
  std::optional<std::string> html;
  std::size_t steps = 1;
  const std::optional<LoadedStates>& loaded;
  std::optional<std::string> save;
  ProgressListener progress;
  bool explain = false;
  bool analyze = false;
  bool json = false;
};

/// What was computed: of each output what it is like or, where files were wanted, into which it went.
void print_results(const OutputFiles& files, const std::map<std::string, Summary>& summaries,
                   const PlannedTasks& tasks);
/// How long steps took, where there were several, and where states went.
void print_steps(const PlanRunReport& report, const PlannedTasks& tasks, const KeptStates& states,
                 const std::optional<std::string>& save);

/// Plans, runs, writes outputs and prints, on rank 0. Throws as the parts do, FailedElsewhere where the error is that
/// of another rank.
void run_by_plan(PlannedRun run, const Job& job);

}  // namespace einrel::cli
