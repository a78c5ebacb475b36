#include <einrel/error.h>
#include <einrel/program.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/border.h"
#include "api/expression_data.h"
#include "api/program_data.h"
#include "api/tensor_data.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/check/check.h"
#include "einsum/front/text/parse.h"
#include "einsum/front/text/print_program.h"
#include "einsum/front/text/program_file.h"
#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/passes/common_labels.h"
#include "run/made_of_expressions.h"
#include "run/scalars.h"

namespace einrel::api {
namespace {

/// Of a complex tensor, the dimension of its parts is none that anyone sees.
void drop_parts(TensorInfo& info) {
  info.extents.pop_back();
  if (info.labels.size() > info.extents.size()) info.labels.pop_back();
}

TensorInfo info_of(const DeclaredInput& input) {
  TensorInfo info{input.name, outside(input.dtype, input.is_complex), input.labels, {}};
  for (const std::optional<Extent>& extent : input.extents)
    info.extents.push_back(extent ? std::optional(extent->value()) : std::nullopt);
  if (input.is_complex) drop_parts(info);
  return info;
}

/// The labels of a vertex's dimensions.
std::vector<std::string> labels_of(const Vertex& vertex, const std::vector<TensorInfo>& inputs) {
  std::vector<std::string> labels;
  if (is_input(vertex)) {
    for (const TensorInfo& input : inputs) {
      if (input.name == vertex.name) labels = input.labels;
    }
    return labels;
  }
  for (const std::vector<std::size_t>& group : result_groups(vertex)) {
    std::vector<std::string> names;
    for (const std::size_t label : group) names.push_back(labels_of(vertex)[label].name);
    labels.push_back(names.size() == 1 ? names.front() : fmt::format("({})", fmt::join(names, " ")));
  }
  return labels;
}

TensorInfo info_of(const EinGraph& graph, VertexId id, const std::vector<TensorInfo>& inputs) {
  const Vertex& vertex = graph[id];
  const bool is_complex = graph.complex.count(vertex.name) != 0;
  TensorInfo info{vertex.name, outside(vertex.dtype, is_complex), labels_of(vertex, inputs), {}};
  for (const Extent extent : vertex.bound) info.extents.emplace_back(extent.value());
  if (is_complex) drop_parts(info);
  return info;
}

std::string declaration(const TensorInfo& input) {
  return fmt::format("{}[{}] : {}", input.name, fmt::join(input.labels, ","), name_of(input.dtype));
}

std::string text_of(const std::filesystem::path& path) {
  if (path.extension() == ".tra") {
    throw UserError(
        fmt::format("{0} is a program in the tensor relational algebra, which the command runs and shows: "
                    "einrel run {0}, einrel explain {0}",
                    printable(path.string())));
  }
  return read_program_file(path.string());
}

}  // namespace

BoundInput bound_input(const std::string& name, const std::pair<DType, Shape>& type) {
  BoundInput bound{inside(type.first, type.second),
                   std::string(name_of(type.first)),
                   {inside(type.first)},
                   fmt::format("the tensor given for {}", printable(name))};
  bound.is_complex = is_complex(type.first);
  return bound;
}

CheckedProgram checked(const GivenProgram& given, const BoundInputs& inputs, std::vector<Diagnostic> errors) {
  CheckedProgram program = check(given.program, given.source, {given.dims, inputs}, std::move(errors));
  if (program.graph && given.labels == LabelNames::common)
    program.graph = with_common_labels(*std::move(program.graph));
  return program;
}

Compiled compiled_for(const GivenProgram& given, const BoundInputs& inputs, const std::vector<std::string>& wanted) {
  CheckedProgram program = checked(given, inputs);
  if (!program.graph) check_output_names(wanted, program.tensors);
  if (program.graph) return compile(given.source.name(), std::move(*program.graph), wanted, program.initial);
  std::vector<std::string> missing;
  for (const DeclaredInput& input : program.inputs) {
    if (inputs.count(input.name) == 0) missing.push_back(declaration(info_of(input)));
  }
  throw UserError(fmt::format(
      "{} leaves the extents of these labels open: {}; give them in dims{}", printable(given.source.name()),
      fmt::join(program.unknown_extents, ", "),
      missing.empty() ? ""
                      : fmt::format(", or run it with the inputs that are missing: {}", fmt::join(missing, ", "))));
}

const Compiled& require_extents(const std::shared_ptr<Version>& declared, const SourceText& source,
                                const std::vector<TensorInfo>& inputs, const std::string& what) {
  if (declared) return declared->compiled();
  std::vector<std::string> open;
  for (const TensorInfo& input : inputs) {
    if (std::find(input.extents.begin(), input.extents.end(), std::nullopt) != input.extents.end())
      open.push_back(declaration(input));
  }
  throw UserError(
      fmt::format("{} cannot be said of {} while extents are open; give them in dims. Inputs with open "
                  "extents: {}",
                  what, printable(source.name()), fmt::join(open, ", ")));
}

Program::Data::Data(GivenProgram program, std::vector<Diagnostic> errors) : given(std::move(program)) {
  CheckedProgram known = checked(given, {}, std::move(errors));
  InputTypes types;
  for (const DeclaredInput& input : known.inputs) {
    inputs.push_back(info_of(input));
    Shape shape;
    for (const auto& extent : inputs.back().extents) shape.push_back(extent.value_or(0));
    types[input.name] = {inputs.back().dtype, std::move(shape)};
  }
  if (known.graph)
    declared =
        versions->get(types, [&] { return compile(given.source.name(), std::move(*known.graph), {}, known.initial); });
}

Program::Program(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Program Program::parse(std::string_view text, const Dims& dims, std::string_view name) {
  return at_border([&] {
    const SourceText source{std::string(name), std::string(text)};
    std::vector<Diagnostic> errors;
    build::Program program = einrel::parse(source, errors);
    return Program(std::make_shared<Data>(GivenProgram{std::move(program), source, dims}, std::move(errors)));
  });
}

Program Program::load(const std::filesystem::path& file, const Dims& dims) {
  return parse(at_border([&] { return text_of(file); }), dims, file.string());
}

Program Program::build(const std::vector<Variable>& outputs, const Dims& dims, const Steps& steps, LabelNames labels) {
  return at_border([&] {
    build::Program program = program_of(outputs, steps);
    const SourceText source(std::string(made_of_expressions), print(program));
    return Program(std::make_shared<Data>(GivenProgram{std::move(program), source, dims, labels}));
  });
}

const std::string& Program::text() const { return data_->given.source.text(); }
const std::vector<TensorInfo>& Program::inputs() const { return data_->inputs; }
bool Program::extents_are_known() const { return data_->declared != nullptr; }

std::vector<TensorInfo> Program::outputs() const {
  const EinGraph& graph =
      require_extents(data_->declared, data_->given.source, data_->inputs, "what a run gives").graph;
  std::vector<TensorInfo> outputs;
  for (const VertexId output : program_outputs(graph)) outputs.push_back(info_of(graph, output, data_->inputs));
  return outputs;
}

std::shared_ptr<Version> version_for(const ProgramAccess::Data& program, const Inputs& inputs, bool has_state) {
  std::shared_ptr<Version> version = program.versions->find(inputs);
  if (!version) {
    InputTypes types;
    BoundInputs bound;
    for (const auto& [name, input] : inputs) {
      types[name] = {input.dtype(), input.shape()};
      bound[name] = bound_input(name, types[name]);
    }
    version = program.versions->get(types, [&] { return compiled_for(program.given, bound); });
  }
  version->require(inputs, has_state);
  return version;
}

RunResult Program::run(const Inputs& inputs, const RunOptions& options) const {
  return at_border([&] {
    const std::shared_ptr<Version> version = version_for(*data_, inputs, options.state.has_value());
    return run_version(
        {*version, data_->given.source, inputs, bind_scalars(version->compiled().graph.scalars, options.scalars)},
        options);
  });
}

const Tensor& RunResult::operator[](std::string_view name) const& {
  const auto found = outputs.find(std::string(name));
  if (found != outputs.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [output, tensor] : outputs) known.push_back(output);
  const std::string near = did_you_mean(name, known);
  throw UserError(fmt::format("there is no output '{}'; {}", printable(name),
                              !near.empty() ? near : fmt::format("the outputs are: {}", fmt::join(known, ", "))));
}

Tensor RunResult::operator[](std::string_view name) && { return static_cast<const RunResult&>(*this)[name]; }

}  // namespace einrel::api
