#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "einsum/check/check_state.h"
#include "einsum/front/text/other_notations.h"

namespace einrel::checking {
namespace {

/// How the statement being checked comes to need itself through `first`, which it reads; empty if it does not.
std::vector<std::string> find_cycle(const CheckState& state, const std::string& first) {
  std::map<std::string, std::string> reached_from{{first, state.current}};
  std::vector<std::string> queue{first};
  while (!queue.empty()) {
    const std::string name = queue.back();
    queue.pop_back();
    if (name == state.current) {
      std::vector<std::string> path{name};
      std::string at = name;
      do {
        at = reached_from.at(at);
        path.push_back(at);
      } while (at != state.current);
      std::reverse(path.begin(), path.end());
      return path;
    }
    const auto reads = state.reads.find(name);
    if (reads == state.reads.end()) continue;
    for (const std::string& next : reads->second) {
      if (reached_from.insert({next, name}).second) queue.push_back(next);
    }
  }
  return {};
}

}  // namespace

void check_distinct(CheckState& state, const std::vector<build::Name>& labels) {
  std::map<std::string, Span> seen;
  for (const build::Name& label : labels) {
    const auto [first, is_new] = seen.insert({label.text, label.span});
    if (!is_new) {
      state.error(fmt::format("label '{}' stands twice", display_label(label.text)), {label.span, first->second},
                  "name each label once");
    }
  }
}

namespace {

/// A vertex as a tensor that can be read.
TensorInfo* find_vertex(CheckState& state, const std::string& name) {
  const std::optional<VertexId> id = state.builder.find(name);
  invariant(id.has_value(), "what gradients read has been computed");
  const Vertex& vertex = state.builder.graph()[*id];
  TensorInfo info{*id, {}, {}, vertex.dtype, vertex.where};
  for (const Extent extent : vertex.bound) info.extents.emplace_back(extent.value());
  return &state.made_reads.insert({name, std::move(info)}).first->second;
}

}  // namespace

TensorInfo* find_tensor(CheckState& state, const build::Name& name) {
  if (state.made != nullptr) return find_vertex(state, name.text);
  if (const auto found = state.tensors.find(name.text); found != state.tensors.end()) {
    found->second.read = true;
    return &found->second;
  }
  if (state.is_suspect(name.text)) return nullptr;
  for (const CheckedState& declared : state.states) {
    if (initial_name(declared.name) != name.text) continue;
    state.error(fmt::format("'{}' is what the state '{}' begins with, which is computed before the first step",
                            name.text, declared.name),
                {name.span, declared.where}, "give that a tensor of its own, and read it here and there");
    return nullptr;
  }
  if (state.tensor_names.count(name.text) != 0) {
    const std::vector<std::string> cycle = find_cycle(state, name.text);
    state.error(
        cycle.empty() ? fmt::format("'{}' is read before its definition", name.text)
                      : fmt::format("cyclic definition: {}", fmt::join(cycle, " needs ")),
        {name.span},
        cycle.empty() ? "move its definition up" : "a tensor cannot depend on itself; give new values another name");
    return nullptr;
  }
  const std::string near = state.suggest(
      name.text, [&] { return std::vector<std::string>(state.tensor_names.begin(), state.tensor_names.end()); });
  const bool macro = state.macros.contains(name.text);
  const bool scalar = state.scalars.count(name.text) != 0;
  state.error(fmt::format("unknown tensor '{}'", name.text), {name.span},
              scalar         ? fmt::format("'{0}' is a scalar: write {0}, without brackets", name.text)
              : macro        ? fmt::format("'{}' is a macro: give it arguments in parentheses", name.text)
              : near.empty() ? fmt::format("declare it: input {}[...], or define it first", name.text)
                             : near);
  return nullptr;
}

void report_unknown_name(CheckState& state, const std::string& name, Span span, const std::vector<std::string>& left) {
  if (state.is_suspect(name)) return;
  if (state.tensor_names.count(name) != 0) {
    state.error(fmt::format("tensor '{}' is read without its labels", name), {span},
                fmt::format("write {0}[...] with one label per dimension, {0}[] for a single number", name));
    return;
  }
  if (state.labels.count(name) != 0) {
    state.error(fmt::format("label '{}' has no value here: it is neither on the left nor reduced", display_label(name)),
                {span}, fmt::format("add it to the left side, or reduce it by name: sum[{}] ...", display_label(name)));
    return;
  }
  std::string near = other_notations::help_for_name(name);
  if (name == iteration_name) near = "it counts the steps of a program with state: state X[i] = ...";
  if (near.empty()) {
    near = state.suggest(name, [&] {
      std::vector<std::string> known(state.tensor_names.begin(), state.tensor_names.end());
      for (const auto& [scalar, declaration] : state.scalars) known.push_back(scalar);
      known.insert(known.end(), left.begin(), left.end());
      return known;
    });
  }
  state.error(fmt::format("unknown name '{}'", display_label(name)), {span},
              !near.empty() ? near : "a bare name is a scalar or a label's value; tensors carry labels: X[i,j]");
}

bool check_pad(CheckState& state, const build::Access& access, DType dtype, Span span) {
  if (!access.pad || is_float(dtype)) return true;
  const double limit = dtype == DType::i32 ? 0x1p31 : dtype == DType::i64 ? 0x1p63 : 2;
  const double least = dtype == DType::boolean ? 0 : -limit;
  if (*access.pad == std::floor(*access.pad) && *access.pad >= least && *access.pad < limit) return true;
  state.error(
      fmt::format("the pad value {} is no {}, which '{}' holds", *access.pad, name_of(dtype), access.tensor.text),
      {span}, "pad with a value of that type");
  return false;
}

}  // namespace einrel::checking
