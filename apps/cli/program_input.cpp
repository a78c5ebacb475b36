#include "program_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "arguments.h"
#include "base/digest.h"
#include "base/text.h"
#include "einsum/front/text/parse.h"
#include "einsum/front/text/program_file.h"
#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "exec/job/alike.h"
#include "exec/job/job.h"
#include "output.h"
#include "run/memory.h"
#include "run/random_input.h"
#include "run/stored_input.h"
#include "run/tra_program.h"
#include "tensor/tensor_file.h"
#include "tra/infer.h"

namespace einrel::cli {
namespace {

/// --in as given: inputs with their files, and archives for all inputs that they have tensors for.
struct GivenInputs {
  std::vector<std::pair<std::string, FileRef>> named;
  std::vector<std::string> archives;
};

GivenInputs split(const std::vector<std::string>& given) {
  GivenInputs files;
  std::vector<std::string> named;
  for (const std::string& text : given) (is_archive(text) ? files.archives : named).push_back(text);
  for (const auto& [name, file] : parse_assignments("--in", named))
    files.named.emplace_back(name, parse_file_ref(file));
  return files;
}

/// Of a program with mistakes, too: they are said when it is checked.
std::set<std::string> declared_inputs(const SourceText& program) {
  std::vector<Diagnostic> errors;
  std::set<std::string> names;
  if (is_tra(program.name())) {
    for (const StoredRelation& input : inputs_of(parse_tra(program).program)) names.insert(input.name);
    return names;
  }
  for (const build::Statement& statement : parse(program, errors).statements) {
    const auto* const inputs = std::get_if<build::Inputs>(&statement.what);
    if (inputs == nullptr) continue;
    for (const build::InputDecl& input : inputs->inputs) names.insert(input.name.text);
  }
  return names;
}

/// Of the tensors of an archive that were not taken: `bound` are the inputs that another --in gives.
void say_unbound(const std::string& path, const std::vector<std::string>& tensors, const std::set<std::string>& bound) {
  if (name_in_job().value_or("rank 0") != "rank 0") return;
  std::vector<std::string> unknown;
  std::vector<std::string> given;
  for (const std::string& tensor : tensors) (bound.contains(tensor) ? given : unknown).push_back(tensor);
  const auto say = [&](const std::vector<std::string>& some, const char* what) {
    if (some.empty()) return;
    print_error(fmt::format("note: {} holds {} {}: {}\n", printable(path), counted(some.size(), "tensor"), what,
                            join_some(some, ", ")));
  };
  say(unknown, "for which there is no input");
  say(given, "not taken, since another --in gives the input of that name");
}

/// What a rank finds there; where it finds nothing, it takes what rank 0 has.
std::string own_text(const std::string& path, const std::string& of_rank_0, const Job& job) {
  std::error_code unseen;
  if (job.rank == 0 || !std::filesystem::is_regular_file(path, unseen)) return of_rank_0;
  try {
    return read_program_file(path);
  } catch (const std::runtime_error&) {  // it is not to be read here
    return of_rank_0;
  }
}

}  // namespace

bool is_tra(const std::string& path) { return path.ends_with(".tra"); }

std::vector<ProgramInput> inputs_of(const AnyProgram& program) {
  std::vector<ProgramInput> inputs;
  if (const auto* const parsed = std::get_if<ParsedTra>(&program)) {
    for (const StoredRelation& input : inputs_of(parsed->program))
      inputs.push_back({input.name, input.dtype, input.bound, "input " + declaration_of(input)});
    return inputs;
  }
  const auto& compiled = std::get<Compiled>(program);
  std::set<std::string> known;
  for (const State& state : compiled.graph.steps.states) known.insert(compiled.graph[state.now].name);
  const auto add = [&](const EinGraph& graph) {
    for (const Vertex& vertex : graph.vertices) {
      if (is_input(vertex) && known.insert(vertex.name).second)
        inputs.push_back({vertex.name, vertex.dtype, vertex.bound, formula(vertex, graph)});
    }
  };
  add(compiled.graph);
  if (compiled.initial) add(compiled.initial->graph);
  return inputs;
}

std::vector<TaskOutput> outputs_of(const AnyProgram& program) {
  std::vector<TaskOutput> outputs;
  if (const auto* const parsed = std::get_if<ParsedTra>(&program)) {
    const std::vector<RelationType> types = infer(parsed->program);
    for (const auto& [name, id] : parsed->program.outputs)
      outputs.push_back({name, types[id.index].dtype, tensor_bound(types[id.index])});
    return outputs;
  }
  const EinGraph& graph = std::get<Compiled>(program).graph;
  for (const VertexId output : program_outputs(graph))
    outputs.push_back({graph[output].name, graph[output].dtype, graph[output].bound});
  return outputs;
}

std::set<std::string> complex_tensors(const AnyProgram& program) {
  const auto* const compiled = std::get_if<Compiled>(&program);
  return compiled == nullptr ? std::set<std::string>{} : compiled->graph.complex;
}

SourceText read_program(const std::string& path) {
  if (path == "-") return {"<standard input>", read_standard_input()};
  return {path, read_program_file(path)};
}

SourceText program_of_job(const std::string& path, const Job& job) {
  std::optional<SourceText> read;
  agree(job, [&] {
    if (job.rank == 0) read = read_program(path);
  });
  if (!job.is_started) return std::move(*read);
  const std::string name = from_rank_0(job, read ? read->name() : "");
  const std::string text = from_rank_0(job, read ? read->text() : "");
  check_alike(job, {{"another program", "", digest_of(own_text(path, text, job))}});
  return {name, text};
}

OpenInputs open_inputs(const std::vector<std::string>& given, const SourceText& program, const InflateFolder& folder) {
  const GivenInputs files = split(given);
  OpenInputs inputs;
  for (const auto& [name, file] : files.named) inputs[name] = open_tensor(file, folder);
  if (files.archives.empty()) return inputs;
  std::set<std::string> declared = declared_inputs(program);
  std::set<std::string> bound;
  for (const auto& [name, file] : inputs) {
    if (declared.erase(name) != 0) bound.insert(name);
  }
  std::map<std::string, std::string> from;
  for (const std::string& path : files.archives) {
    ArchiveContents found = open_archive(path, declared, folder);
    if (found.tensors.empty()) {
      throw UserError(fmt::format(
          "{} holds no tensor with the name of an input that has no file yet{}; it holds {}; bind one with "
          "--in NAME={}:{}",
          printable(path), declared.empty() ? "" : fmt::format(" ({})", fmt::join(declared, ", ")),
          join_some(found.others, ", "), printable(path), found.others.empty() ? "TENSOR" : found.others.front()));
    }
    for (auto& [name, tensor] : found.tensors) {
      const auto [first, is_new] = from.emplace(name, path);
      if (!is_new) {
        throw UserError(fmt::format("{} and {} both hold a tensor '{}'; say which: --in {}={}:{}",
                                    printable(first->second), printable(path), name, name, printable(path), name));
      }
      inputs[name] = std::move(tensor);
    }
    say_unbound(path, found.others, bound);
  }
  return inputs;
}

void check_inputs(const std::vector<std::string>& given) { split(given); }

std::vector<std::string> paths_of(const std::vector<std::string>& given) {
  GivenInputs files = split(given);
  for (const auto& [name, file] : files.named) files.archives.push_back(file.path);
  return files.archives;
}

std::string missing_file(const std::string& declaration, const std::string& name) {
  return fmt::format("missing {}; bind it with --in {}=FILE", declaration, name);
}

EinGraph require_graph(CheckedProgram& checked, const SourceText& program, const std::optional<std::uint64_t>& seed,
                       std::string (*say_missing)(const std::string& declaration, const std::string& name)) {
  if (checked.graph) return std::move(*checked.graph);
  if (seed) {
    throw UserError(
        fmt::format("--random needs the extents of these labels of {}: {}\n  help: give --dim {}=N, or an "
                    "input that has it with --in",
                    printable(program.name()), join_some(checked.unknown_extents, ", "),
                    fmt::join(checked.unknown_extents, "=N --dim ")));
  }
  std::vector<std::string> missing;
  for (const DeclaredInput& input : checked.inputs) {
    if (std::find(input.extents.begin(), input.extents.end(), std::nullopt) == input.extents.end()) continue;
    missing.push_back(say_missing(declaration_of(input), input.name));
  }
  throw UserError(fmt::format("{}\n{} leaves the extents of these labels to it: {}; --dim {}=N gives one",
                              join_some(missing, "\n"), printable(program.name()),
                              join_some(checked.unknown_extents, ", "), checked.unknown_extents.front()));
}

void check_inputs_given(const AnyProgram& program, const OpenInputs& files, const std::optional<std::uint64_t>& seed) {
  if (seed) return;
  std::vector<std::string> missing;
  for (const ProgramInput& input : inputs_of(program)) {
    if (files.count(input.name) != 0) continue;
    missing.push_back(missing_file(input.declaration, input.name));
  }
  if (!missing.empty()) {
    throw UserError(fmt::format("{}\nor fill all missing inputs with --random SEED", join_some(missing, "\n")));
  }
}

bool is_in_place(const OpenInputs& files, const std::string& name, DType dtype) {
  const auto file = files.find(name);
  return file != files.end() && is_read_in_place(file->second, dtype);
}

InputSources input_sources(const AnyProgram& program, const OpenInputs& files,
                           const std::optional<std::uint64_t>& seed) {
  check_inputs_given(program, files, seed);
  InputSources sources;
  for (const ProgramInput& input : inputs_of(program)) {
    const auto file = files.find(input.name);
    if (file != files.end()) {
      sources[input.name] = source_of(file->second, input.dtype);
    } else {
      sources[input.name] = [input, seed = *seed](const std::vector<std::int64_t>& begin, const Shape& bound,
                                                  std::byte* to) {
        fill_random(seed, input.name, input.dtype, input.bound, begin, bound, to);
      };
    }
  }
  return sources;
}

LayoutBindings layouts_of(const InputSources& sources) {
  LayoutBindings layouts;
  for (const auto& [name, source] : sources) {
    if (const auto* const tensor = std::get_if<Tensor>(&source)) layouts[name] = tensor->strides();
  }
  return layouts;
}

}  // namespace einrel::cli
