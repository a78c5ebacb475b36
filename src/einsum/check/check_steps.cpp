#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "einsum/check/check_state.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/passes/complex.h"

namespace einrel::checking {
namespace {

/// A state that what `vertex` is computed from reads, if it does.
const CheckedState* state_behind(const CheckState& state, const EinGraph& graph, VertexId vertex) {
  std::vector<bool> is_needed(vertex.index + 1, false);
  is_needed[vertex.index] = true;
  for (std::size_t v = vertex.index + 1; v-- > 0;) {
    if (!is_needed[v]) continue;
    for (const VertexId input : graph.vertices[v].inputs) is_needed[input.index] = true;
    if (!is_input(graph.vertices[v])) continue;
    for (const CheckedState& declared : state.states) {
      if (declared.name == graph.vertices[v].name) return &declared;
    }
  }
  return nullptr;
}

/// Whether a value has the shape and the type of the state that it is the next value of.
void check_fits(CheckState& state, const build::Definition& next, const TensorInfo& value, const TensorInfo& now) {
  if (value.broken || now.broken) return;
  const std::string& name = next.name.text;
  if (value.is_complex != now.is_complex) {
    state.error(fmt::format("'{}' is {}, but its next value is {}", name, now.is_complex ? "complex" : "real",
                            value.is_complex ? "complex" : "real"),
                {next.name.span, now.where}, "a state keeps its type; convert one of them: complex(x, 0), real(z)");
    return;
  }
  if (value.extents.size() != now.extents.size()) {
    state.error(fmt::format("the next value of '{}' has {}, but '{}' has {}", name,
                            counted(value.extents.size(), "dimension"), name, now.extents.size()),
                {next.name.span, now.where}, "a state keeps its shape");
    return;
  }
  for (std::size_t d = 0; d < now.extents.size(); ++d) {
    if (!value.extents[d] || !now.extents[d] || value.extents[d] == now.extents[d]) continue;
    state.error(fmt::format("dimension {} of '{}' is {} long, but {} in its next value ('{}')", d + 1, name,
                            *now.extents[d], *value.extents[d], next.labels[d].text),
                {next.labels[d].span, now.where}, "a state keeps its shape");
  }
  if (value.dtype == now.dtype) return;
  state.error(fmt::format("'{}' is {}, but its next value is {}", name, name_of(now.dtype), name_of(value.dtype)),
              {next.name.span, now.where},
              fmt::format("a state keeps its type; convert one of them, for example {}(...)", name_of(now.dtype)));
}

}  // namespace

CheckedState* find_state(CheckState& state, const std::string& name) {
  const auto found = std::find_if(state.states.begin(), state.states.end(),
                                  [&](const CheckedState& declared) { return declared.name == name; });
  return found == state.states.end() ? nullptr : &*found;
}

void check_state_statement(CheckState& state, const build::State& declared, Span where) {
  const build::Name& name = declared.initial.name;
  if (name.text == iteration_name) {
    state.error(fmt::format("'{}' is the number of steps that a program with state has done", name.text), {name.span},
                "give the state another name");
  }
  state.current = name.text;  // whose stream random numbers are of
  build::Definition initial = declared.initial;
  initial.name.text = initial_name(name.text);
  TensorInfo info = checked_definition(state, initial, where);
  const VertexId first = info.vertex;
  if (!info.broken) {
    if (const CheckedState* const read = state_behind(state, state.builder.graph(), first)) {
      state.error(fmt::format("the initial value of '{}' depends on the state '{}'", name.text, read->name),
                  {where, read->where}, "compute it from inputs, scalars and random numbers");
    }
  }
  for (const build::Name& label : declared.initial.labels) info.labels.push_back(label.text);
  if (info.is_complex) info.labels.push_back(parts_label(0));
  declare_state(state, name, std::move(info), where);
}

void declare_state(CheckState& state, const build::Name& name, TensorInfo initial, Span where) {
  TensorInfo info = std::move(initial);
  const VertexId first = info.vertex;
  Shape bound;
  for (const MaybeExtent& extent : info.extents) bound.push_back(extent_or_open(extent));
  info.where = name.span;
  info.read = false;
  info.vertex = state.builder.add({name.text, info.dtype, std::move(bound), {}, Input{}, where});
  state.states.push_back({name.text, name.span, info.vertex, first, std::nullopt});
  state.tensors.insert({name.text, std::move(info)});
}

void check_next(CheckState& state, const build::Next& next, Span where) {
  const build::Name& name = next.value.name;
  build::Definition value = next.value;
  value.name.text = next_name(name.text);
  state.current = value.name.text;
  TensorInfo info = checked_definition(state, value, where);
  CheckedState* const declared = find_state(state, name.text);
  if (declared != nullptr) {
    check_fits(state, next.value, info, state.tensors.at(name.text));
    if (!info.broken && !declared->next) declared->next = info.vertex;
  } else if (!state.is_suspect(name.text)) {
    const std::string near = state.suggest(name.text, [&] {
      std::vector<std::string> names;
      for (const CheckedState& known : state.states) names.push_back(known.name);
      return names;
    });
    state.error(fmt::format("'{}' is no state", name.text), {name.span},
                !near.empty() ? near : fmt::format("say first what it begins with: state {}[...] = ...", name.text));
  }
  state.tensors.insert({value.name.text, std::move(info)});
}

void check_until(CheckState& state, const build::Until& until, Span where) {
  state.current = until_name;
  TensorInfo info = checked_definition(state, {{until_name, where}, {}, until.condition}, where);
  if (!info.broken && info.dtype != DType::boolean) {
    state.error(fmt::format("`until` takes a condition, but this is {}", name_of(info.dtype)), {where},
                "compare it: until change[] < 1e-6");
  }
  if (state.states.empty())
    state.error("`until` ends the steps of a program, but this one has no state", {where},
                "say before it what goes on from step to step: state X[i] = ...");
  if (!info.broken) state.until = info.vertex;
  info.read = true;  // by the steps
  state.tensors.insert({until_name, std::move(info)});
}

std::optional<EinGraph> take_steps(const CheckState& state, EinGraph& graph) {
  if (state.states.empty()) return std::nullopt;
  const auto carried = [&](VertexId vertex) {
    const auto known = std::find(graph.outputs.begin(), graph.outputs.end(), vertex);
    const auto position = static_cast<std::size_t>(known - graph.outputs.begin());
    if (known == graph.outputs.end()) {
      graph.outputs.push_back(vertex);
      ++graph.steps.feedback;
    }
    return position;
  };
  EinGraph initial = graph;
  initial.outputs.clear();
  for (const CheckedState& declared : state.states) {
    State& now = graph.steps.states.emplace_back(State{declared.now, std::nullopt});
    if (declared.next) now.next = carried(*declared.next);
    initial.steps.states.push_back({declared.now, initial.outputs.size()});
    initial.outputs.push_back(declared.initial);
  }
  initial.steps.feedback = initial.outputs.size();
  if (state.until) graph.steps.until = carried(*state.until);
  return needed_for_outputs(initial);
}

}  // namespace einrel::checking
