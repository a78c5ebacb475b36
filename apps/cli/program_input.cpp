#include "program_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "arguments.h"
#include "base/text.h"
#include "einsum/print.h"
#include "engine/memory.h"
#include "engine/random_input.h"
#include "tensor/tensor_file.h"

namespace einrel::cli {
namespace {

/// Beyond any program; keeps an endless pipe or device from filling the memory.
constexpr std::size_t max_program_bytes = 64U << 20U;

std::string read_all(std::istream& stream, const std::string& name) {
  std::string text;
  std::array<char, 65536> buffer{};
  while (stream.read(buffer.data(), buffer.size()), stream.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > max_program_bytes)
      throw UserError(fmt::format("{} is larger than any program: more than 64 MiB", name));
  }
  return text;
}

}  // namespace

bool is_tra(const std::string& path) { return path.ends_with(".tra"); }

void refuse_tra(const std::string& path) {
  if (!is_tra(path)) return;
  throw UserError(
      fmt::format("{} is a program in the tensor relational algebra, which only explain takes: "
                  "einrel explain {}",
                  printable(path), printable(path)));
}

SourceText read_program(const std::string& path) {
  if (path == "-") return {"<standard input>", read_all(std::cin, "standard input")};
  std::ifstream file(path);
  if (!file) throw UserError(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  if (std::filesystem::is_directory(path)) throw UserError(fmt::format("{} is a folder, not a program", path));
  return {path, read_all(file, path)};
}

OpenInputs open_inputs(const std::vector<std::string>& given) {
  OpenInputs inputs;
  for (const auto& [name, file] : parse_assignments("--in", given)) inputs[name] = open_tensor(parse_file_ref(file));
  return inputs;
}

BoundInput describe(const StoredTensor& file) {
  BoundInput bound{file.shape, std::string(name_of(file.type)), {natural_dtype(file.type)}, file.name};
  for (const DType dtype : all_dtypes) {
    if (dtype != bound.readable_as.front() && fits(file.type, dtype)) bound.readable_as.push_back(dtype);
  }
  return bound;
}

EinGraph require_graph(CheckedProgram& checked, const SourceText& program) {
  if (checked.graph) return std::move(*checked.graph);
  std::vector<std::string> missing;
  for (const DeclaredInput& input : checked.inputs) {
    if (std::find(input.extents.begin(), input.extents.end(), std::nullopt) == input.extents.end()) continue;
    missing.push_back(fmt::format("missing input {0}[{1}] : {2}; bind it with --in {0}=FILE", input.name,
                                  fmt::join(input.labels, ","), name_of(input.dtype)));
  }
  throw UserError(fmt::format("{}\n{} leaves the extents of these labels to it: {}; --dim {}=N gives one",
                              join_some(missing, "\n"), program.name(), join_some(checked.unknown_extents, ", "),
                              checked.unknown_extents.front()));
}

void check_inputs_given(const Compiled& compiled, const OpenInputs& files, const std::optional<std::uint64_t>& seed) {
  const EinGraph& graph = compiled.graph;
  std::vector<std::string> missing;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex) || files.count(vertex.name) != 0 || seed) continue;
    missing.push_back(fmt::format("missing {}; bind it with --in {}=FILE", formula(vertex, graph), vertex.name));
  }
  if (!missing.empty()) {
    throw UserError(fmt::format("{}\nor fill all missing inputs with --random SEED", join_some(missing, "\n")));
  }
}

TensorBindings load_inputs(const Compiled& compiled, const OpenInputs& files,
                           const std::optional<std::uint64_t>& seed) {
  const EinGraph& graph = compiled.graph;
  check_inputs_given(compiled, files, seed);
  const auto in_place = [&](const Vertex& vertex) {
    const auto file = files.find(vertex.name);
    return file != files.end() && is_read_in_place(file->second, vertex.dtype);
  };
  LayoutBindings layouts;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex) && in_place(vertex)) layouts[vertex.name] = files.at(vertex.name).strides;
  }
  check_memory(compiled, layouts, in_place);
  TensorBindings tensors;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) continue;
    const auto file = files.find(vertex.name);
    tensors[vertex.name] = file != files.end() ? read(file->second, vertex.dtype)
                                               : random_tensor(*seed, vertex.name, vertex.dtype, vertex.bound);
  }
  return tensors;
}

}  // namespace einrel::cli
