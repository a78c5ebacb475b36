#include <einrel/error.h>
#include <fmt/format.h>

#include <chrono>
#include <mutex>

#include "api/plan_options.h"
#include "api/program_data.h"
#include "api/tensor_data.h"
#include "engine/choose_plan.h"
#include "engine/memory.h"

namespace einrel::api {
namespace {

constexpr std::string_view memory_option = "RunOptions::memory";

/// Each tensor whole, on all threads.
RunResult run_whole(const Run& run, std::size_t threads) {
  RunResult result;
  result.report.predicted_peak = run.version.peak_bytes(memory_option);
  const TaskGraph& whole = run.version.whole();
  std::vector<einrel::Tensor> inputs;
  for (const StoredRelation& input : whole.inputs) inputs.push_back(TensorAccess::inside(run.inputs.at(input.name)));
  const auto start = std::chrono::steady_clock::now();
  const std::vector<einrel::Tensor> outputs = run.version.run(inputs, run.scalars, threads);
  result.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.report.bytes_moved_to = {0};
  for (std::size_t i = 0; i < outputs.size(); ++i)
    result.outputs.insert({whole.outputs[i].name, TensorAccess::outside(outputs[i])});
  return result;
}

PlannedAs asked_for(const RunOptions& options, std::size_t threads) {
  PlannedAs asked{.plan = request_of(PlanOptions{options.sites, options.cost, options.machine, options.memory}),
                  .planner = options.planner.value_or("eindecomp"),
                  .threads = threads,
                  .spill = options.spill ? std::optional(options.spill->string()) : std::nullopt};
  asked.plan.memory = options.memory;  // not a machine's: the run is in this process
  check_planner(asked.planner);
  return asked;
}

/// Chunk by chunk, as a plan says.
RunResult run_planned(const Run& run, const RunOptions& options, std::size_t threads) {
  const Compiled& compiled = run.version.compiled();
  const PlannedAs asked = asked_for(options, threads);
  TensorBindings inputs;
  for (const auto& [name, tensor] : run.inputs) inputs[name] = TensorAccess::inside(tensor);
  static std::mutex one_at_a_time;  // as Session is, and StarPU in a process
  const std::unique_lock lock(one_at_a_time);
  const auto [planned, is_new] = run.version.planned(asked, run.source);
  const ChosenPlan& chosen = planned.chosen;
  check_room(
      compiled.name, chosen, [](const StoredRelation&) { return true; }, memory_option);
  std::map<std::string, einrel::Tensor> outputs = output_tensors(chosen.tasks.graph);
  const PlanRunReport measured =
      planned.session.step(sources_of(inputs), writers_to(outputs, chosen.tasks.graph), run.scalars);
  RunResult result;
  result.report = {.seconds = measured.seconds,
                   .planner = chosen.plan.plan.planner,
                   .sites = chosen.plan.plan.sites,
                   .plan_seconds = is_new ? chosen.plan.seconds : 0,
                   .bytes_moved_to = measured.received,
                   .predicted_peak = chosen.plan.peak.bytes,
                   .spilled = measured.spilled,
                   .read_back = measured.read_back};
  for (const std::int64_t bytes : measured.received) result.report.bytes_moved += bytes;
  for (const auto& [name, tensor] : outputs) result.outputs.insert({name, TensorAccess::outside(tensor)});
  return result;
}

}  // namespace

RunResult run_version(const Run& run, const RunOptions& options) {
  const std::size_t threads = threads_of(options.threads);
  if (options.spill && !options.memory)
    throw UserError("RunOptions::spill needs RunOptions::memory: what may stay in memory");
  const bool is_planned = options.sites || options.planner || options.cost || options.machine || options.memory;
  return is_planned ? run_planned(run, options, threads) : run_whole(run, threads);
}

std::optional<std::int64_t> peak_memory() { return peak_resident_bytes(); }

}  // namespace einrel::api
