#include <fmt/format.h>

#include "einsum/check/check_state.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_key.h"

namespace einrel::checking {
namespace {

/// Everything that determines the values of a vertex, without names.
std::string key_of(const Vertex& vertex) {
  ByteKey key;
  put_computation(key, vertex);
  for (const VertexId input : vertex.inputs) key.put(input.index);
  return key.take();
}

}  // namespace

VertexId GraphBuilder::add(Vertex vertex) {
  const VertexId id{graph_.vertices.size()};
  if (!is_input(vertex)) by_key_.insert({key_of(vertex), id});  // inputs are alike, and not the same
  by_name_.insert({vertex.name, id});
  graph_.vertices.push_back(std::move(vertex));
  return id;
}

VertexId GraphBuilder::find_or_add(Vertex vertex, const std::string& base, const std::set<std::string>& taken) {
  const VertexId next{graph_.vertices.size()};
  const auto [found, is_new] = by_key_.insert({key_of(vertex), next});
  if (!is_new) return found->second;
  vertex.name = base;
  while (taken.count(vertex.name) != 0 || !by_name_.insert({vertex.name, next}).second)
    vertex.name = fmt::format("{}_{}", base, ++last_number_[base]);
  graph_.vertices.push_back(std::move(vertex));
  return next;
}

void GraphBuilder::leave_out_stops(const std::set<std::string>& named) {
  const auto is_stop = [](const ScalarStep& step) {
    const auto* const unary = std::get_if<ApplyUnary>(&step.op);
    return unary != nullptr && unary->function == UnaryFunction::stop_gradient;
  };
  std::size_t left_out = 0;
  for (Vertex& vertex : graph_.vertices) {
    if (EinSum* const einsum = einsum_of(vertex)) left_out += std::erase_if(einsum->body.steps, is_stop);
  }
  if (left_out == 0) return;
  std::unordered_map<std::string, VertexId> first;
  std::vector<VertexId> read_instead;
  for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
    Vertex& vertex = graph_.vertices[v];
    for (VertexId& input : vertex.inputs) input = read_instead[input.index];
    VertexId read{v};
    if (!is_input(vertex)) read = first.insert({key_of(vertex), read}).first->second;
    read_instead.push_back(named.count(vertex.name) != 0 ? VertexId{v} : read);
  }
}

std::optional<VertexId> GraphBuilder::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace einrel::checking
