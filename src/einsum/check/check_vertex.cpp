#include "einsum/check/check_vertex.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace einrel::checking {
namespace {

/// The operand of `einsum` that reads `pooled`; the same read twice is one operand.
std::size_t add_operand(Vertex& vertex, EinSum& einsum, const PooledAccess& pooled,
                        const std::map<std::size_t, std::size_t>& position) {
  Access access = pooled.access;
  map_labels(access, [&](std::size_t label) { return position.at(label); });
  // Statements with very many operands would make this search quadratic; they need no sharing.
  const std::size_t searched = std::min<std::size_t>(einsum.operands.size(), 64);
  for (std::size_t i = 0; i < searched; ++i) {
    if (vertex.inputs[i] == pooled.vertex && einsum.operands[i] == access) return i;
  }
  vertex.inputs.push_back(pooled.vertex);
  einsum.operands.push_back(std::move(access));
  return einsum.operands.size() - 1;
}

}  // namespace

void make_names_unique(std::vector<Label>& labels) {
  std::set<std::string> names;
  for (Label& label : labels) {
    const std::string base = label.name;
    for (int n = 2; !names.insert(label.name).second; ++n) label.name = fmt::format("{}{}", base, n);
  }
}

std::size_t VertexMaker::add(PooledAccess read) {
  pool_.push_back(std::move(read));
  return pool_.size() - 1;
}

std::optional<std::size_t> VertexMaker::find_loose(const std::string& name) const {
  const auto known = loose_.find(name);
  return known == loose_.end() ? std::nullopt : std::optional(known->second);
}

std::vector<std::size_t> VertexMaker::labels_of(const ScalarExpr& body) const {
  std::set<std::size_t> labels;
  for (const ScalarStep& step : body.steps) {
    if (const auto label = label_read(step)) labels.insert(*label);
    if (const auto operand = operand_read(step)) {
      for (const Index& index : pool_[*operand].access.indices) {
        for (const IndexTerm& term : index.terms) labels.insert(term.label);
      }
    }
  }
  return {labels.begin(), labels.end()};
}

Vertex VertexMaker::make(ScalarExpr body, const std::vector<std::size_t>& output,
                         const std::vector<std::size_t>& reduced, std::optional<Reducer> reducer, DType dtype) {
  EinSum einsum;
  std::map<std::size_t, std::size_t> position;
  for (const auto* labels : {&output, &reduced}) {
    for (const std::size_t label : *labels) {
      position[label] = einsum.labels.size();
      (labels == &output ? einsum.output : einsum.reduced).push_back(einsum.labels.size());
      einsum.labels.push_back({display_label(scope_.name(label)), extent_or_open(scope_.extent(label))});
    }
  }
  for (const auto& [name, label] : loose_) {  // reported already; here they only must not be missing
    position.insert({label, einsum.labels.size()});
    einsum.labels.push_back({name, Extent::open()});
  }
  Vertex vertex;
  vertex.dtype = dtype;
  vertex.where = where_;
  map_labels(body, [&](std::size_t label) { return position.at(label); });
  map_operands(body, [&](std::size_t operand) { return add_operand(vertex, einsum, pool_[operand], position); });
  einsum.body = std::move(body);
  einsum.reducer = reducer;
  for (const std::size_t label : output) vertex.bound.push_back(extent_or_open(scope_.extent(label)));
  make_names_unique(einsum.labels);
  check_size(vertex);
  vertex.op = std::move(einsum);
  return vertex;
}

void VertexMaker::check_size(const Vertex& vertex) {
  try {
    check_bytes(vertex.bound, vertex.dtype);
  } catch (const UserError& overflow) {
    state_.error(fmt::format("'{}' is too large: {}", name_, overflow.what()), {where_}, "use smaller extents");
  }
}

VertexId VertexMaker::find_or_add(Vertex vertex, const std::string& suffix) {
  return state_.builder.find_or_add(std::move(vertex), name_ + suffix, state_.tensor_names);
}

std::size_t VertexMaker::add_tensor(const ScalarExpr& body, DType dtype, const std::string& suffix) {
  const std::vector<std::size_t> labels = labels_of(body);
  PooledAccess read{find_or_add(make(body, labels, {}, std::nullopt, dtype), suffix), dtype, {}};
  for (const std::size_t label : labels) read.access.indices.push_back({0, {{1, label}}});
  return add(std::move(read));
}

}  // namespace einrel::checking
