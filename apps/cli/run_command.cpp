#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "arguments.h"
#include "base/guard.h"
#include "commands.h"
#include "engine/compile.h"
#include "engine/explain.h"
#include "engine/memory.h"
#include "engine/report_json.h"
#include "engine/run.h"
#include "engine/summary.h"
#include "output.h"
#include "planned_run.h"
#include "program_input.h"
#include "progress.h"
#include "tensor/tensor_file.h"

namespace einrel::cli {
namespace {

struct RunArguments {
  std::string program;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> dims;
  std::vector<std::string> scalars;
  std::optional<std::string> seed;
  std::string threads;
  PlanArguments plan;
  std::optional<std::string> planner;
  std::optional<std::string> spill;
  std::optional<std::string> trace;
  std::string repeats = "1";
  std::string timeout = "60";
  bool explain = false;
  bool analyze = false;
  bool json = false;
  std::string progress = "auto";
};

OutputFiles parse_outputs(const std::vector<std::string>& given) {
  OutputFiles files;
  for (const auto& [name, file] : parse_assignments("--out", given)) files.emplace_back(name, parse_file_ref(file));
  return files;
}

/// Refuses files that could not be written before any work is done.
void check_outputs(const OutputFiles& files, const EinGraph& graph) {
  std::vector<std::pair<FileRef, DType>> planned;
  for (const auto& [name, file] : files) {
    for (const VertexId output : graph.outputs) {
      if (graph[output].name == name) planned.emplace_back(file, graph[output].dtype);
    }
  }
  check_writable(planned);
}

void write_outputs(const OutputFiles& files, const RunReport& report) {
  std::vector<std::pair<FileRef, Tensor>> tensors;
  for (const auto& [name, file] : files) tensors.emplace_back(file, report.outputs.at(name));
  write_tensors(tensors);
}

/// A program and what it is to run on, all checked.
struct Prepared {
  OpenInputs files;
  OutputFiles outputs;
  std::optional<std::uint64_t> seed;
  Compiled compiled;
  ScalarBindings scalars;
};

Prepared prepare(const RunArguments& arguments, const SourceText& source) {
  Prepared prepared;
  prepared.files = open_inputs(arguments.inputs);
  prepared.outputs = parse_outputs(arguments.outputs);
  prepared.seed = parse_seed(arguments.seed);
  Environment environment{parse_dims(arguments.dims), {}};
  for (const auto& [name, file] : prepared.files) environment.inputs[name] = describe(file);
  CheckedProgram checked = parse_and_check(source, environment);
  std::vector<std::string> wanted;
  for (const auto& [name, file] : prepared.outputs) wanted.push_back(name);
  prepared.compiled = compile(arguments.program, require_graph(checked, source), wanted);
  prepared.scalars = bind_scalars(prepared.compiled.graph, parse_scalars(arguments.scalars));
  check_outputs(prepared.outputs, prepared.compiled.graph);
  return prepared;
}

/// On all threads of this process, vertex by vertex.
void run_here(const RunArguments& arguments, const Prepared& prepared, std::size_t repeats) {
  const auto& [files, outputs, seed, compiled, scalars] = prepared;
  const ProgressListener progress = progress_listener(arguments.progress);
  Workers workers(parse_threads(arguments.threads));
  if (arguments.explain && !arguments.json) print(fmt::format("{}\n", explain_text(compiled)));
  TensorBindings inputs = load_inputs(compiled, files, seed);

  std::vector<double> runs;
  for (std::size_t i = 1; i < repeats; ++i) runs.push_back(run(compiled, inputs, scalars, workers, progress).seconds);
  RunReport report = run(compiled, std::move(inputs), scalars, workers, progress);
  report.runs.insert(report.runs.begin(), runs.begin(), runs.end());
  const std::optional<std::int64_t> peak_bytes = arguments.json ? peak_resident_bytes() : std::nullopt;
  write_outputs(outputs, report);
  if (arguments.json) {
    std::map<std::string, std::string> sources;
    for (const auto& [name, file] : files) sources[name] = file.name;
    print(fmt::format("{}\n", run_json(compiled, report, peak_bytes, sources)));
    return;
  }
  for (const VertexId output : compiled.graph.outputs) {
    if (outputs.empty())
      print(fmt::format("{}\n",
                        summary_line(compiled.graph[output].name, report.outputs.at(compiled.graph[output].name))));
  }
  for (const auto& [name, file] : outputs) {
    const Tensor& tensor = report.outputs.at(name);
    print(fmt::format("wrote {} {} {} to {}\n", name, name_of(tensor.dtype()), to_string(tensor.shape()),
                      to_string(file)));
  }
  if (report.runs.size() > 1) print(runs_line(report.runs) + "\n");
}

/// What fails on one rank while others compute: says so and ends them all.
void end_all(std::exception_ptr error, const Job& job) {
  end_job(job, report_failure(error, job.is_started ? fmt::format("rank {}: ", job.rank) : ""));
}

/// Rank 0 reads it: the others may have no standard input.
SourceText program_of_job(const std::string& path, const Job& job) {
  std::optional<SourceText> read;
  agree(job, [&] {
    if (job.rank == 0) read = read_program(path);
  });
  if (!job.is_started) return std::move(*read);
  const std::string name = from_rank_0(job, read ? read->name() : "");
  return {name, from_rank_0(job, read ? read->text() : "")};
}

void run_program(const RunArguments& arguments) {
  double timeout = 60;
  std::size_t repeats = 1;
  std::exception_ptr fault;  // said when the ranks can agree on who says it
  try {
    refuse_tra(arguments.program);
    timeout = parse_timeout(arguments.timeout);
    repeats = parse_repeats(arguments.repeats);
  } catch (const UserError&) {
    fault = std::current_exception();
  }
  if (const std::optional<std::string> name = name_in_job()) run_guarded(*name, timeout);
  const MpiJob mpi(end_all);
  const Job& job = mpi.job();
  agree(job, [&] {
    if (fault) std::rethrow_exception(fault);
  });
  const SourceText source = program_of_job(arguments.program, job);
  Prepared prepared;
  agree(job, [&] { prepared = prepare(arguments, source); });
  const bool by_plan = job.is_started || arguments.planner || arguments.analyze || arguments.spill || arguments.trace ||
                       arguments.plan.any();
  if (!by_plan) return run_here(arguments, prepared, repeats);
  run_by_plan({.compiled = prepared.compiled,
               .source = source,
               .inputs = prepared.files,
               .seed = prepared.seed,
               .scalars = prepared.scalars,
               .outputs = prepared.outputs,
               .plan = arguments.plan,
               .planner = arguments.planner,
               .threads = threads_of(arguments.threads, job),
               .spill = arguments.spill,
               .trace = arguments.trace,
               .repeats = repeats,
               .progress = progress_listener(arguments.progress),
               .explain = arguments.explain,
               .analyze = arguments.analyze,
               .json = arguments.json},
              job);
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "run a program on files or random data");
  command->add_option("PROGRAM", arguments->program, "a .ein file, or - for standard input")->required();
  command
      ->add_option("--in", arguments->inputs, "NAME=FILE: bind an input (.npy, .npz:NAME, .safetensors:NAME, .idx.gz)")
      ->allow_extra_args(false);
  command->add_option("--random", arguments->seed,
                      "SEED: fill the other inputs with random values; a whole number from 0 to 2^64-1");
  command->add_option("--out", arguments->outputs, "NAME=FILE: write a tensor instead of summarising the outputs")
      ->allow_extra_args(false);
  command->add_option("--dim", arguments->dims, "LABEL=N: set the extent of a label")->allow_extra_args(false);
  command->add_option("--scalar", arguments->scalars, "NAME=X: set a scalar")->allow_extra_args(false);
  command->add_option("--threads", arguments->threads,
                      "N: compute on N threads; without it, on all cores this process may use");
  add_plan_options(*command, arguments->plan);
  command->add_option("--planner", arguments->planner, "how to plan (default eindecomp; see einrel list planners)");
  command->add_option("--spill", arguments->spill,
                      "FOLDER: where chunks go that --memory has no room for (default: the system's temporary folder)");
  command->add_option("--repeat", arguments->repeats,
                      "N: compute N times and say how long each took; outputs are those of the last");
  command->add_option("--timeout", arguments->timeout,
                      "SECONDS: a rank that is stopped for longer ends the job (default 60)");
  command->add_option("--trace", arguments->trace,
                      "FILE: write when every task ran, for a trace viewer (Perfetto, chrome://tracing)");
  command->add_flag("--analyze", arguments->analyze, "show what was predicted beside what was measured");
  command->add_flag("--explain", arguments->explain, "show the program's vertices first (--json has them anyway)");
  command->add_flag("--json", arguments->json, "print one JSON object instead of text");
  command->add_option("--progress", arguments->progress, "auto, always or never");
  command->callback([arguments] { run_program(*arguments); });
}

}  // namespace einrel::cli
