#include "lang/corpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "einsum/check/check.h"
#include "einsum/front/text/parse.h"
#include "einsum/reference.h"
#include "run/compile.h"
#include "run/scalars.h"

namespace einrel::test {

namespace fs = std::filesystem;

namespace {

Environment environment_of(const Document& document, const Dims& dims) {
  Environment environment{dims, {}};
  const std::vector<DType> any_dtype(all_dtypes.begin(), all_dtypes.end());
  std::set<std::string> complex;
  std::vector<Diagnostic> errors;
  for (const build::Statement& statement : parse(document.source, errors).statements) {
    const auto* const inputs = std::get_if<build::Inputs>(&statement.what);
    for (std::size_t i = 0; inputs != nullptr && i < inputs->inputs.size(); ++i) {
      if (inputs->inputs[i].is_complex) complex.insert(inputs->inputs[i].name.text);
    }
  }
  for (const auto& [name, literal] : document.inputs) {
    environment.inputs[name] = {literal_shape(literal), "numbers", any_dtype, "#! in " + name};
    environment.inputs[name].is_complex = complex.count(name) != 0;
  }
  return environment;
}

/// Intermediate tensors that a document expects something of are outputs too.
EinGraph with_expected_outputs(EinGraph graph, const Document& document) {
  std::vector<std::string> expected;
  for (const ExpectedValue& value : document.values) expected.push_back(value.tensor);
  for (const ExpectedType& type : document.types) expected.push_back(type.tensor);
  for (const ExpectedSame& same : document.sames) expected.insert(expected.end(), {same.first, same.second});
  std::vector<std::string> known;  // others are said to be missing when values are looked at
  for (const std::string& name : expected) {
    const auto is_it = [&](const Vertex& vertex) { return vertex.name == name; };
    if (std::any_of(graph.vertices.begin(), graph.vertices.end(), is_it)) known.push_back(name);
  }
  return with_outputs(std::move(graph), known);
}

/// Of all inputs but states.
TensorBindings bind_inputs(const EinGraph& graph, const Document& document) {
  TensorBindings inputs;
  std::set<std::string> states;
  for (const State& state : graph.steps.states) states.insert(graph[state.now].name);
  for (const Vertex& vertex : graph.vertices) {
    if (!std::holds_alternative<Input>(vertex.op) || states.count(vertex.name) != 0) continue;
    if (const auto literal = document.inputs.find(vertex.name); literal != document.inputs.end()) {
      inputs[vertex.name] = tensor_from_literal(literal->second, vertex.dtype);
    } else if (document.seed) {
      inputs[vertex.name] = small_random_tensor(*document.seed, vertex.name, vertex.dtype, vertex.bound);
    } else {
      throw DocumentError(
          fmt::format("input {} has no data: #! in {} = ..., or #! random SEED", vertex.name, vertex.name));
    }
  }
  return inputs;
}

/// Binds states to their initial values.
void bind_states(Runnable& runnable) {
  const EinGraph& initial = *runnable.initial;
  TensorBindings inputs = runnable.inputs;
  for (const State& state : initial.steps.states)  // nobody reads them
    inputs[initial[state.now].name] = Tensor(initial[state.now].dtype, initial[state.now].bound);
  const std::vector<Tensor> values = evaluate_reference(initial, inputs, runnable.scalars);
  for (const State& state : initial.steps.states) runnable.inputs[initial[state.now].name] = values[*state.next];
}

/// Extents that keep the reference quick, by example.
const std::map<std::string, Dims>& small_examples() {
  static const std::map<std::string, Dims> table{
      {"alexnet",
       {{"b", 2},  {"l", 3},  {"rgb", 2}, {"height", 15}, {"width", 15}, {"c1", 2},  {"c2", 3},  {"c3", 2}, {"c4", 3},
        {"c5", 2}, {"h6", 4}, {"h7", 3},  {"dy1", 3},     {"dx1", 3},    {"dy2", 5}, {"dx2", 5}, {"v", 1},  {"u", 1},
        {"y1", 4}, {"x1", 4}, {"q1", 2},  {"p1", 2},      {"y2", 2},     {"x2", 2},  {"q2", 1},  {"p2", 1}, {"y3", 1},
        {"x3", 1}, {"y4", 1}, {"x4", 1},  {"y5", 1},      {"x5", 1},     {"q5", 1},  {"p5", 1}}},
      {"attention", {{"s", 7}, {"t", 7}, {"a", 6}, {"h", 2}, {"d", 3}}},
      {"attention_gradient", {{"b", 2}, {"s", 5}, {"t", 5}, {"a", 6}, {"h", 2}, {"d", 3}}},
      {"chain_skewed", {{"i", 10}, {"j", 1}, {"k", 10}, {"l", 1}, {"m", 100}}},
      {"chain_uniform", {{"i", 5}, {"j", 5}, {"k", 5}, {"l", 5}, {"m", 5}}},
      {"cnn", {{"b", 2}, {"height", 16}, {"width", 20}, {"c", 2}, {"k", 3}, {"p", 1}, {"q", 2}, {"h", 5}}},
      {"convolution", {{"n", 2}, {"c", 3}, {"k", 4}, {"height", 8}, {"width", 10}}},
      {"convolution_layers",
       {{"b", 2}, {"y", 3}, {"x", 4}, {"c0", 2}, {"c1", 3}, {"c2", 2}, {"c3", 3}, {"c4", 2}, {"c5", 3}}},
      {"crf", {{"j", 3}, {"k", 3}}},
      {"dense_layers", {{"b", 4}, {"h0", 5}, {"h1", 6}, {"h2", 3}, {"h3", 4}, {"h4", 2}}},
      {"embedding", {{"v", 9}, {"b", 3}, {"s", 4}, {"d", 5}, {"l", 2}}},
      {"ffnn", {{"b", 5}, {"f", 6}, {"h", 7}, {"l", 3}}},
      {"hmm", {{"t", 5}, {"j", 3}, {"k", 3}}},
      {"kmeans", {{"n", 9}, {"k", 3}, {"d", 2}}},
      {"layers", {{"b", 5}, {"f", 6}, {"h", 7}, {"l", 3}}},
      {"llama_layer", {{"b", 2}, {"s", 5}, {"e", 6}, {"h", 3}, {"d", 4}, {"c", 2}, {"m", 7}}},
      {"logistic_regression", {{"b", 7}, {"f", 5}, {"l", 4}}},
      {"matmul", {{"i", 7}, {"j", 9}, {"k", 5}}},
      {"mlp", {{"b", 5}, {"f", 6}, {"h", 7}, {"l", 3}}},
      {"multi_head_attention", {{"s", 5}, {"t", 7}, {"a", 6}, {"h", 2}, {"d", 3}}},
      {"nearest_neighbour", {{"q", 4}, {"n", 9}, {"d", 5}}},
      {"power_iteration", {{"n", 9}, {"i", 4}, {"j", 4}}},
      {"ridge_regression", {{"g", 5}, {"n", 8}, {"f", 3}}},
      {"train_cnn", {{"b", 2}, {"height", 16}, {"width", 20}, {"c", 2}, {"k", 3}, {"p", 1}, {"q", 2}, {"h", 5}}},
      {"train_dropout", {{"b", 3}, {"y", 4}, {"x", 5}, {"h", 6}, {"l", 3}}},
      {"train_extreme", {{"b", 4}, {"f", 6}, {"h", 5}, {"l", 7}}},
      {"train_mnist", {{"b", 3}, {"y", 4}, {"x", 5}, {"h", 6}, {"l", 3}}},
      {"train_subnets", {{"b", 4}, {"y", 3}, {"x", 4}, {"h", 5}, {"l", 3}}},
      {"train_table", {{"b", 5}, {"f", 2}, {"l", 3}}},
      {"two_layer", {{"b", 5}, {"f", 6}, {"h", 7}, {"l", 3}}},
  };
  return table;
}

}  // namespace

CheckedProgram check_document(const Document& document, const Dims& dims) {
  return parse_and_check(document.source, environment_of(document, dims));
}

Runnable prepare(const Document& document, const Dims& dims) {
  CheckedProgram checked = check_document(document, dims);
  if (!checked.graph) {
    throw DocumentError(fmt::format("these extents are open: {}", fmt::join(checked.unknown_extents, ", ")));
  }
  Runnable runnable{std::move(*checked.graph), {}, {}, std::move(checked.initial), document.steps};
  runnable.scalars = bind_scalars(runnable.graph.scalars, document.scalars);
  if (document.outputs) {
    std::vector<std::string> names;
    for (const VertexId id : program_outputs(runnable.graph)) names.push_back(runnable.graph[id].name);
    if (names != *document.outputs) throw DocumentError(fmt::format("the outputs are {}", fmt::join(names, " ")));
  }
  runnable.inputs = bind_inputs(runnable.graph, document);
  if (runnable.initial) {
    TensorBindings inputs = bind_inputs(*runnable.initial, document);
    inputs.merge(runnable.inputs);
    runnable.inputs = std::move(inputs);
    bind_states(runnable);
  }
  runnable.graph = with_expected_outputs(std::move(runnable.graph), document);
  return runnable;
}

std::vector<fs::path> ein_files(const std::string& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".ein") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<fs::path> examples() {
  std::vector<fs::path> paths = ein_files(EINREL_EXAMPLES);
  // Hundreds of vertices like those of others, which take long; and positions that random numbers are none of.
  for (const char* const name : {"llama_7b.ein", "vgg16.ein", "train_characters.ein"})
    std::erase(paths, fs::path(EINREL_EXAMPLES) / name);
  return paths;
}

Dims small_extents(const fs::path& example) {
  const auto found = small_examples().find(example.stem().string());
  if (found == small_examples().end()) {
    throw DocumentError(fmt::format("give {} extents in small_examples()", example.stem().string()));
  }
  return found->second;
}

std::vector<std::filesystem::path> programs_that_run() {
  std::vector<std::filesystem::path> paths = examples();
  for (const std::filesystem::path& path : ein_files(EINREL_LANG_DOCUMENTS)) {
    const Document document = read_document(read_source(path));
    if (document.errors.empty() && document.failure.empty()) paths.push_back(path);
  }
  return paths;
}

Runnable prepare(const std::filesystem::path& program) {
  if (program.parent_path() == std::filesystem::path(EINREL_LANG_DOCUMENTS)) {
    const Document document = read_document(read_source(program));
    return prepare(document, document.dims);
  }
  const Document document{read_source(program), {}, 1, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  return prepare(document, small_extents(program));
}

}  // namespace einrel::test
