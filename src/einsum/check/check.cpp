#include "einsum/check/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "base/suggest.h"
#include "base/text.h"
#include "einsum/check/check_complex.h"
#include "einsum/check/check_state.h"
#include "einsum/front/text/parse.h"
#include "einsum/graph/training_name.h"
#include "einsum/passes/complex.h"

namespace einrel {
namespace {

using namespace checking;

constexpr const char* first_definition = "define a tensor, such as Z[i] = 2 * X[i]";

std::string declaration_text(const build::InputDecl& input) {
  std::vector<std::string> labels;
  for (const build::Name& label : input.labels) labels.push_back(label.text);
  return printable(fmt::format("{}[{}]", input.name.text, fmt::join(labels, ",")));
}

std::string_view type_of(const build::InputDecl& input) {
  return input.is_complex ? name_of_complex(input.dtype) : name_of(input.dtype);
}

/// A tensor's name must be new. A second definition is checked all the same; readers see the first.
void claim_name(CheckState& state, const build::Statement& statement, const build::Name& name) {
  const auto [known, is_new] = state.defined.insert({name.text, name.span});
  if (is_new) return;
  if (std::holds_alternative<build::Until>(statement.what)) {
    state.error("the steps of a program end by one condition", {name.span, known->second},
                "make one of both, for example until (a[] < 1e-3) + (b[] > 5) > 0");
    return;
  }
  if (const auto* const next = std::get_if<build::Next>(&statement.what)) {
    const std::string& of = next->value.name.text;
    state.error(fmt::format("'{}' has two next values", of), {name.span, known->second},
                fmt::format("a state changes in one place; '{}' is the name of its value in the next step", name.text));
    return;
  }
  state.error(fmt::format("'{}' is defined twice", name.text), {name.span, known->second},
              "a tensor has one definition; give the new value another name");
}

/// The tensors that a statement defines.
std::vector<build::Name> defined_names(const build::Statement& statement) {
  std::vector<build::Name> names;
  if (const auto* inputs = std::get_if<build::Inputs>(&statement.what)) {
    for (const build::InputDecl& input : inputs->inputs) names.push_back(input.name);
  } else if (const auto* definition = std::get_if<build::Definition>(&statement.what)) {
    names.push_back(definition->name);
  } else if (const auto* view = std::get_if<build::ViewDefinition>(&statement.what)) {
    names.push_back(view->name);
  } else if (const auto* gradient = std::get_if<build::Gradient>(&statement.what)) {
    names = gradient->results;
  } else if (const auto* state = std::get_if<build::State>(&statement.what)) {
    const build::Name& name = state->initial.name;
    names = {name, {initial_name(name.text), name.span}};
  } else if (const auto* next = std::get_if<build::Next>(&statement.what)) {
    names = {{next_name(next->value.name.text), next->value.name.span}};
  } else if (std::holds_alternative<build::Until>(statement.what)) {
    names = {{until_name, statement.span}};
  }
  return names;
}

void declare_dims(CheckState& state, const build::Dims& dims) {
  for (const build::Dim& dim : dims.dims) {
    const auto known = state.labels.find(dim.label.text);
    if (known != state.labels.end()) {
      state.error(fmt::format("'{}' has two extents", dim.label.text), {dim.label.span, known->second.where},
                  "declare each label once");
      continue;
    }
    DeclaredLabel label{dim.extent, "dims", dim.label.span};
    if (const auto given = state.environment.dims.find(dim.label.text); given != state.environment.dims.end()) {
      label = {given->second, "--dim", dim.label.span};
    }
    state.labels[dim.label.text] = label;
  }
}

void declare_scalars(CheckState& state, const build::Scalars& scalars) {
  for (const build::ScalarDecl& scalar : scalars.scalars) {
    ScalarDeclaration declaration{.name = scalar.name.text, .value = std::nullopt, .integer_type = std::nullopt};
    if (scalar.value) declaration.value = scalar.value->value;
    if (scalar.name.text == training_name) {
      if (declaration.value.value_or(0) != 0)
        state.error(fmt::format("'{}' is 1 in the steps of `einrel train`, and 0 everywhere else", scalar.name.text),
                    {scalar.name.span}, "leave its value out, or give the scalar another name");
      declaration.value = 0;
    }
    const auto [known, is_new] = state.scalars.insert({scalar.name.text, declaration});
    if (is_new) continue;
    if (known->second.is_iteration) {
      state.error(fmt::format("'{}' is the number of steps that a program with state has done", scalar.name.text),
                  {scalar.name.span}, "give the scalar another name");
    } else {
      state.error(fmt::format("scalar '{}' is declared twice", scalar.name.text), {scalar.name.span}, "remove one");
    }
  }
}

/// The labels of inputs that `dims` does not name get their extent from --dim or from the data.
void declare_input_labels(CheckState& state, const build::InputDecl& input) {
  const std::string source = "input " + declaration_text(input);
  for (const build::Name& label : input.labels) {
    if (state.labels.count(label.text) != 0) continue;
    DeclaredLabel declared{std::nullopt, source, label.span};
    if (const auto given = state.environment.dims.find(label.text); given != state.environment.dims.end()) {
      declared.extent = given->second;
      declared.source = "--dim";
    }
    state.labels[label.text] = declared;
  }
}

/// Who says the extent of a dimension: "X[i,j] (table 'X', whose largest key is j=3)".
std::string source_of(const build::InputDecl& input, const BoundInput& bound, std::size_t d) {
  const std::string key = bound.largest_keys.empty() ? "" : bound.largest_keys[d];
  return fmt::format("{} ({}{}{})", declaration_text(input), bound.origin, key.empty() ? "" : ", whose largest key is ",
                     key);
}

/// Compares a declaration with what is bound to it and learns extents from that.
void check_binding(CheckState& state, const build::InputDecl& input, const BoundInput& bound) {
  const std::string text = declaration_text(input);
  if (bound.is_complex != input.is_complex) {
    state.error(fmt::format("'{}' is declared {}, but {} holds {}", input.name.text, type_of(input), bound.origin,
                            bound.stored_type),
                {input.name.span},
                input.is_complex ? "declare it real and make it complex where it is used: complex(X[i], 0)"
                                 : "declare it c64 or c128, or take its real part before");
    return;
  }
  if (bound.shape.size() != input.labels.size() + (input.is_complex ? 1 : 0)) {
    state.error(fmt::format("{} has {} dimension{}, but {} has shape {}", text, input.labels.size(),
                            input.labels.size() == 1 ? "" : "s", bound.origin, to_string(bound.shape)),
                {input.name.span},
                fmt::format("declare '{}' with {} labels, or bind other data", input.name.text, bound.shape.size()));
    return;
  }
  if (std::find(bound.readable_as.begin(), bound.readable_as.end(), input.dtype) == bound.readable_as.end()) {
    const bool has_own = !bound.readable_as.empty();
    state.error(fmt::format("'{}' is declared {}, but {} holds {}", input.name.text, type_of(input), bound.origin,
                            bound.stored_type),
                {input.name.span},
                input.is_complex ? "declare it as the file is, or convert the file"
                : has_own        ? fmt::format("declare it {} and cast where it is used: {}({}[...])",
                                               name_of(bound.readable_as.front()), name_of(input.dtype), input.name.text)
                                 : "convert the file");
  }
  for (std::size_t d = 0; d < input.labels.size(); ++d) {
    DeclaredLabel& label = state.labels[input.labels[d].text];
    const std::int64_t extent = bound.shape[d].value();
    if (!label.extent) {
      label.extent = extent;
      label.source = source_of(input, bound, d);
      label.remedy = bound.remedy;
    } else if (bound.is_least ? *label.extent < extent : *label.extent != extent) {
      const std::string& remedy = *label.extent < extent ? label.remedy : bound.remedy;
      state.error(fmt::format("label '{}' has extent {} in {} but {} in {}", input.labels[d].text, *label.extent,
                              label.source, extent, source_of(input, bound, d)),
                  {input.labels[d].span, label.where},
                  fmt::format("bind data of that extent, change the declared extent, or rename one label{}{}",
                              remedy.empty() ? "" : "; ", remedy));
    }
  }
}

/// A larger extent has to be said: otherwise one wrong key would fill memory or the disk.
constexpr std::int64_t most_learnt_extent = 10'000'000;

/// What nothing else gives an extent has the largest of the least ones.
void learn_least_extents(CheckState& state, const std::vector<std::pair<const build::InputDecl*, BoundInput>>& sparse) {
  std::map<std::string, DeclaredLabel> learnt;
  for (const auto& [input, bound] : sparse) {
    for (std::size_t d = 0; d < std::min(input->labels.size(), bound.shape.size()); ++d) {
      const std::string& name = input->labels[d].text;
      if (state.labels[name].extent) continue;
      DeclaredLabel& label = learnt.try_emplace(name, state.labels[name]).first->second;
      if (label.extent.value_or(-1) >= bound.shape[d].value()) continue;
      label.extent = bound.shape[d].value();
      label.source = source_of(*input, bound, d);
      label.remedy = bound.remedy;
      if (*label.extent > most_learnt_extent)
        state.error(fmt::format("label '{}' would have extent {}, which nothing but a key of {} says", name,
                                *label.extent, label.source),
                    {input->labels[d].span},
                    fmt::format("mend that key, or say the extent in the program or with --dim {}=N", name));
    }
  }
  for (auto& [name, label] : learnt) state.labels[name] = label;
}

void check_inputs_bound(CheckState& state, const build::Program& program) {
  std::vector<std::string> names;
  std::vector<std::pair<const build::InputDecl*, BoundInput>> sparse;
  for (const build::Statement& statement : program.statements) {
    const auto* inputs = std::get_if<build::Inputs>(&statement.what);
    if (inputs == nullptr) continue;
    for (const build::InputDecl& input : inputs->inputs) {
      names.push_back(input.name.text);
      const auto bound = state.environment.inputs.find(input.name.text);
      if (bound == state.environment.inputs.end()) continue;
      if (bound->second.is_least) {
        sparse.emplace_back(&input, bound->second);
      } else {
        check_binding(state, input, bound->second);
      }
    }
  }
  learn_least_extents(state, sparse);
  for (const auto& [input, bound] : sparse) check_binding(state, *input, bound);
  for (const auto& [name, bound] : state.environment.inputs) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = did_you_mean(name, names);
    state.error(fmt::format("the program has no input '{}', which {} is bound to", name, bound.origin), {},
                !near.empty() ? near : fmt::format("its inputs are: {}", fmt::join(names, ", ")));
  }
}

void note_reads(CheckState& state, const std::string& name, const build::Expr& value) {
  for (const build::Node& node : value.nodes) {
    const auto* access = std::get_if<build::Access>(&node.op);
    if (access != nullptr) state.reads[name].push_back(access->tensor.text);
  }
}

void note_reads(CheckState& state, const build::Statement& statement) {
  if (const auto* view = std::get_if<build::ViewDefinition>(&statement.what)) {
    state.reads[view->name.text] = {view->source.text};
  } else if (const auto* definition = std::get_if<build::Definition>(&statement.what)) {
    note_reads(state, definition->name.text, definition->value);
  } else if (const auto* next = std::get_if<build::Next>(&statement.what)) {
    note_reads(state, next_name(next->value.name.text), next->value.value);
  } else if (const auto* gradient = std::get_if<build::Gradient>(&statement.what)) {
    for (const build::Name& result : gradient->results) {
      state.reads[result.text].push_back(gradient->loss.text);
      if (gradient->seed) state.reads[result.text].push_back(gradient->seed->text);
    }
  }
}

/// Everything that statements may use before it stands: dims, scalars, the labels of inputs, all names.
void collect_declarations(CheckState& state, const build::Program& program) {
  const bool has_state = std::any_of(
      program.statements.begin(), program.statements.end(),
      [](const build::Statement& statement) { return std::holds_alternative<build::State>(statement.what); });
  if (has_state)
    state.scalars.insert(
        {iteration_name, {.name = iteration_name, .value = 0, .integer_type = {}, .is_iteration = true}});
  for (const build::Statement& statement : program.statements) {
    if (const auto* dims = std::get_if<build::Dims>(&statement.what)) declare_dims(state, *dims);
    if (const auto* scalars = std::get_if<build::Scalars>(&statement.what)) declare_scalars(state, *scalars);
    for (const build::Name& name : defined_names(statement)) state.tensor_names.insert(name.text);
    note_reads(state, statement);
  }
  for (const build::Statement& statement : program.statements) {
    const auto* inputs = std::get_if<build::Inputs>(&statement.what);
    if (inputs == nullptr) continue;
    for (const build::InputDecl& input : inputs->inputs) declare_input_labels(state, input);
  }
  for (const auto& [name, scalar] : state.scalars) {
    if (const auto label = state.labels.find(name); label != state.labels.end()) {
      state.error(fmt::format("'{}' is both a label and a scalar", name), {label->second.where}, "rename one");
    }
  }
  check_inputs_bound(state, program);
}

void define_input(CheckState& state, const build::InputDecl& input, CheckedProgram& result) {
  DeclaredInput declared{input.name.text, {}, {}, input.dtype};
  TensorInfo info;
  info.dtype = input.dtype;
  info.where = input.name.span;
  Shape bound;
  for (const build::Name& label : input.labels) {
    const MaybeExtent extent = state.labels.at(label.text).extent;
    if (!extent) state.unknown_extents.insert(label.text);
    declared.labels.push_back(label.text);
    info.labels.push_back(label.text);
    declared.extents.push_back(extent ? std::optional(Extent(*extent)) : std::nullopt);
    info.extents.push_back(extent);
    bound.push_back(extent_or_open(extent));
  }
  if (input.is_complex) {
    declare_parts(state, 0);
    info.is_complex = declared.is_complex = true;
    declared.labels.push_back(display_label(parts_label(0)));
    declared.extents.emplace_back(Extent(2));
    info.extents.emplace_back(2);
    info.labels.push_back(parts_label(0));
    bound.emplace_back(2);
  }
  try {
    check_bytes(bound, input.dtype);
  } catch (const UserError& overflow) {
    state.error(fmt::format("{} is too large: {}", declaration_text(input), overflow.what()), {input.name.span});
    info.broken = true;
  }
  info.vertex = state.builder.add({input.name.text, input.dtype, bound, {}, Input{}, input.name.span});
  state.tensors.insert({input.name.text, info});
  result.inputs.push_back(std::move(declared));
}

/// A broken tensor of unknown rank: reading it any way is fine, since the error has been reported.
void check_outputs(CheckState& state, const std::vector<build::Name>& names, EinGraph& graph) {
  std::set<std::string> seen;
  for (const build::Name& name : names) {
    const TensorInfo* info = find_tensor(state, name);
    if (info == nullptr || info->broken) continue;
    if (!seen.insert(name.text).second) {
      state.error(fmt::format("'{}' is an output twice", name.text), {name.span}, "remove one");
    }
    graph.outputs.push_back(info->vertex);
  }
}

/// Without an `output` statement: every tensor that no other one reads.
void default_outputs(CheckState& state, const build::Program& program, EinGraph& graph) {
  for (const build::Statement& statement : program.statements) {
    const bool comes_in =
        std::holds_alternative<build::Inputs>(statement.what) || std::holds_alternative<build::State>(statement.what);
    if (comes_in) continue;
    for (const build::Name& name : defined_names(statement)) {
      const auto found = state.tensors.find(name.text);
      if (found == state.tensors.end() || found->second.broken || found->second.read) continue;
      graph.outputs.push_back(found->second.vertex);
    }
  }
  if (graph.outputs.empty()) {  // states are what such a program is for
    for (const CheckedState& declared : state.states) {
      if (declared.next) graph.outputs.push_back(*declared.next);
    }
  }
  if (graph.outputs.empty() && state.errors.empty()) {
    state.error("the program computes nothing", {}, first_definition);
  }
}

/// What each statement does to the program that is being checked.
struct StatementCheck {
  CheckState& state;
  CheckedProgram& result;
  std::vector<build::Name>& outputs;
  Span where;

  void operator()(const build::Dims&) const {}     // taken before all others
  void operator()(const build::Scalars&) const {}  // likewise
  void operator()(const build::Inputs& inputs) const {
    for (const build::InputDecl& input : inputs.inputs) define_input(state, input, result);
  }
  void operator()(const build::MacroDef& macro) const {
    std::set<std::string> scalars;
    for (const auto& [name, scalar] : state.scalars) scalars.insert(name);
    state.macros.define(macro, scalars, state.errors);
  }
  void operator()(const build::Definition& definition) const { check_definition(state, definition, where); }
  void operator()(const build::ViewDefinition& view) const { check_view(state, view, where); }
  void operator()(const build::Gradient& gradient) const { check_gradient(state, gradient, where); }
  void operator()(const build::State& declared) const { check_state_statement(state, declared, where); }
  void operator()(const build::Next& next) const { check_next(state, next, where); }
  void operator()(const build::Minimize& minimize) const {
    check_minimize(state, minimize, where);
    result.losses.push_back(minimize.loss.text);
  }
  void operator()(const build::Until& until) const { check_until(state, until, where); }
  void operator()(const build::Outputs& names) const {
    outputs.insert(outputs.end(), names.names.begin(), names.names.end());
  }
};

void check_statement(CheckState& state, const build::Statement& statement, CheckedProgram& result,
                     std::vector<build::Name>& outputs) {
  for (const build::Name& name : defined_names(statement)) claim_name(state, statement, name);
  std::visit(StatementCheck{state, result, outputs, statement.span}, statement.what);
}

/// --dim for a label that the program does not have.
void check_dim_overrides(CheckState& state) {
  for (const auto& [label, declared] : state.labels) state.seen_labels.insert(label);
  for (const auto& [name, extent] : state.environment.dims) {
    if (state.seen_labels.count(name) != 0) continue;
    const std::vector<std::string> known(state.seen_labels.begin(), state.seen_labels.end());
    const std::string near = did_you_mean(name, known);
    state.error(fmt::format("--dim {}={}: the program has no label '{}'", name, extent, name), {},
                !near.empty() ? near : fmt::format("its labels are: {}", fmt::join(known, ", ")));
  }
}

void sort_and_unite(std::vector<Diagnostic>& errors) {
  std::stable_sort(errors.begin(), errors.end(), [](const Diagnostic& a, const Diagnostic& b) {
    const auto place = [](const Diagnostic& d) { return d.marks.empty() ? std::string::npos : d.marks.front().begin; };
    return place(a) < place(b);
  });
  // A macro's body may be wrong in several places for one reason; its call is the one place there is to show.
  const auto same = [](const Diagnostic& a, const Diagnostic& b) {
    return a.message == b.message && a.marks == b.marks;
  };
  errors.erase(std::unique(errors.begin(), errors.end(), same), errors.end());
}

/// Makes the graph of `state`.
void check_statements(CheckState& state, const build::Program& program, bool parsed_well, CheckedProgram& result) {
  std::vector<build::Name> outputs;
  state.has_complex = has_complex_numbers(program);
  collect_declarations(state, program);
  for (const build::Statement& statement : program.statements) check_statement(state, statement, result, outputs);
  if (parsed_well) check_dim_overrides(state);
  EinGraph& graph = state.builder.graph();
  check_outputs(state, outputs, graph);
  if (outputs.empty()) default_outputs(state, program, graph);
  state.builder.leave_out_stops(state.tensor_names);
  for (const auto& [name, tensor] : state.tensors) {
    if (tensor.is_complex) graph.complex.insert(name);
  }
  if (state.errors.empty()) result.initial = take_steps(state, graph);
}

}  // namespace

std::string declaration_of(const DeclaredInput& input) {
  const auto last = input.labels.end() - (input.is_complex ? 1 : 0);
  return fmt::format("input {}[{}] : {}", input.name, fmt::join(input.labels.begin(), last, ","),
                     input.is_complex ? name_of_complex(input.dtype) : name_of(input.dtype));
}

void checking::check_bytes(Shape bound, DType dtype) {
  std::replace(bound.begin(), bound.end(), Extent::open(), Extent(1));
  checked_multiply(element_count(bound), static_cast<std::int64_t>(size_of(dtype)));
}

namespace {

/// What is recorded so far, of all passes together.
PassRecord all_recorded(const CheckState& state) {
  PassRecord all;
  for (const PassRecord& record : state.passes) {
    all.vertices_after += record.vertices_after;
    all.seconds += record.seconds;
  }
  return all;
}

}  // namespace

void checking::run_pass(CheckState& state, std::string_view pass, const std::string& change,
                        const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  const std::size_t vertices = state.builder.graph().vertices.size();
  const PassRecord before = all_recorded(state);
  run();
  const PassRecord inside = all_recorded(state);
  const std::size_t made = state.builder.graph().vertices.size() - vertices;
  const std::size_t own = made - (inside.vertices_after - before.vertices_after);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto record =
      std::find_if(state.passes.begin(), state.passes.end(), [&](const PassRecord& each) { return each.pass == pass; });
  record->vertices_after += own;
  record->seconds += seconds - (inside.seconds - before.seconds);
  record->changes.push_back(fmt::format("{}: {}", change, counted(own, "vertex", "vertices")));
}

std::vector<PassRecord> checking::records_of(const CheckState& state, std::size_t vertices) {
  std::vector<PassRecord> records = state.passes;
  std::size_t count = vertices - all_recorded(state).vertices_after;
  for (PassRecord& record : records) {
    record.vertices_before = count;
    record.vertices_after = count += record.vertices_after;
  }
  return records;
}

CheckedProgram check(const build::Program& program, const SourceText& source, const Environment& environment,
                     std::vector<Diagnostic> errors) {
  CheckState state(environment, program, errors);
  const bool parsed_well = errors.empty();
  if (program.statements.empty()) {  // whatever options say about it
    if (parsed_well)
      errors.push_back(
          {fmt::format("the program computes nothing: {} has no statement", source.name()), {}, first_definition});
    throw ProgramError(std::move(errors), source);
  }
  CheckedProgram result;
  check_statements(state, program, parsed_well, result);
  EinGraph& graph = state.builder.graph();
  result.passes = records_of(state, graph.vertices.size());
  if (!errors.empty()) {
    const bool of_nothing = errors.size() == state.gradients_of_nothing;
    sort_and_unite(errors);
    if (of_nothing) throw NoGradient(std::move(errors), source);
    throw ProgramError(std::move(errors), source);
  }
  for (auto& [name, scalar] : state.scalars) {
    graph.scalars.push_back(scalar);
    if (!scalar.is_iteration) result.scalars.push_back(name);
  }
  if (result.initial) result.initial->scalars = graph.scalars;
  for (const Vertex& vertex : graph.vertices) result.tensors.push_back(vertex.name);
  result.unknown_extents.assign(state.unknown_extents.begin(), state.unknown_extents.end());
  if (result.unknown_extents.empty()) {
    verify(graph);
    result.graph = std::move(graph);
    if (result.initial) verify(*result.initial);
  } else {
    result.initial.reset();
  }
  return result;
}

std::optional<EinGraph> check_kernel(const build::Program& program, std::vector<Diagnostic>& errors) {
  const Environment arrays;
  std::vector<Diagnostic> found;
  CheckState state(arrays, program, found);
  state.arrays_give_extents = true;
  CheckedProgram result;
  check_statements(state, program, true, result);
  errors.insert(errors.end(), found.begin(), found.end());
  if (!found.empty()) return std::nullopt;
  verify(state.builder.graph());
  return std::move(state.builder.graph());
}

CheckedProgram parse_and_check(const SourceText& source, const Environment& environment) {
  std::vector<Diagnostic> errors;
  const build::Program program = parse(source, errors);
  return check(program, source, environment, std::move(errors));
}

}  // namespace einrel
