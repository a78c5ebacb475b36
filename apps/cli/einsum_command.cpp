#include <fmt/format.h>

#include <memory>
#include <optional>

#include "commands.h"
#include "einsum/einsum_notation.h"
#include "engine/compile.h"
#include "engine/memory.h"
#include "engine/report_json.h"
#include "engine/run.h"
#include "engine/summary.h"
#include "output.h"
#include "program_input.h"
#include "tensor/tensor_file.h"

namespace einrel::cli {
namespace {

struct EinsumArguments {
  std::string subscripts;
  std::vector<std::string> operands;
  std::string output;
  std::optional<std::string> join;
  std::optional<std::string> reduce;
  bool json = false;
};

void run_einsum(const EinsumArguments& arguments) {
  EinsumRequest request{arguments.subscripts, {}, arguments.join, arguments.reduce};
  OpenInputs files;
  std::map<std::string, std::string> sources;
  for (std::size_t i = 0; i < arguments.operands.size(); ++i) {
    const StoredTensor file = open_tensor(parse_file_ref(arguments.operands[i]));
    request.operands.push_back(describe(file));
    files[operand_name(i, arguments.operands.size())] = file;
    sources[operand_name(i, arguments.operands.size())] = file.name;
  }
  const Compiled compiled = compile(arguments.subscripts, einsum_graph(request));
  const std::string result = compiled.graph[compiled.graph.outputs.front()].name;
  const DType dtype = compiled.graph[compiled.graph.outputs.front()].dtype;
  FileRef output;
  if (!arguments.output.empty()) {
    output = parse_file_ref(arguments.output);
    check_writable({{output, dtype}});
  }
  Workers workers(available_cores());
  const RunReport report = run(compiled, load_inputs(compiled, files, std::nullopt), {}, workers);
  const std::optional<std::int64_t> peak_bytes = arguments.json ? peak_resident_bytes() : std::nullopt;
  const Tensor& tensor = report.outputs.at(result);
  if (!arguments.output.empty()) write_tensors({{output, tensor}});
  if (arguments.json) {
    print(fmt::format("{}\n", run_json(compiled, report, peak_bytes, sources)));
  } else if (arguments.output.empty()) {
    print(fmt::format("{}\n", summary_line(result, tensor)));
  } else {
    print(fmt::format("wrote {} {} {} to {}\n", result, name_of(tensor.dtype()), to_string(tensor.shape()),
                      to_string(output)));
  }
}

}  // namespace

void add_einsum_command(CLI::App& app) {
  auto arguments = std::make_shared<EinsumArguments>();
  CLI::App* command = app.add_subcommand("einsum", "compute one einsum in NumPy's notation");
  command->add_option("SUBSCRIPTS", arguments->subscripts, "such as 'ij,jk->ik'")->required();
  command->add_option("FILES", arguments->operands, "one file per operand")->required();
  command->add_option("--out", arguments->output, "FILE: write the result instead of summarising it");
  command->add_option("--join", arguments->join,
                      "EXPR: combine values x, y, z (or x1, x2, ...) by this instead of their product");
  command->add_option("--reduce", arguments->reduce, "NAME: reduce by max, min, mean, ... instead of sum");
  command->add_flag("--json", arguments->json, "print one JSON object instead of text");
  command->callback([arguments] { run_einsum(*arguments); });
}

}  // namespace einrel::cli
