#include <einrel/error.h>
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "api/input_data.h"
#include "api/plan_options.h"
#include "api/program_data.h"
#include "api/ranks_data.h"
#include "api/shared_results.h"
#include "api/tensor_data.h"
#include "base/digest.h"
#include "base/text.h"
#include "plan/planners/default_planner.h"
#include "run/choose_plan.h"
#include "run/initial_states.h"
#include "run/input_facts.h"
#include "run/memory.h"

namespace einrel::api {
namespace {

constexpr std::string_view memory_option = "the option 'memory'";

InputSources sources_of_run(const Run& run) {
  InputSources sources;
  for (const auto& [name, input] : run.inputs) sources[name] = InputAccess::source(input);
  return sources;
}

/// The values that states are to go on from.
std::optional<GivenStates> given_states(const PlannedTasks& tasks, const std::optional<State>& given) {
  if (!given) return std::nullopt;
  GivenStates states{{}, given->steps_done};
  for (const auto& [name, tensor] : given->tensors) {
    const auto is_it = [&, &called = name](const TaskState& state) { return state.type.name == called; };
    if (std::none_of(tasks.states.begin(), tasks.states.end(), is_it))
      throw UserError(fmt::format("the option 'state': the program has no state '{}'", printable(name)));
    states.values[name] = TensorAccess::inside(tensor);
  }
  if (given->steps_done < 0)
    throw UserError(fmt::format("the option 'state': {} steps cannot have been done", given->steps_done));
  return states;
}

/// Of a run in steps.
void add_results(const PlannedTasks& tasks, const std::map<std::string, einrel::Tensor>& outputs,
                 const std::vector<einrel::Tensor>& states, std::int64_t steps_done,
                 const std::set<std::string>& complex, RunResult& result) {
  const auto outside = [&](const std::string& name, const einrel::Tensor& tensor) {
    return TensorAccess::outside(tensor, complex.count(name) != 0);
  };
  for (const TaskOutput& output : program_outputs(tasks))
    result.outputs.insert({output.name, outside(output.name, outputs.at(output.name))});
  for (std::size_t s = 0; s < tasks.states.size(); ++s)
    result.state.tensors.insert({tasks.states[s].type.name, outside(tasks.states[s].type.name, states[s])});
  result.state.steps_done = steps_done;
}

/// States of a process that has all of them.
std::vector<einrel::Tensor> whole_states(const PlannedTasks& tasks, const KeptStates& states) {
  std::vector<einrel::Tensor> whole;
  for (std::size_t s = 0; s < tasks.states.size(); ++s) whole.push_back(std::get<einrel::Tensor>(states[s].now()));
  return whole;
}

/// A run in this process or on the ranks of a job: on all of them.
class VersionRun {
 public:
  VersionRun(const Run& run, const RunOptions& options, const RunRequest& asked, const Job& job)
      : run_(run), options_(options), asked_(asked), job_(job) {}

  RunResult operator()() {
    if (job_.ranks == 1) {
      choose();
    } else {
      together(job_, [&] { choose(); });
    }
    return job_.ranks == 1 && version_->chosen().tasks.states.empty() ? in_memory() : in_steps();
  }

 private:
  bool is_complex(const std::string& name) const { return run_.version.compiled().graph.complex.count(name) != 0; }

  void choose() {
    const auto check = [&](const Chosen& chosen) {
      const auto in_place = [&](const StoredRelation& input) {
        const auto is_it = [&](const TaskState& state) { return state.type.name == input.name; };
        const std::vector<TaskState>& states = chosen.tasks.states;
        if (std::any_of(states.begin(), states.end(), is_it)) return false;  // copied from what is given, or computed
        const auto given = run_.inputs.find(input.name);
        return given != run_.inputs.end() && std::holds_alternative<einrel::Tensor>(InputAccess::source(given->second));
      };
      check_room(chosen, job_, {}, in_place, memory_option);
    };
    std::tie(version_, is_new_) = run_.version.chosen(asked_, run_.source, job_, check);
  }

  RunResult in_memory() {
    const PlannedTasks& tasks = version_->chosen().tasks;
    const TaskGraph& graph = tasks.graph;
    std::vector<const InputSource*> inputs;
    inputs.reserve(graph.inputs.size());
    for (const StoredRelation& input : graph.inputs) inputs.push_back(&InputAccess::source(run_.inputs.at(input.name)));
    auto [outputs, measured] = version_->run(inputs, run_.scalars, options_.stop);
    RunResult result;
    result.report = report({measured.seconds, measured.spilled, measured.read_back, tasks.traffic.received});
    for (std::size_t i = 0; i < outputs.size(); ++i)
      result.outputs.emplace(graph.outputs[i].name,
                             TensorAccess::outside(std::move(outputs[i]), is_complex(graph.outputs[i].name)));
    return result;
  }

  RunResult in_steps() {
    const Chosen& chosen = version_->chosen();
    const PlannedTasks& tasks = chosen.tasks;
    const InputSources inputs = sources_of_run(run_);
    std::map<std::string, einrel::Tensor> outputs = output_tensors(tasks.graph);
    KeptStates states = begun_states({&run_.version.compiled(), asked_, chosen}, given_states(tasks, options_.state),
                                     inputs, run_.scalars, run_.source, job_);
    const PlanRunReport measured = version_->step(inputs, writers_to(outputs, tasks.graph), run_.scalars,
                                                  {options_.steps.value_or(1), &states, {}, options_.stop});
    RunResult result;
    result.report = report(from_rank_0(
        job_, {measured.seconds, measured.spilled, measured.read_back, measured.received}));  // as only that one knows
    share_outputs(job_, tasks, outputs);
    add_results(tasks, outputs, job_.ranks == 1 ? whole_states(tasks, states) : shared_states(job_, tasks, states),
                states.steps_done(), run_.version.compiled().graph.complex, result);
    return result;
  }

  RunReport report(PlanFigures figures) const {
    RunReport report;
    report.seconds = figures.seconds;
    report.bytes_moved_to = std::move(figures.received);
    report.spilled = figures.spilled;
    report.read_back = figures.read_back;
    for (const std::int64_t bytes : report.bytes_moved_to) report.bytes_moved += bytes;
    const ChosenFigures& plan = version_->figures();
    report.planner = plan.planner;
    report.sites = plan.sites;
    report.predicted_peak = plan.peak;
    if (is_new_) report.plan_seconds = plan.seconds;
    return report;
  }

  const Run& run_;
  const RunOptions& options_;
  const RunRequest& asked_;
  const Job& job_;
  std::shared_ptr<ChosenVersion> version_;
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
    add_facts("input " + name, inside(input.dtype()), inside(input.dtype(), input.shape()), InputAccess::source(input),
              facts);
  if (!options.state) return facts;
  facts.push_back({"the number of steps done before", fmt::format("{}", options.state->steps_done)});
  for (const auto& [name, tensor] : options.state->tensors) {
    const einrel::Tensor elements = TensorAccess::inside(tensor);
    add_facts("state " + name, elements.dtype(), elements.shape(), elements, facts);
  }
  return facts;
}

void check(const RunOptions& options, bool has_state) {
  if (!has_state && (options.steps || options.state))
    throw UserError("the options 'steps' and 'state' are for programs with state, which this one has not");
}

}  // namespace

RunResult run_version(const Run& run, const RunOptions& options) {
  const Job& job = RanksAccess::job(options.ranks);
  check(options, !run.version.compiled().graph.steps.states.empty());
  const RunRequest asked = request_of(options, job);
  VersionRun computed(run, options, asked, job);
  if (job.ranks == 1) return computed();
  RunResult result;
  on_all_ranks(
      job, [&] { return facts_of(run, options); }, [&] { result = computed(); });
  return result;
}

std::optional<std::int64_t> peak_memory() { return peak_resident_bytes(); }

}  // namespace einrel::api
