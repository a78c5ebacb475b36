#include <einrel/error.h>
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "api/border.h"
#include "api/input_data.h"
#include "api/plan_options.h"
#include "api/program_data.h"
#include "api/ranks_data.h"
#include "api/shared_results.h"
#include "api/tensor_data.h"
#include "base/digest.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/planners/default_planner.h"
#include "run/choose_plan.h"
#include "run/initial_states.h"
#include "run/input_facts.h"
#include "run/memory.h"
#include "run/scalars.h"

namespace einrel::api {
namespace {

constexpr std::string_view memory_option = "the option 'memory'";

/// What one step brings for all weighs little then.
constexpr std::size_t planned_steps = 1000;

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
void add_outputs(const PlannedTasks& tasks, const std::map<std::string, einrel::Tensor>& outputs,
                 const std::set<std::string>& complex, RunResult& result) {
  for (const TaskOutput& output : program_outputs(tasks)) {
    result.outputs.insert(
        {output.name, TensorAccess::outside(outputs.at(output.name), complex.count(output.name) != 0)});
  }
}

/// `whole` are all elements of the states.
State outside_state(const PlannedTasks& tasks, const std::vector<einrel::Tensor>& whole, const KeptStates& states,
                    const std::set<std::string>& complex) {
  State state;
  for (std::size_t s = 0; s < tasks.states.size(); ++s) {
    const std::string& name = tasks.states[s].type.name;
    state.tensors.insert({name, TensorAccess::outside(whole[s], complex.count(name) != 0)});
  }
  state.steps_done = states.steps_done();
  return state;
}

/// States of a process that has all of them.
std::vector<einrel::Tensor> whole_states(const PlannedTasks& tasks, const KeptStates& states) {
  std::vector<einrel::Tensor> whole;
  for (std::size_t s = 0; s < tasks.states.size(); ++s) whole.push_back(std::get<einrel::Tensor>(states[s].now()));
  return whole;
}

/// How a run goes, and whether that was chosen now.
struct HowItRuns {
  std::shared_ptr<ChosenVersion> version;
  bool is_new = false;
};

/// Throws as Version::chosen does, on all ranks of a job where one fails.
HowItRuns how_it_runs(const Run& run, const RunRequest& asked, const Job& job) {
  HowItRuns how;
  const auto check = [&](const Chosen& chosen) {
    const auto in_place = [&](const StoredRelation& input) {
      const auto is_it = [&](const TaskState& state) { return state.type.name == input.name; };
      const std::vector<TaskState>& states = chosen.tasks.states;
      if (std::any_of(states.begin(), states.end(), is_it)) return false;  // copied from what is given, or computed
      const auto given = run.inputs.find(input.name);
      return given != run.inputs.end() && std::holds_alternative<einrel::Tensor>(InputAccess::source(given->second));
    };
    check_room(chosen, job, {}, in_place, memory_option);
  };
  const auto choose = [&] { std::tie(how.version, how.is_new) = run.version.chosen(asked, run.source, job, check); };
  if (job.ranks == 1) {
    choose();
  } else {
    together(job, choose);
  }
  return how;
}

RunReport report_of(const HowItRuns& how, PlanFigures figures) {
  RunReport report;
  report.seconds = figures.seconds;
  report.bytes_moved_to = std::move(figures.received);
  report.spilled = figures.spilled;
  report.read_back = figures.read_back;
  for (const std::int64_t bytes : report.bytes_moved_to) report.bytes_moved += bytes;
  const ChosenFigures& plan = how.version->figures();
  report.planner = plan.planner;
  report.sites = plan.sites;
  report.predicted_peak = plan.peak;
  if (how.is_new) report.plan_seconds = plan.seconds;
  return report;
}

/// On all ranks, of what rank 0 knows.
RunReport report_of(const HowItRuns& how, const PlanRunReport& measured, const Job& job) {
  return report_of(how, from_rank_0(job, {measured.seconds, measured.spilled, measured.read_back, measured.received}));
}

einrel::Tensor copy_of(const einrel::Tensor& tensor) {
  einrel::Tensor copy(tensor.dtype(), tensor.shape());
  copy_elements(tensor.dtype(), tensor.shape(), {tensor.data(), tensor.strides()}, copy.mutable_data(), copy.strides());
  return copy;
}

/// A run in this process or on the ranks of a job: on all of them.
class VersionRun {
 public:
  VersionRun(const Run& run, const RunOptions& options, const RunRequest& asked, const Job& job)
      : run_(run), options_(options), asked_(asked), job_(job) {}

  RunResult operator()() {
    how_ = how_it_runs(run_, asked_, job_);
    return job_.ranks == 1 && how_.version->chosen().tasks.states.empty() ? in_memory() : in_steps();
  }

 private:
  bool is_complex(const std::string& name) const { return run_.version.compiled().graph.complex.count(name) != 0; }

  RunResult in_memory() {
    const PlannedTasks& tasks = how_.version->chosen().tasks;
    const TaskGraph& graph = tasks.graph;
    std::vector<const InputSource*> inputs;
    inputs.reserve(graph.inputs.size());
    for (const StoredRelation& input : graph.inputs) inputs.push_back(&InputAccess::source(run_.inputs.at(input.name)));
    auto [outputs, measured] = how_.version->run(inputs, run_.scalars, options_.stop);
    RunResult result;
    result.report = report_of(how_, {measured.seconds, measured.spilled, measured.read_back, tasks.traffic.received});
    for (std::size_t i = 0; i < outputs.size(); ++i)
      result.outputs.emplace(graph.outputs[i].name,
                             TensorAccess::outside(std::move(outputs[i]), is_complex(graph.outputs[i].name)));
    return result;
  }

  RunResult in_steps() {
    const Chosen& chosen = how_.version->chosen();
    const PlannedTasks& tasks = chosen.tasks;
    const InputSources inputs = sources_of_run(run_);
    std::map<std::string, einrel::Tensor> outputs = output_tensors(tasks.graph);
    KeptStates states = begun_states({&run_.version.compiled(), asked_, chosen}, given_states(tasks, options_.state),
                                     inputs, run_.scalars, run_.source, job_);
    const PlanRunReport measured = how_.version->step(inputs, writers_to(outputs, tasks.graph), run_.scalars,
                                                      {options_.steps.value_or(1), &states, {}, options_.stop});
    RunResult result;
    result.report = report_of(how_, measured, job_);
    share_outputs(job_, tasks, outputs);
    const std::set<std::string>& complex = run_.version.compiled().graph.complex;
    add_outputs(tasks, outputs, complex, result);
    result.state = outside_state(
        tasks, job_.ranks == 1 ? whole_states(tasks, states) : shared_states(job_, tasks, states), states, complex);
    return result;
  }

  const Run& run_;
  const RunOptions& options_;
  const RunRequest& asked_;
  const Job& job_;
  HowItRuns how_;
};

void add_facts(const Inputs& inputs, std::vector<Fact>& facts) {
  for (const auto& [name, input] : inputs)
    add_facts("input " + name, inside(input.dtype()), inside(input.dtype(), input.shape()), InputAccess::source(input),
              facts);
}

/// What all ranks have to have alike. Their machines may differ, as long as their plans do not (Session).
std::vector<Fact> facts_of(const Run& run, const RunOptions& options, std::string what = "a run") {
  std::vector<Fact> facts{{"what it does", std::move(what)},
                          {"another program", "", digest_of(run.source.text())},
                          {"the option 'planner'", options.planner.value_or(default_planner)},
                          {"the option 'memory'", options.memory ? bytes_text(*options.memory) : ""},
                          {"the option 'spill'", options.spill ? "given" : ""},
                          {"the option 'steps'", fmt::format("{}", options.steps.value_or(1))}};
  for (const auto& [name, placement] : options.placements) {
    std::string digits;
    for (const auto& [along, sites] : placement) digits += fmt::format("{}:{} ", printable(along), sites);
    facts.push_back({fmt::format("the placement of '{}'", printable(name)), digits + "as digits of sites"});
  }
  add_facts(run.scalars, facts);
  add_facts(run.inputs, facts);
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

namespace {

/// Throws UserError for a name that is none of the inputs: what is fed by it would be lost.
void check_fed(const Inputs& inputs, const std::vector<std::string>& fed) {
  std::vector<std::string> known;
  for (const auto& [name, input] : inputs) known.push_back(name);
  for (const std::string& name : fed) {
    if (inputs.contains(name)) continue;
    const std::string near = did_you_mean(name, known);
    throw UserError(fmt::format("'{}' is to be fed to each step, and no input is given by that name{}", printable(name),
                                near.empty() ? "" : "; " + near));
  }
}

}  // namespace

/// What is chosen and bound once for all steps.
struct Stepper::Data {
  Data(std::shared_ptr<const ProgramAccess::Data> of, std::shared_ptr<Version> of_inputs, Inputs given,
       const std::vector<std::string>& names, RunOptions how_to_run)
      : program(std::move(of)),
        version(std::move(of_inputs)),
        inputs(std::move(given)),
        fed(names.begin(), names.end()),
        options(std::move(how_to_run)),
        job(RanksAccess::job(options.ranks)),
        run{*version, program->given.source, inputs, bind_scalars(version->compiled().graph.scalars, options.scalars)} {
    if (!options.steps) options.steps = planned_steps;
    asked = request_of(options, job);
    for (const Vertex& vertex : version->compiled().graph.vertices) {
      if (is_input(vertex) && fed.contains(vertex.name)) asked.fed.insert(vertex.name);  // others no step reads
    }
  }

  const Chosen& planned() {
    if (!how.version) how = how_it_runs(run, asked, job);
    return how.version->chosen();
  }

  void begin() {
    const Chosen& chosen = planned();
    InputSources sources = sources_of_run(run);
    states.emplace(begun_states({&version->compiled(), asked, chosen}, given_states(chosen.tasks, options.state),
                                sources, run.scalars, run.source, job));
    session.emplace(chosen.tasks, chosen.resources(), job);
    outputs = output_tensors(chosen.tasks.graph);
    steps.emplace(*session, std::move(sources), writers_to(outputs, chosen.tasks.graph), run.scalars, &*states);
    inputs.clear();
    options.state.reset();
  }

  RunResult step(const Inputs& given, const std::stop_token& stop) {
    const PlannedTasks& tasks = how.version->chosen().tasks;
    for (auto& [name, tensor] : output_tensors(tasks.graph)) outputs.at(name) = std::move(tensor);
    InputSources sources;
    for (const auto& [name, input] : given) sources[name] = InputAccess::source(input);
    const PlanRunReport measured = steps->step(std::move(sources), stop);
    RunResult result;
    result.report = report_of(how, measured, job);
    result.report.is_last = measured.is_last;
    how.is_new = false;
    share_outputs(job, tasks, outputs);
    for (auto& [name, tensor] : outputs) {
      if (states->have_memory_of(tensor)) tensor = copy_of(tensor);  // what the caller has stays as it is
    }
    add_outputs(tasks, outputs, version->compiled().graph.complex, result);
    return result;
  }

  void check(const Inputs& given) const {
    if (has_failed) throw UserError("a step has failed, so there is none after it; begin again");
    for (const auto& [name, input] : given) {
      if (!fed.contains(name)) {
        throw UserError(fmt::format(
            "the input '{}' stays from step to step: name it among the inputs that are fed, or leave it out",
            printable(name)));
      }
    }
  }

  std::shared_ptr<const ProgramAccess::Data> program;
  std::shared_ptr<Version> version;
  Inputs inputs;  // until the first step
  std::set<std::string> fed;
  RunOptions options;
  Job job;
  Run run;
  RunRequest asked;
  HowItRuns how = {};
  std::map<std::string, einrel::Tensor> outputs = {};
  std::optional<KeptStates> states = {};
  std::optional<Session> session = {};
  std::optional<OngoingSteps> steps = {};
  bool has_failed = false;
};

Stepper::Stepper(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Stepper::Stepper(Stepper&& other) noexcept = default;
Stepper& Stepper::operator=(Stepper&& other) noexcept = default;
Stepper::~Stepper() = default;

Stepper Program::stepper(const Inputs& inputs, const std::vector<std::string>& fed, const RunOptions& options) const {
  return at_border([&] {
    std::shared_ptr<Version> version = version_for(*data_, inputs, options.state.has_value());
    if (version->compiled().graph.steps.states.empty())
      throw UserError("steps are done one at a time by programs with state, which this one has not: run it");
    check_fed(inputs, fed);
    return Stepper(std::make_unique<Stepper::Data>(data_, std::move(version), inputs, fed, options));
  });
}

RunResult Stepper::step(const Inputs& fed, const std::stop_token& stop) {
  return at_border([&] {
    if (data_ == nullptr) throw UserError("these steps were moved from");
    Data& data = *data_;
    data.check(fed);
    data.has_failed = true;  // unless it comes to an end
    RunResult result;
    const auto facts = [&] {
      std::vector<Fact> all{{"what it does", "a step"}};
      if (!data.steps) all = facts_of(data.run, data.options, "a step");
      add_facts(fed, all);
      return all;
    };
    on_all_ranks(data.job, facts, [&] {
      if (!data.steps) data.begin();
      result = data.step(fed, stop);
    });
    data.has_failed = false;
    return result;
  });
}

Placements Stepper::placements() {
  return at_border([&] {
    if (data_ == nullptr) throw UserError("these steps were moved from");
    Data& data = *data_;
    Placements placements;
    on_all_ranks(
        data.job, [&] { return facts_of(data.run, data.options, "where inputs lie"); },
        [&] { placements = placements_after(data.planned(), data.version->compiled(), data.asked); });
    return placements;
  });
}

State Stepper::state() const {
  return at_border([&] {
    if (data_ == nullptr || !data_->states) throw UserError("there is no state before the first step");
    const Data& data = *data_;
    const PlannedTasks& tasks = data.how.version->chosen().tasks;
    std::vector<einrel::Tensor> whole;
    on_all_ranks(
        data.job,
        [] {
          return std::vector<Fact>{{"what it does", "a state is asked for"}};
        },
        [&] {
          if (data.job.ranks > 1) {
            whole = shared_states(data.job, tasks, *data.states);
            return;
          }
          for (const einrel::Tensor& now : whole_states(tasks, *data.states)) whole.push_back(copy_of(now));
        });
    return outside_state(tasks, whole, *data.states, data.version->compiled().graph.complex);
  });
}

std::optional<std::int64_t> peak_memory() { return peak_resident_bytes(); }

}  // namespace einrel::api
