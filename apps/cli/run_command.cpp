#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "arguments.h"
#include "commands.h"
#include "engine/compile.h"
#include "engine/explain.h"
#include "engine/memory.h"
#include "engine/report_json.h"
#include "engine/run.h"
#include "engine/summary.h"
#include "output.h"
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
  bool explain = false;
  bool json = false;
  std::string progress = "auto";
};

using OutputFiles = std::vector<std::pair<std::string, FileRef>>;

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

void run_program(const RunArguments& arguments) {
  refuse_tra(arguments.program);
  const SourceText source = read_program(arguments.program);
  const OpenInputs files = open_inputs(arguments.inputs);
  const OutputFiles outputs = parse_outputs(arguments.outputs);
  Environment environment{parse_dims(arguments.dims), {}};
  for (const auto& [name, file] : files) environment.inputs[name] = describe(file);
  const ProgressListener progress = progress_listener(arguments.progress);
  Workers workers(parse_threads(arguments.threads));

  CheckedProgram checked = parse_and_check(source, environment);
  std::vector<std::string> wanted;
  for (const auto& [name, file] : outputs) wanted.push_back(name);
  const Compiled compiled = compile(arguments.program, require_graph(checked, source), wanted);
  const ScalarBindings scalars = bind_scalars(compiled.graph, parse_scalars(arguments.scalars));
  check_outputs(outputs, compiled.graph);
  if (arguments.explain && !arguments.json) print(fmt::format("{}\n", explain_text(compiled)));
  TensorBindings inputs = load_inputs(compiled, files, parse_seed(arguments.seed));

  const RunReport report = run(compiled, std::move(inputs), scalars, workers, progress);
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
  command->add_flag("--explain", arguments->explain, "show the program's vertices first (--json has them anyway)");
  command->add_flag("--json", arguments->json, "print one JSON object instead of text");
  command->add_option("--progress", arguments->progress, "auto, always or never");
  command->callback([arguments] { run_program(*arguments); });
}

}  // namespace einrel::cli
