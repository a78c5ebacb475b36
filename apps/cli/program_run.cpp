#include "program_run.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "arguments.h"
#include "base/atomic_file.h"
#include "base/text.h"
#include "output.h"
#include "progress.h"
#include "report/explain.h"
#include "report/passes_text.h"
#include "report/plan_analysis.h"
#include "report/report_json.h"
#include "report/trace.h"
#include "run/choose_plan.h"
#include "run/chunked_outputs.h"
#include "run/initial_states.h"
#include "run/saved_states.h"
#include "run/summary.h"
#include "viz/plan_html.h"

namespace einrel::cli {
namespace {

/// What was computed: of each output what it is like or, where files were wanted, into which it went.
void print_results(const OutputFiles& files, const std::map<std::string, Summary>& summaries, const PlannedTasks& tasks,
                   const std::set<std::string>& complex) {
  for (const TaskOutput& output : program_outputs(tasks)) {
    if (!files.empty()) continue;
    const auto line = complex.count(output.name) != 0 ? complex_summary_line : summary_line;
    print(fmt::format("{}\n", line(output.name, output.dtype, output.bound, summaries.at(output.name))));
  }
  for (const auto& [name, file] : files) {
    for (const TaskOutput& output : program_outputs(tasks)) {
      if (output.name != name) continue;
      const auto rank = static_cast<std::ptrdiff_t>(output.bound.size()) - (file.is_complex ? 1 : 0);
      print(fmt::format("wrote {} {} {} to {}\n", name,
                        file.is_complex ? name_of_complex(output.dtype) : name_of(output.dtype),
                        to_string(Shape(output.bound.begin(), output.bound.begin() + rank)), to_string(file)));
    }
  }
}

/// How long steps took, where there were several, and where states went.
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

/// What rank 0 writes and prints of a run that is over.
void tell(const ExecutionArguments& arguments, const Prepared& prepared, const RunOutcome& outcome,
          const KeptStates& states, std::vector<AtomicFile> files) {
  const PlannedTasks& tasks = outcome.chosen.tasks;
  if (arguments.trace) write_text(*arguments.trace, trace_json(tasks, outcome.report));
  const std::string json = arguments.json || arguments.html ? run_json(outcome) : "";
  if (arguments.html) write_text(*arguments.html, plans_html(json));
  for (AtomicFile& file : files) file.commit();
  if (arguments.json) return print(json + "\n");
  print_results(prepared.outputs, outcome.summaries, tasks, complex_tensors(prepared.program));
  print_steps(outcome.report, tasks, states, arguments.steps.save);
  if (arguments.analyze) print(analysis_text(outcome));
}

}  // namespace

void run_program(const ExecutionArguments& arguments, Prepared prepared, const SourceText& source, const Job& job) {
  RunRequest request = request_of(arguments.plan, job);
  if (arguments.steps.steps) request.steps = static_cast<std::int64_t>(times_of(arguments));
  Chosen chosen;
  InputSources sources;
  agree(job, [&] {
    if (arguments.trace) check_replaceable(*arguments.trace);
    if (arguments.html) check_replaceable(*arguments.html);
    sources = input_sources(prepared.program, prepared.files, prepared.seed);
    chosen = choose(prepared.program, request, source, job);
    const auto in_place = [&](const StoredRelation& input) {
      return is_in_place(prepared.files, input.name, input.dtype);
    };
    check_room(chosen, job, layouts_of(sources), in_place, memory_option);
  });
  const auto explanation = [&] { return explanation_of(source.name(), prepared.program, chosen, layouts_of(sources)); };
  if (job.rank == 0 && arguments.explain && !arguments.json)
    print(explanation_text(explanation(), source, Detail::folded) + "\n");
  if (job.rank == 0 && arguments.plan.shows_passes)
    print(passes_text(chosen.program(std::get<Compiled>(prepared.program)), chosen.tasks));
  ChunkedOutputs outputs(chosen, {prepared.outputs.begin(), prepared.outputs.end()},
                         prepared.outputs.empty() || arguments.json, job);
  std::optional<StateFile> saved;
  if (arguments.steps.save) saved.emplace(*arguments.steps.save, chosen.tasks, job);
  const std::optional<GivenStates> given = prepared.loaded ? std::optional(prepared.loaded->given()) : std::nullopt;
  KeptStates states = begun_states({std::get_if<Compiled>(&prepared.program), request, chosen}, given, sources,
                                   prepared.scalars, source, job);
  Session session(chosen.tasks, chosen.resources(), job);
  const PlanRunReport report = session.step(
      sources, outputs.writers(), prepared.scalars,
      {times_of(arguments), &states, job.rank == 0 ? progress_listener(arguments.progress) : ProgressListener{}});
  const std::map<std::string, Summary> summaries = outputs.summaries();  // all ranks make them together
  std::vector<AtomicFile> files = outputs.complete();  // no output appears where the state cannot be written
  if (saved) {
    for (AtomicFile& file : saved->complete(states)) files.push_back(std::move(file));
  }
  agree(job, [&] {
    if (job.rank != 0) return;
    // After the run, which may have a limit of memory.
    const bool is_explained = arguments.json || arguments.html || arguments.analyze;
    const Explanation explained = is_explained ? explanation() : Explanation{};
    RunOutcome outcome{explained, chosen, report, summaries, {}};
    for (const auto& [name, file] : prepared.files) outcome.files[name] = file.name;
    tell(arguments, prepared, outcome, states, std::move(files));
  });
}

}  // namespace einrel::cli
