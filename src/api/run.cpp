#include <einrel/error.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>

#include "api/input_data.h"
#include "api/plan_options.h"
#include "api/program_data.h"
#include "api/ranks_data.h"
#include "api/shared_results.h"
#include "api/tensor_data.h"
#include "base/digest.h"
#include "base/text.h"
#include "engine/choose_plan.h"
#include "engine/initial_states.h"
#include "engine/input_facts.h"
#include "engine/memory.h"
#include "plan/default_planner.h"

namespace einrel::api {
namespace {

constexpr std::string_view memory_option = "the option 'memory'";

InputSources sources_of_run(const Run& run) {
  InputSources sources;
  for (const auto& [name, input] : run.inputs) sources[name] = InputAccess::source(input);
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
      throw UserError(fmt::format("the option 'state': the program has no state '{}'", printable(name)));
    values[name] = TensorAccess::inside(tensor);
  }
  if (given->steps_done < 0)
    throw UserError(fmt::format("the option 'state': {} steps cannot have been done", given->steps_done));
  states.begin(tasks, values, given->steps_done);
}

/// Of a run in steps.
void add_results(const PlannedTasks& tasks, const std::map<std::string, einrel::Tensor>& outputs,
                 const std::vector<einrel::Tensor>& states, std::int64_t steps_done, RunResult& result) {
  for (const TaskOutput& output : said_outputs(tasks))
    result.outputs.insert({output.name, TensorAccess::outside(outputs.at(output.name))});
  for (std::size_t s = 0; s < tasks.states.size(); ++s)
    result.state.tensors.insert({tasks.states[s].type.name, TensorAccess::outside(states[s])});
  result.state.steps_done = steps_done;
}

/// States of a process that has all of them.
std::vector<einrel::Tensor> whole_states(const PlannedTasks& tasks, const KeptStates& states) {
  std::vector<einrel::Tensor> whole;
  for (std::size_t s = 0; s < tasks.states.size(); ++s) whole.push_back(std::get<einrel::Tensor>(states[s].now()));
  return whole;
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
  add_results(tasks, outputs, whole_states(tasks, states), states.steps_done(), result);
  return result;
}

/// Of what is made piece by piece, all of it.
einrel::Tensor elements_of(const Input& input) {
  const auto* const there = std::get_if<einrel::Tensor>(&InputAccess::source(input));
  return there != nullptr ? *there : TensorAccess::inside(input.tensor());
}

/// Each tensor whole, on all threads.
RunResult run_whole(const Run& run, std::size_t threads, const std::stop_token& stop) {
  RunResult result;
  result.report.predicted_peak = run.version.peak_bytes(memory_option);
  const TaskGraph& whole = run.version.whole().graph;
  std::vector<einrel::Tensor> inputs;
  for (const StoredRelation& input : whole.inputs) inputs.push_back(elements_of(run.inputs.at(input.name)));
  const auto start = std::chrono::steady_clock::now();
  const std::vector<einrel::Tensor> outputs = run.version.run(inputs, run.scalars, threads, stop);
  result.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.report.bytes_moved_to = {0};
  for (std::size_t i = 0; i < outputs.size(); ++i)
    result.outputs.insert({whole.outputs[i].name, TensorAccess::outside(outputs[i])});
  return result;
}

/// A run by a plan, in this process or on the ranks of a job: on all of them.
class PlannedRun {
 public:
  PlannedRun(const Run& run, const RunOptions& options, std::size_t threads, const Job& job)
      : run_(run), options_(options), threads_(threads), job_(job), inputs_(sources_of_run(run)) {}

  RunResult operator()() {
    together(job_, [&] { choose(); });
    const ChosenPlan& chosen = planned_->chosen;
    const PlannedTasks& tasks = chosen.tasks;
    std::map<std::string, einrel::Tensor> outputs = output_tensors(tasks.graph);
    const PlanResources resources = resources_of(chosen, asked_.spill, ending(job_));
    KeptStates states(tasks, job_, chosen.limit ? std::optional(resources.spill.folder) : std::nullopt);
    if (has_state(run_)) begin(tasks, options_.state, states, [&] { compute_states(resources, states); });
    const PlanRunReport measured = planned_->session.step(inputs_, writers_to(outputs, tasks.graph), run_.scalars,
                                                          {options_.steps.value_or(1), &states, {}, options_.stop});
    RunResult result;
    result.report = report(measured);
    share_outputs(job_, tasks, outputs);
    add_results(tasks, outputs, job_.ranks == 1 ? whole_states(tasks, states) : shared_states(job_, tasks, states),
                states.steps_done(), result);
    return result;
  }

 private:
  void choose() {
    asked_ = asked_for(options_, threads_, job_);
    const auto [planned, is_new] = run_.version.planned(asked_, run_.source, job_);
    planned_ = &planned;
    is_new_ = is_new;
    if (job_.ranks > 1) return;
    const auto is_there = [&](const StoredRelation& input) {
      const auto given = inputs_.find(input.name);  // states are none
      return given == inputs_.end() || std::holds_alternative<einrel::Tensor>(given->second);
    };
    check_room(run_.version.compiled().name, planned.chosen, is_there, memory_option);
  }

  void compute_states(const PlanResources& resources, KeptStates& states) const {
    const ChosenPlan& chosen = planned_->chosen;
    const Compiled& compiled = run_.version.compiled();
    begin_states(compiled, chosen, request_of(asked_, compiled), run_.source, resources, job_, inputs_, run_.scalars,
                 states);
  }

  RunReport report(const PlanRunReport& measured) const {
    const PlanReport& plan = planned_->chosen.plan;
    const PlanFigures figures = from_rank_0(
        job_, {measured.seconds, measured.spilled, measured.read_back, measured.received});  // as only that one knows
    RunReport report{.seconds = figures.seconds,
                     .planner = plan.plan.planner,
                     .sites = plan.plan.sites,
                     .plan_seconds = is_new_ ? plan.seconds : 0,
                     .bytes_moved_to = figures.received,
                     .predicted_peak = plan.peak.bytes,
                     .spilled = figures.spilled,
                     .read_back = figures.read_back};
    for (const std::int64_t bytes : report.bytes_moved_to) report.bytes_moved += bytes;
    return report;
  }

  const Run& run_;
  const RunOptions& options_;
  std::size_t threads_;
  const Job& job_;
  InputSources inputs_;
  PlannedAs asked_;
  PlannedVersion* planned_ = nullptr;
  bool is_new_ = false;
};

/// What all ranks have to have alike. Their machines may differ, as long as their plans do not (Session).
std::vector<Fact> facts_of(const Run& run, const RunOptions& options) {
  std::vector<Fact> facts{{"what it does", "a run"},
                          {"another program", "", digest_of(run.source.text())},
                          {"the option 'planner'", options.planner.value_or(default_planner)},
                          {"the option 'memory'", options.memory ? bytes_text(*options.memory) : ""},
                          {"the option 'spill'", options.spill ? "given" : ""},
                          {"the option 'steps'", fmt::format("{}", options.steps.value_or(1))}};
  add_facts(run.scalars, facts);
  for (const auto& [name, input] : run.inputs)
    add_facts("input " + name, inside(input.dtype()), make_shape(input.shape()), InputAccess::source(input), facts);
  if (!options.state) return facts;
  facts.push_back({"the number of steps done before", fmt::format("{}", options.state->steps_done)});
  for (const auto& [name, tensor] : options.state->tensors) {
    const einrel::Tensor elements = TensorAccess::inside(tensor);
    add_facts("state " + name, elements.dtype(), elements.shape(), elements, facts);
  }
  return facts;
}

/// Chunk by chunk, as a plan says.
RunResult run_planned(const Run& run, const RunOptions& options, std::size_t threads, const Job& job) {
  static std::mutex one_at_a_time;  // as Session is, and StarPU in a process
  const std::unique_lock lock(one_at_a_time);
  RunResult result;
  on_all_ranks(
      job, [&] { return facts_of(run, options); }, [&] { result = PlannedRun(run, options, threads, job)(); });
  return result;
}

void check(const RunOptions& options, bool has_state, const Job& job) {
  if (!has_state && (options.steps || options.state))
    throw UserError("the options 'steps' and 'state' are for programs with state, which this one has not");
  if (options.steps && *options.steps < 1) throw UserError("the option 'steps' is 0: there is at least one");
  check_plan_options(options, job);
}

}  // namespace

RunResult run_version(const Run& run, const RunOptions& options) {
  const Job& job = RanksAccess::job(options.ranks);
  const std::size_t threads = threads_of(options.threads, job.ranks > 1 ? std::optional(job.cores) : std::nullopt);
  check(options, has_state(run), job);
  if (is_planned(options, job)) return run_planned(run, options, threads, job);
  return has_state(run) ? run_whole_steps(run, options, threads) : run_whole(run, threads, options.stop);
}

std::optional<std::int64_t> peak_memory() { return peak_resident_bytes(); }

}  // namespace einrel::api
