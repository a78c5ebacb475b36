#include "planned_run.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "arguments.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "engine/algebra.h"
#include "engine/choose_plan.h"
#include "engine/chunked_outputs.h"
#include "engine/initial_states.h"
#include "engine/memory.h"
#include "engine/random_input.h"
#include "engine/recompute.h"
#include "engine/report/algebra_text.h"
#include "engine/report/explain.h"
#include "engine/report/plan_analysis.h"
#include "engine/report/plan_text.h"
#include "engine/report/report_json.h"
#include "engine/report/trace.h"
#include "engine/saved_states.h"
#include "engine/session.h"
#include "output.h"
#include "viz/plan_html.h"

namespace einrel::cli {
namespace {

RunRequest requested(const PlannedRun& run, const Compiled& compiled, const Job& job) {
  RunRequest request = run_request(run.plan, run.planner, compiled, job);
  request.threads = run.threads;
  request.may_spill = run.spill.has_value();
  return request;
}

/// How it is going to run: a program in the TRA, or by a planner of relations, by a plan of those.
using Chosen = std::variant<ChosenPlan, ChosenAlgebra>;

Chosen choose(const PlannedRun& run, const Job& job) {
  const auto* const compiled = std::get_if<Compiled>(&run.program);
  if (compiled != nullptr && !(run.planner && plans_relations(*run.planner)))
    return choose_plan(*compiled, requested(run, *compiled, job), run.source, job);
  const bool as_job = !run.plan.sites && job.is_started;
  const PlanRequest request = request_of(run.plan, as_job ? std::optional(job.ranks) : std::nullopt);
  const bool search = run.planner && wants_search({*run.planner});
  const auto planned = [&] {
    if (compiled != nullptr) return plan_algebra(*compiled, request.sites, search);
    const auto& [program, layouts] = std::get<ParsedTra>(run.program);
    return plan_algebra(program, request.sites, layouts, search);
  };
  ChosenAlgebra chosen =
      choose_algebra(planned(), {limit_of(run.plan, request, job), run.threads, run.spill.has_value()}, job);
  if (compiled != nullptr) add_steps(compiled->graph, chosen.tasks);
  if (job.ranks > 1 && !chosen.tasks.states.empty())
    throw UserError(fmt::format("the planner '{}' does not keep states on ranks; use another one", *run.planner));
  return chosen;
}

const ChosenTasks& tasks_of(const Chosen& chosen) {
  return std::visit([](const auto& each) -> const ChosenTasks& { return each; }, chosen);
}

/// What is said of a plan before and after it ran.
class Reports {
 public:
  Reports(const PlannedRun& run, const Chosen& chosen) : run_(run), chosen_(chosen) {}

  std::string explained() const {
    const auto* const compiled = std::get_if<Compiled>(&run_.program);
    if (const auto* const algebra = std::get_if<ChosenAlgebra>(&chosen_)) {
      const std::string first = compiled != nullptr ? explain_text(*compiled, run_.source, Detail::folded)
                                                    : printable(run_.source.name()) + "\n";
      return first + algebra_text(algebra->facts) + "\n";
    }
    const auto& plan = std::get<ChosenPlan>(chosen_);
    return plans_text(*compiled, {{plan.plan}, {}}, plan.request, run_.source, Detail::folded);
  }

  std::string analysis(const PlanRunReport& report) const {
    if (const auto* const algebra = std::get_if<ChosenAlgebra>(&chosen_))
      return analysis_text(algebra->facts, algebra->bytes, report);
    const auto& plan = std::get<ChosenPlan>(chosen_);
    return analysis_text(std::get<Compiled>(run_.program), plan.plan, plan.request, report);
  }

  std::string json(const PlanRunReport& report, const std::map<std::string, Summary>& summaries) const {
    const std::optional<std::int64_t> peak_bytes = peak_resident_bytes();
    if (const auto* const algebra = std::get_if<ChosenAlgebra>(&chosen_))
      return run_algebra_json(run_.source.name(), *algebra, report, summaries, peak_bytes);
    const auto& plan = std::get<ChosenPlan>(chosen_);
    return run_plan_json(std::get<Compiled>(run_.program), plan.plan, plan.request, report, summaries, peak_bytes);
  }

 private:
  const PlannedRun& run_;
  const Chosen& chosen_;
};

}  // namespace

void print_results(const OutputFiles& files, const std::map<std::string, Summary>& summaries,
                   const PlannedTasks& tasks) {
  for (const TaskOutput& output : said_outputs(tasks)) {
    if (files.empty())
      print(fmt::format("{}\n", summary_line(output.name, output.dtype, output.bound, summaries.at(output.name))));
  }
  for (const auto& [name, file] : files) {
    for (const TaskOutput& output : said_outputs(tasks)) {
      if (output.name != name) continue;
      print(
          fmt::format("wrote {} {} {} to {}\n", name, name_of(output.dtype), to_string(output.bound), to_string(file)));
    }
  }
}

void print_steps(const PlanRunReport& report, const PlannedTasks& tasks, const KeptStates& states,
                 const std::optional<std::string>& save) {
  if (!tasks.states.empty() && report.runs.size() > 1) {
    print(steps_line(report.runs) + "\n");
  } else if (report.runs.size() > 1) {
    print(runs_line(report.runs) + "\n");
  }
  if (save)
    print(fmt::format("saved {} after {} to {}\n", counted(tasks.states.size(), "state"),
                      counted(static_cast<std::size_t>(states.steps_done()), "step"), printable(*save)));
}

namespace {

/// Lets a program compute tensors again that its limit of memory has no room for.
void recompute_within_memory(PlannedRun& run, const Job& job) {
  auto* const compiled = std::get_if<Compiled>(&run.program);
  if (compiled == nullptr || (run.planner && plans_relations(*run.planner))) return;
  std::optional<Compiled> recomputed = recomputed_for(*compiled, requested(run, *compiled, job), job);
  if (recomputed) *compiled = *std::move(recomputed);
}

/// The values before the first step.
void begin(const PlannedRun& run, const Chosen& chosen, const PlanResources& resources, const Job& job,
           const InputSources& sources, KeptStates& states) {
  const PlannedTasks& tasks = tasks_of(chosen).tasks;
  if (tasks.states.empty()) return;
  if (run.loaded) return states.begin(tasks, run.loaded->sources(), run.loaded->steps_done);
  const auto& compiled = std::get<Compiled>(run.program);
  const auto* const plan = std::get_if<ChosenPlan>(&chosen);
  if (plan == nullptr) return begin_states(compiled, sources, run.scalars, run.threads, states);
  begin_states(compiled, *plan, requested(run, compiled, job), run.source, resources, job, sources, run.scalars,
               states);
}

}  // namespace

void run_by_plan(PlannedRun run, const Job& job) {
  Chosen chosen;
  InputSources sources;
  agree(job, [&] {
    recompute_within_memory(run, job);
    if (run.trace) check_replaceable(*run.trace);
    if (run.html) check_replaceable(*run.html);
    sources = input_sources(run.program, run.inputs, run.seed);
    chosen = choose(run, job);
    const auto in_place = [&](const StoredRelation& input) { return is_in_place(run.inputs, input.name, input.dtype); };
    if (!job.is_started) check_room(run.source.name(), tasks_of(chosen), in_place, memory_option);
  });
  const PlannedTasks& tasks = tasks_of(chosen).tasks;
  const Reports reports(run, chosen);
  if (job.rank == 0 && run.explain && !run.json) print(reports.explained());
  ChunkedOutputs outputs(said_outputs(tasks), {run.outputs.begin(), run.outputs.end()}, run.outputs.empty() || run.json,
                         job);
  std::optional<StateFile> saved;
  if (run.save) saved.emplace(*run.save, tasks, job);
  PlanResources resources =
      resources_of(tasks_of(chosen), run.spill, [&](std::exception_ptr error) { job.on_failure(error, job); });
  KeptStates states(tasks, job, resources.is_limited ? std::optional(resources.spill.folder) : std::nullopt);
  begin(run, chosen, resources, job, sources, states);
  Session session(tasks, std::move(resources), job);
  const PlanRunReport report = session.step(sources, outputs.writers(), run.scalars,
                                            {run.steps, &states, job.rank == 0 ? run.progress : ProgressListener{}});
  const std::map<std::string, Summary> summaries = outputs.summaries();
  std::vector<AtomicFile> files = outputs.complete();  // no output appears where the state cannot be written
  if (saved) {
    for (AtomicFile& file : saved->complete(states)) files.push_back(std::move(file));
  }
  agree(job, [&] {
    if (job.rank != 0) return;
    if (run.trace) write_text(*run.trace, trace_json(tasks, report));
    const std::string json = run.json || run.html ? reports.json(report, summaries) : "";
    if (run.html) write_text(*run.html, plans_html(json));
    for (AtomicFile& file : files) file.commit();
    if (run.json) return print(json + "\n");
    print_results(run.outputs, summaries, tasks);
    print_steps(report, tasks, states, run.save);
    if (run.analyze) print(reports.analysis(report));
  });
}

}  // namespace einrel::cli
