#include "einsum/graph/vertex_splitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace einrel {

LabelSet VertexSplitter::labels_of(const ScalarExpr& expr) const {
  LabelSet labels(einsum_.labels.size(), false);
  for (const ScalarStep& step : expr.steps) {
    if (const auto label = label_read(step)) labels[*label] = true;
    if (const auto read = operand_read(step)) {
      for (const Index& index : operand(*read).second.indices) {
        for (const IndexTerm& term : index.terms) labels[term.label] = true;
      }
    }
  }
  return labels;
}

LabelSet VertexSplitter::output_labels() const {
  LabelSet labels(einsum_.labels.size(), false);
  for (const std::size_t label : einsum_.output) labels[label] = true;
  return labels;
}

double VertexSplitter::elements(const LabelSet& labels) const {
  double elements = 1;
  for (std::size_t l = 0; l < labels.size(); ++l) {
    if (labels[l]) elements *= static_cast<double>(einsum_.labels[l].extent.value());
  }
  return elements;
}

bool VertexSplitter::has_no_bindings() const {
  return std::any_of(einsum_.labels.begin(), einsum_.labels.end(),
                     [](const Label& label) { return label.extent == Extent(0); });
}

std::pair<VertexId, Access> VertexSplitter::operand(std::size_t position) const {
  if (position < einsum_.operands.size()) return {vertex_.inputs[position], einsum_.operands[position]};
  return extra_operands_[position - einsum_.operands.size()];
}

bool VertexSplitter::keep_what_fits(double most_bytes) {
  const bool fits = std::all_of(graph_.vertices.begin() + static_cast<std::ptrdiff_t>(first_), graph_.vertices.end(),
                                [&](const Vertex& vertex) {
                                  double bytes = static_cast<double>(size_of(vertex.dtype));
                                  for (const Extent extent : vertex.bound) bytes *= static_cast<double>(extent.value());
                                  return bytes < 0x1p62 && bytes <= most_bytes;
                                });
  if (!fits) graph_.vertices.resize(first_);
  return fits;
}

BodyPart VertexSplitter::intermediate(const ScalarExpr& body, const LabelSet& all, const LabelSet& needed,
                                      Reducer reducer, std::optional<DType> stored) {
  LabelSet labels(all.size(), false);
  for (std::size_t l = 0; l < all.size(); ++l) labels[l] = all[l] && needed[l];
  return intermediate(body, all, order_of(body, labels), reducer, stored);
}

BodyPart VertexSplitter::intermediate(const ScalarExpr& body, const LabelSet& all,
                                      const std::vector<std::size_t>& order, Reducer reducer,
                                      std::optional<DType> stored) {
  Vertex vertex;
  vertex.name = unused_name();
  vertex.dtype = stored.value_or(body.type());
  const VertexId id = add_vertex(body, all, order, reducer, std::move(vertex));
  Access access;
  for (const std::size_t label : order) access.indices.push_back({0, {{1, label}}});
  return read(id, body.type(), std::move(access));
}

BodyPart VertexSplitter::read(VertexId id, DType type, Access access) {
  extra_operands_.emplace_back(id, std::move(access));
  BodyPart part{{{{type, OperandValue{einsum_.operands.size() + extra_operands_.size() - 1}}}}, {}};
  part.labels = labels_of(part.expr);
  return part;
}

BodyPart VertexSplitter::mapped_operand(const ScalarExpr& body, std::size_t position, std::optional<double> pad) {
  auto [input, access] = operand(position);
  Vertex vertex;
  vertex.name = unused_name();
  vertex.dtype = body.type();
  vertex.bound = graph_[input].bound;
  vertex.inputs = {input};
  vertex.where = vertex_.where;
  EinSum einsum;
  einsum.operands.emplace_back();
  std::set<std::string> taken;
  for (std::size_t d = 0; d < vertex.bound.size(); ++d) {
    const std::vector<IndexTerm>& terms = access.indices[d].terms;
    std::string name = terms.size() == 1 ? einsum_.labels[terms[0].label].name : fmt::format("i{}", d);
    while (!taken.insert(name).second) name += fmt::format("_{}", d);
    einsum.output.push_back(d);
    einsum.labels.push_back({std::move(name), vertex.bound[d]});
    einsum.operands[0].indices.push_back({0, {{1, d}}});
  }
  einsum.body = body;
  map_operands(einsum.body, [](std::size_t) { return std::size_t{0}; });
  vertex.op = std::move(einsum);
  graph_.vertices.push_back(std::move(vertex));
  access.pad = pad;
  return read(VertexId{graph_.vertices.size() - 1}, body.type(), std::move(access));
}

void VertexSplitter::finish(const ScalarExpr& body, const LabelSet& all, std::optional<Reducer> reducer) {
  Vertex vertex;
  vertex.name = vertex_.name;
  vertex.dtype = vertex_.dtype;
  add_vertex(body, all, einsum_.output, reducer, std::move(vertex));
}

/// The labels of each operand that a body reads, as they lie, and how many of these operands have each label.
VertexSplitter::OperandLabels VertexSplitter::labels_of_operands(const ScalarExpr& body, std::size_t count) const {
  OperandLabels found{{}, std::vector<std::size_t>(count, 0)};
  for (const ScalarStep& step : body.steps) {
    const std::optional<std::size_t> read = operand_read(step);
    if (!read) continue;
    std::vector<std::size_t>& list = found.lists.emplace_back();
    const Access access = operand(*read).second;
    for (const Index& index : access.indices) {
      for (const IndexTerm& term : index.terms) {
        if (std::find(list.begin(), list.end(), term.label) != list.end()) continue;
        list.push_back(term.label);
        ++found.holders[term.label];
      }
    }
  }
  return found;
}

/// `labels` as they lie side by side in the operands of a body: first those that several operands have, then those of
/// each one. The operand whose innermost label stays comes last, so that whole stretches of it meet in the result.
/// Where nothing is summed and one operand has all labels, they lie as in that one.
std::vector<std::size_t> VertexSplitter::order_of(const ScalarExpr& body, const LabelSet& labels) const {
  OperandLabels of_operands = labels_of_operands(body, labels.size());
  auto& [lists, holders] = of_operands;
  const auto stays_innermost = [&holders = holders, &labels](const std::vector<std::size_t>& list) {
    return !list.empty() && labels[list.back()] && holders[list.back()] == 1;
  };
  std::stable_partition(lists.begin(), lists.end(), [&](const auto& list) { return !stays_innermost(list); });
  const auto kept = static_cast<std::size_t>(std::count(labels.begin(), labels.end(), true));
  const auto count_of = [&holders = holders, &labels](bool stays) {
    std::size_t count = 0;
    for (std::size_t l = 0; l < labels.size(); ++l) count += holders[l] > 0 && labels[l] == stays ? 1U : 0U;
    return count;
  };
  const auto whole = std::find_if(lists.begin(), lists.end(), [&](const auto& list) { return list.size() == kept; });
  if (count_of(false) == 0 && count_of(true) == kept && whole != lists.end()) return *whole;
  std::vector<std::size_t> order;
  LabelSet left = labels;
  const auto take = [&](std::size_t label) {
    if (left[label]) order.push_back(label);
    left[label] = false;
  };
  for (const bool shared : {true, false}) {
    for (const std::vector<std::size_t>& list : lists) {
      for (const std::size_t label : list) {
        if ((holders[label] > 1) == shared) take(label);
      }
    }
  }
  for (std::size_t l = 0; l < labels.size(); ++l) take(l);
  return order;
}

std::string VertexSplitter::unused_name() {
  std::string name;
  do {
    name = fmt::format("{}_{}", vertex_.name, ++last_number_);
  } while (!names_.insert(name).second);
  return name;
}

/// Appends the vertex with labels `output` that reduces `body` over the rest of `all`.
VertexId VertexSplitter::add_vertex(const ScalarExpr& body, const LabelSet& all, const std::vector<std::size_t>& output,
                                    std::optional<Reducer> reducer, Vertex vertex) {
  EinSum einsum;
  std::map<std::size_t, std::size_t> position;
  const auto add_label = [&](std::size_t label, std::vector<std::size_t>& list) {
    position[label] = einsum.labels.size();
    list.push_back(einsum.labels.size());
    einsum.labels.push_back(einsum_.labels[label]);
  };
  vertex.where = vertex_.where;
  for (const std::size_t label : output) {
    add_label(label, einsum.output);
    vertex.bound.push_back(einsum_.labels[label].extent);
  }
  for (std::size_t l = 0; l < all.size(); ++l) {
    if (all[l] && position.count(l) == 0) add_label(l, einsum.reduced);
  }
  if (!einsum.reduced.empty()) einsum.reducer = reducer;
  std::map<std::size_t, std::size_t> moved;
  einsum.body = body;
  const auto own_label = [&](std::size_t label) { return position.at(label); };
  map_labels(einsum.body, own_label);
  map_operands(einsum.body, [&](std::size_t read) {
    if (moved.count(read) == 0) {
      auto [input, access] = operand(read);
      map_labels(access, own_label);
      moved[read] = einsum.operands.size();
      einsum.operands.push_back(std::move(access));
      vertex.inputs.push_back(input);
    }
    return moved.at(read);
  });
  vertex.op = std::move(einsum);
  graph_.vertices.push_back(std::move(vertex));
  return VertexId{graph_.vertices.size() - 1};
}

}  // namespace einrel
