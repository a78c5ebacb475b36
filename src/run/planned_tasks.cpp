#include "run/planned_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/error.h"
#include "exec/tasks/from_ia.h"
#include "exec/tasks/task_body.h"
#include "ia/print.h"
#include "plan/lower.h"

namespace einrel {

std::string name_of(const PlannedTasks& tasks, std::size_t task) {
  const std::optional<std::size_t> vertex = tasks.vertices[tasks.graph.tasks[task].node.index];
  return vertex ? tasks.names[*vertex] : "label values";
}

void check_ranks(std::int64_t sites, const Job& job) {
  if (!job.is_started || sites <= job.ranks) return;
  throw UserError(
      fmt::format("the plan is for {} sites, but the job has {} {}\n  help: a site is a rank: start the "
                  "job with mpirun -n {}, or plan for --sites {}",
                  sites, job.ranks, job.ranks == 1 ? "rank" : "ranks", sites, job.ranks));
}

namespace {

/// Without the names of what they belong to.
PlannedTasks tasks_of(const IaProgram& program, const PassOptions& passes, const Job& job,
                      std::optional<std::int64_t> most_bytes) {
  const SiteMemory memory = job.ranks > 1 ? SiteMemory::apart : SiteMemory::shared;
  const bool fuses = !passes.skipped.contains(fusion_pass);
  const auto start = std::chrono::steady_clock::now();
  const NodeOrder order = (fuses ? operations_together : operations_apart)(program.store, program.plan);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  PlannedTasks tasks{
      tasks_of(program.store, program.plan, order, memory, most_bytes), {}, {}, bytes_of(program.store, program.plan)};
  tasks.fusion_seconds = seconds;
  return tasks;
}

}  // namespace

PlannedTasks tasks_of(const Compiled& compiled, const Plan& plan, const Job& job,
                      std::optional<std::int64_t> most_bytes) {
  check_ranks(plan.sites, job);
  LoweredPlan lowered = lower(compiled.graph, plan);
  lowered.tra = {};  // not beside the tasks: it takes a good part of what they do
  PlannedTasks tasks = tasks_of(lowered.ia, compiled.pass_options, job, most_bytes);
  if (!lowered.once.empty())
    tasks.first = FirstStep{take_out_brought(tasks.graph, lowered.once), bytes_of(lowered.ia.store, lowered.once)};
  tasks.vertices = std::move(lowered.vertices);
  for (const Vertex& vertex : compiled.graph.vertices) tasks.names.push_back(vertex.name);
  add_steps(compiled.graph, tasks);
  return tasks;
}

PlannedTasks whole_tasks(const Compiled& compiled) { return tasks_of(compiled, whole_plan(compiled.graph), {}); }

PlannedTasks tasks_of(const AlgebraPlan& plan, const Job& job, std::optional<std::int64_t> most_bytes) {
  const IaStore& store = plan.ia.store;
  check_ranks(store.sites(), job);
  PlannedTasks tasks = tasks_of(plan.ia, plan.pass_options, job, most_bytes);
  tasks.vertices.resize(store.size());
  const std::map<IaId, std::string> names = names_of(store, plans_of(plan));
  for (const IaId id : nodes_of(store, plan.ia.plan)) {
    tasks.vertices[id.index] = tasks.names.size();
    tasks.names.push_back(names.at(id));
  }
  return tasks;
}

void add_steps(const EinGraph& graph, PlannedTasks& tasks) {
  for (const State& state : graph.steps.states) {
    const Vertex& now = graph[state.now];
    TaskState& added = tasks.states.emplace_back(TaskState{{now.name, now.dtype, now.bound}, std::nullopt, state.next});
    for (std::size_t i = 0; i < tasks.graph.inputs.size(); ++i) {
      if (tasks.graph.inputs[i].name == now.name) added.input = i;
    }
  }
  for (const ScalarDeclaration& scalar : graph.scalars) {
    const auto reads_it = [&](const TaskKernel& kernel) { return reads_scalar(kernel, {scalar.name}); };
    const std::vector<TaskKernel>& kernels = tasks.graph.kernels;
    if (scalar.is_iteration && std::any_of(kernels.begin(), kernels.end(), reads_it)) tasks.iteration = scalar;
  }
  tasks.until = graph.steps.until;
  tasks.feedback = graph.steps.feedback;
}

std::vector<TaskOutput> program_outputs(const PlannedTasks& tasks) {
  const std::vector<TaskOutput>& all = tasks.graph.outputs;
  return {all.begin(), all.end() - static_cast<std::ptrdiff_t>(tasks.feedback)};
}

void check_type(const std::string& name, DType dtype, const Shape& bound, const InputSource& source) {
  const auto* const tensor = std::get_if<Tensor>(&source);
  if (tensor == nullptr || (tensor->dtype() == dtype && tensor->shape() == bound)) return;
  throw UserError(fmt::format("input '{}' is {} {}, but {} {} is given", name, name_of(dtype), to_string(bound),
                              name_of(tensor->dtype()), to_string(tensor->shape())));
}

TaskBindings task_bindings(const TaskGraph& graph, const InputSources& sources, std::vector<OutputWriter> writers,
                           const ScalarBindings& scalars) {
  TaskBindings bindings{{}, std::move(writers), scalars};
  for (const StoredRelation& input : graph.inputs) {
    const auto source = sources.find(input.name);
    if (source == sources.end()) throw UserError(fmt::format("input '{}' is not bound to a tensor", input.name));
    check_type(input.name, input.dtype, input.bound, source->second);
    bindings.inputs.push_back(source->second);
  }
  return bindings;
}

InputSources sources_of(const TensorBindings& inputs) { return {inputs.begin(), inputs.end()}; }

}  // namespace einrel
