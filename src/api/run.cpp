#include <einrel/error.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>

#include "api/plan_options.h"
#include "api/program_data.h"
#include "api/tensor_data.h"
#include "base/text.h"
#include "engine/choose_plan.h"
#include "engine/initial_states.h"
#include "engine/memory.h"

namespace einrel::api {
namespace {

constexpr std::string_view memory_option = "RunOptions::memory";

InputSources sources_of_run(const Run& run) {
  InputSources sources;
  for (const auto& [name, tensor] : run.inputs) sources[name] = TensorAccess::inside(tensor);
  return sources;
}

bool has_state(const Run& run) { return !run.version.compiled().graph.steps.states.empty(); }

/// Gives states the values that they are to go on from, else those that `compute` does.
void begin(const PlannedTasks& tasks, const std::optional<State>& given, KeptStates& states,
           const std::function<void()>& compute) {
  if (!given) return compute();
  InputSources values;
  for (const auto& [name, tensor] : given->tensors) {
    const auto is_it = [&, &called = name](const TaskState& state) { return state.type.name == called; };
    if (std::none_of(tasks.states.begin(), tasks.states.end(), is_it))
      throw UserError(fmt::format("RunOptions::state: the program has no state '{}'", printable(name)));
    values[name] = TensorAccess::inside(tensor);
  }
  if (given->steps_done < 0)
    throw UserError(fmt::format("RunOptions::state: {} steps cannot have been done", given->steps_done));
  states.begin(tasks, values, given->steps_done);
}

/// Of a run in steps.
void add_results(const PlannedTasks& tasks, const std::map<std::string, einrel::Tensor>& outputs,
                 const KeptStates& states, RunResult& result) {
  for (const TaskOutput& output : said_outputs(tasks))
    result.outputs.insert({output.name, TensorAccess::outside(outputs.at(output.name))});
  for (std::size_t s = 0; s < tasks.states.size(); ++s)
    result.state.tensors.insert(
        {tasks.states[s].type.name, TensorAccess::outside(std::get<einrel::Tensor>(states[s].now()))});
  result.state.steps_done = states.steps_done();
}

/// The steps of a program with state, each tensor whole, on all threads.
RunResult run_whole_steps(const Run& run, const RunOptions& options, std::size_t threads) {
  RunResult result;
  result.report.predicted_peak = run.version.peak_bytes(memory_option);
  const PlannedTasks& tasks = run.version.whole();
  const InputSources sources = sources_of_run(run);
  KeptStates states(tasks, {}, std::nullopt);
  begin(tasks, options.state, states,
        [&] { begin_states(run.version.compiled(), sources, run.scalars, threads, states); });
  std::map<std::string, einrel::Tensor> outputs = output_tensors(tasks.graph);
  const PlanRunReport measured = run.version.step(sources, writers_to(outputs, tasks.graph), run.scalars,
                                                  {options.steps.value_or(1), &states, {}, options.stop}, threads);
  result.report.seconds = measured.seconds;
  result.report.bytes_moved_to = {0};
  add_results(tasks, outputs, states, result);
  return result;
}

/// Each tensor whole, on all threads.
RunResult run_whole(const Run& run, std::size_t threads, const std::stop_token& stop) {
  RunResult result;
  result.report.predicted_peak = run.version.peak_bytes(memory_option);
  const TaskGraph& whole = run.version.whole().graph;
  std::vector<einrel::Tensor> inputs;
  for (const StoredRelation& input : whole.inputs) inputs.push_back(TensorAccess::inside(run.inputs.at(input.name)));
  const auto start = std::chrono::steady_clock::now();
  const std::vector<einrel::Tensor> outputs = run.version.run(inputs, run.scalars, threads, stop);
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
                  .spill = options.spill ? std::optional(options.spill->string()) : std::nullopt,
                  .given = options.plan};
  asked.plan.memory = options.memory;  // not a machine's: the run is in this process
  check_planner(asked.planner);
  return asked;
}

/// Chunk by chunk, as a plan says.
RunResult run_planned(const Run& run, const RunOptions& options, std::size_t threads) {
  const Compiled& compiled = run.version.compiled();
  const PlannedAs asked = asked_for(options, threads);
  const InputSources inputs = sources_of_run(run);
  static std::mutex one_at_a_time;  // as Session is, and StarPU in a process
  const std::unique_lock lock(one_at_a_time);
  const auto [planned, is_new] = run.version.planned(asked, run.source);
  const ChosenPlan& chosen = planned.chosen;
  check_room(
      compiled.name, chosen, [](const StoredRelation&) { return true; }, memory_option);
  std::map<std::string, einrel::Tensor> outputs = output_tensors(chosen.tasks.graph);
  const PlanResources resources = resources_of(chosen, asked.spill, end_process);
  KeptStates states(chosen.tasks, {}, chosen.limit ? std::optional(resources.spill.folder) : std::nullopt);
  if (has_state(run)) {
    begin(chosen.tasks, options.state, states, [&] {
      if (!chosen.limit) return begin_states(compiled, inputs, run.scalars, threads, states);
      begin_states(compiled, chosen, request_of(asked), run.source, resources, {}, inputs, run.scalars, states);
    });
  }
  const PlanRunReport measured = planned.session.step(inputs, writers_to(outputs, chosen.tasks.graph), run.scalars,
                                                      {options.steps.value_or(1), &states, {}, options.stop});
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
  add_results(chosen.tasks, outputs, states, result);
  return result;
}

}  // namespace

RunResult run_version(const Run& run, const RunOptions& options) {
  const std::size_t threads = threads_of(options.threads);
  if (options.spill && !options.memory)
    throw UserError("RunOptions::spill needs RunOptions::memory: what may stay in memory");
  if (!has_state(run) && (options.steps || options.state))
    throw UserError("RunOptions::steps and RunOptions::state are for programs with state, which this one has not");
  if (options.steps && *options.steps < 1) throw UserError("RunOptions::steps is 0: there is at least one");
  if (options.plan && (options.sites || options.planner || options.cost || options.machine))
    throw UserError("RunOptions::plan is a plan already: leave out sites, planner, cost and machine");
  const bool is_planned =
      options.sites || options.planner || options.cost || options.plan || options.machine || options.memory;
  if (is_planned) return run_planned(run, options, threads);
  return has_state(run) ? run_whole_steps(run, options, threads) : run_whole(run, threads, options.stop);
}

std::optional<std::int64_t> peak_memory() { return peak_resident_bytes(); }

}  // namespace einrel::api
