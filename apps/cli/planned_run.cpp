#include "planned_run.h"

#include <fmt/format.h>

#include <utility>

#include "arguments.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "einsum/vertex_facts.h"
#include "engine/choose_plan.h"
#include "engine/chunked_outputs.h"
#include "engine/memory.h"
#include "engine/random_input.h"
#include "engine/report/explain.h"
#include "engine/report/plan_analysis.h"
#include "engine/report/plan_text.h"
#include "engine/report/report_json.h"
#include "engine/report/trace.h"
#include "engine/run_plan.h"
#include "output.h"
#include "viz/plan_html.h"

namespace einrel::cli {
namespace {

/// Files are mapped. What cannot be used as it lies there is converted where it is needed, chunk by chunk, as random
/// inputs are made: all of it at once may be more than there is memory for.
InputSources sources_of(const PlannedRun& run) {
  check_inputs_given(run.compiled, run.inputs, run.seed);
  InputSources sources;
  for (const Vertex& vertex : run.compiled.graph.vertices) {
    if (!is_input(vertex)) continue;
    const auto file = run.inputs.find(vertex.name);
    if (file != run.inputs.end() && is_read_in_place(file->second, vertex.dtype)) {
      sources[vertex.name] = read(file->second, vertex.dtype);
    } else if (file != run.inputs.end()) {
      sources[vertex.name] = [&stored = file->second, dtype = vertex.dtype](const std::vector<std::int64_t>& begin,
                                                                            const Shape& bound, std::byte* to) {
        read_box(stored, dtype, begin, bound, to);
      };
    } else {
      sources[vertex.name] = [&vertex, seed = *run.seed](const std::vector<std::int64_t>& begin, const Shape& bound,
                                                         std::byte* to) {
        fill_random(seed, vertex.name, vertex.dtype, vertex.bound, begin, bound, to);
      };
    }
  }
  return sources;
}

/// What the options ask for. Throws UserError where they contradict each other.
RunRequest requested(const PlannedRun& run, const Job& job) {
  std::optional<Plan> given = plan_from_file(run.plan, run.compiled);
  std::optional<std::int64_t> decided;
  if (given) {
    decided = given->sites;
  } else if (!run.plan.sites && job.is_started) {
    decided = job.ranks;
  }
  RunRequest request{.plan = request_of(run.plan, decided),
                     .planner = run.planner.value_or("eindecomp"),
                     .given = std::move(given),
                     .threads = run.threads,
                     .may_spill = run.spill.has_value()};
  if (!run.plan.memory && !job.is_started) request.plan.memory.reset();  // a site's, of --machine
  return request;
}

void print_results(const PlannedRun& run, const std::map<std::string, Summary>& summaries, const PlanReport& plan,
                   const PlanRequest& request, const PlanRunReport& report) {
  for (const VertexId output : run.compiled.graph.outputs) {
    const Vertex& vertex = run.compiled.graph[output];
    if (run.outputs.empty())
      print(fmt::format("{}\n", summary_line(vertex.name, vertex.dtype, vertex.bound, summaries.at(vertex.name))));
  }
  for (const auto& [name, file] : run.outputs) {
    for (const VertexId output : run.compiled.graph.outputs) {
      const Vertex& vertex = run.compiled.graph[output];
      if (vertex.name != name) continue;
      print(
          fmt::format("wrote {} {} {} to {}\n", name, name_of(vertex.dtype), to_string(vertex.bound), to_string(file)));
    }
  }
  if (run.repeats > 1) print(runs_line(report.runs) + "\n");
  if (run.analyze) print(analysis_text(run.compiled, plan, request, report));
}

}  // namespace

void run_by_plan(const PlannedRun& run, const Job& job) {
  ChosenPlan chosen;
  InputSources sources;
  agree(job, [&] {
    if (run.trace) check_replaceable(*run.trace);
    if (run.html) check_replaceable(*run.html);
    chosen = choose_plan(run.compiled, requested(run, job), run.source, job);
    if (!job.is_started) check_room(run.compiled, chosen, read_in_place(run.inputs), memory_option);
    sources = sources_of(run);
  });
  const PlanRequest& request = chosen.request;
  const PlanReport& plan = chosen.plan;
  const PlannedTasks& tasks = chosen.tasks;
  if (job.rank == 0 && run.explain && !run.json)
    print(plans_text(run.compiled, {{plan}, {}}, request, run.source, Detail::folded));
  ChunkedOutputs outputs(tasks.graph, {run.outputs.begin(), run.outputs.end()}, run.outputs.empty() || run.json, job);
  PlanResources resources =
      resources_of(chosen, run.spill, [&](std::exception_ptr error) { job.on_failure(error, job); });
  resources.repeats = run.repeats;
  PlanSession session(tasks, std::move(resources), job);
  const PlanRunReport report =
      session.step(sources, outputs.writers(), run.scalars, job.rank == 0 ? run.progress : ProgressListener{});
  const std::map<std::string, Summary> summaries = outputs.finish();
  agree(job, [&] {
    if (job.rank != 0) return;
    if (run.trace) write_text(*run.trace, trace_json(tasks, report));
    std::string json;
    if (run.json || run.html)
      json = run_plan_json(run.compiled, plan, request, report, summaries, peak_resident_bytes());
    if (run.html) write_text(*run.html, plans_html(json));
    if (run.json)
      print(json + "\n");
    else
      print_results(run, summaries, plan, request, report);
  });
}

}  // namespace einrel::cli
