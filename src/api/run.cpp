#include <einrel/error.h>
#include <fmt/format.h>

#include <chrono>
#include <mutex>

#include "api/plan_options.h"
#include "api/program_data.h"
#include "api/tensor_data.h"
#include "einsum/vertex_facts.h"
#include "engine/choose_plan.h"
#include "engine/memory.h"

namespace einrel::api {
namespace {

/// An output may be a view of an input, whose owner need not let it live for as long.
Tensor kept(const einrel::Tensor& output, const std::map<std::string, Tensor>& inputs) {
  const std::less_equal<> before;
  for (const auto& [name, input] : inputs) {
    if (!TensorAccess::is_borrowed(input) || output.count() == 0) continue;
    const std::span<const std::byte> bytes = input.bytes();
    if (!before(bytes.data(), output.data()) || before(bytes.data() + bytes.size(), output.data())) continue;
    einrel::Tensor copy(output.dtype(), output.shape());
    copy_elements(output.dtype(), output.shape(), {output.data(), output.strides()}, copy.mutable_data(),
                  copy.strides());
    return TensorAccess::outside(copy);
  }
  return TensorAccess::outside(output);
}

constexpr std::string_view memory_option = "RunOptions::memory";

/// Each tensor whole, on all threads.
RunResult run_whole(const Run& run, std::size_t threads) {
  const Compiled& compiled = run.version.compiled();
  std::vector<einrel::Tensor> inputs;
  for (const Vertex& vertex : compiled.graph.vertices) {
    if (is_input(vertex)) inputs.push_back(TensorAccess::inside(run.inputs.at(vertex.name)));
  }
  RunResult result;
  result.report.predicted_peak = run.version.peak_bytes(memory_option);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<einrel::Tensor> outputs = run.version.run(inputs, run.scalars, threads);
  result.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.report.bytes_moved_to = {0};
  for (std::size_t i = 0; i < outputs.size(); ++i)
    result.outputs.insert({compiled.graph[compiled.graph.outputs[i]].name, kept(outputs[i], run.inputs)});
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
  static std::mutex one_at_a_time;  // as PlanSession is, and StarPU in a process
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
