#include "engine/run_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "exec/from_ia.h"
#include "exec/serial/serial.h"
#include "exec/starpu/run.h"
#include "plan/lower.h"

namespace einrel {
namespace {

/// StarPU takes about this long to start: a program that one thread has done by then gains nothing from more.
constexpr double starpu_start_seconds = 0.015;
constexpr double scalar_operations_per_second = 2e9;

bool is_too_small(const TaskGraph& graph) {
  double operations = 0;
  std::vector<KernelCalls> calls(graph.kernels.begin(), graph.kernels.end());
  for (const Task& task : graph.tasks) {
    const auto* const call = std::get_if<CallKernel>(&task.op);
    if (call == nullptr) continue;
    std::vector<Shape> bounds;
    for (const ArrayId read : task.reads) bounds.push_back(graph[read].bound);
    operations += calls[call->kernel](bounds).flops;
  }
  return operations < starpu_start_seconds * scalar_operations_per_second;
}

TaskReport run_here(const TaskGraph& graph, const TaskBindings& bindings, const PlanResources& resources,
                    const Job& job) {
  if (!job.is_started && !resources.memory && (resources.threads == 1 || is_too_small(graph))) {
    Workers workers(resources.threads);
    return run_serial(graph, bindings, workers);
  }
  std::optional<StarpuSession> session;
  agree(job, [&] { session.emplace(SessionOptions{resources.threads, resources.memory, resources.spill}, job); });
  return run_starpu(graph, bindings, *session, job);
}

/// What rank 0 makes of what every rank did.
PlanRunReport gathered(const PlannedTasks& tasks, const TaskReport& own, const Job& job) {
  std::vector<double> values{own.seconds, static_cast<double>(own.tasks), static_cast<double>(own.bytes_received)};
  std::size_t vertex_count = 0;
  for (const auto& vertex : tasks.vertices) vertex_count = std::max(vertex_count, vertex ? *vertex + 1 : 0);
  std::vector<double> seconds(vertex_count, 0);
  for (const auto& [node, spent] : own.node_seconds) {
    if (tasks.vertices[node.index]) seconds[*tasks.vertices[node.index]] += spent;
  }
  values.insert(values.end(), seconds.begin(), seconds.end());
  PlanRunReport report;
  report.vertex_seconds.assign(vertex_count, 0);
  report.is_counted = job.ranks > 1;
  if (!report.is_counted) report.received = tasks.traffic.received;
  for (const std::vector<double>& rank : gather(job, values)) {
    report.seconds = std::max(report.seconds, rank[0]);
    report.tasks += static_cast<std::size_t>(rank[1]);
    if (report.is_counted) report.received.push_back(static_cast<std::int64_t>(rank[2]));
    for (std::size_t v = 0; v < vertex_count; ++v)
      report.vertex_seconds[v] = std::max(report.vertex_seconds[v], rank[3 + v]);
  }
  return report;
}

}  // namespace

PlannedTasks tasks_of(const Compiled& compiled, const Plan& plan, const Job& job) {
  if (job.is_started && plan.sites > job.ranks) {
    throw UserError(
        fmt::format("the plan is for {} sites, but the job has {} {}\n  help: a site is a rank: start the "
                    "job with mpirun -n {}, or plan for --sites {}",
                    plan.sites, job.ranks, job.ranks == 1 ? "rank" : "ranks", plan.sites, job.ranks));
  }
  const LoweredPlan lowered = lower(compiled.graph, plan);
  const SiteMemory memory = job.ranks > 1 ? SiteMemory::apart : SiteMemory::shared;
  return {tasks_of(lowered.ia.store, lowered.ia.plan, memory), lowered.vertices,
          bytes_of(lowered.ia.store, lowered.ia.plan)};
}

TaskBindings task_bindings(const TaskGraph& graph, const InputSources& sources, std::vector<OutputWriter> writers,
                           const ScalarBindings& scalars) {
  TaskBindings bindings{{}, std::move(writers), scalars};
  for (const StoredRelation& input : graph.inputs) {
    const auto source = sources.find(input.name);
    if (source == sources.end()) throw UserError(fmt::format("input '{}' is not bound to a tensor", input.name));
    const auto* const tensor = std::get_if<Tensor>(&source->second);
    if (tensor != nullptr && (tensor->dtype() != input.dtype || tensor->shape() != input.bound)) {
      throw UserError(fmt::format("input '{}' is {} {}, but {} {} is given", input.name, name_of(input.dtype),
                                  to_string(input.bound), name_of(tensor->dtype()), to_string(tensor->shape())));
    }
    bindings.inputs.push_back(source->second);
  }
  return bindings;
}

InputSources sources_of(const TensorBindings& inputs) { return {inputs.begin(), inputs.end()}; }

PlanRunReport run_tasks(const PlannedTasks& tasks, const InputSources& sources, std::vector<OutputWriter> writers,
                        const ScalarBindings& scalars, const PlanResources& resources, const Job& job) {
  const TaskBindings bindings = task_bindings(tasks.graph, sources, std::move(writers), scalars);
  return gathered(tasks, run_here(tasks.graph, bindings, resources, job), job);
}

}  // namespace einrel
