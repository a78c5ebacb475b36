#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "tra/from_einsum.h"
#include "tra/lowering.h"

namespace einrel {
namespace {

/// More kernel calls per vertex than this are not made by default: a plan should stay one that people can look at.
constexpr std::int64_t most_default_calls = 1024;

std::string index_text(const Index& index, const std::vector<Label>& labels) {
  std::string text;
  for (const IndexTerm& term : index.terms) {
    const std::string sign = term.coefficient < 0 ? "-" : text.empty() ? "" : "+";
    const std::int64_t size = std::abs(term.coefficient);
    text += sign + (size == 1 ? "" : fmt::format("{}*", size)) + labels[term.label].name;
  }
  if (text.empty()) return std::to_string(index.offset);
  return index.offset == 0 ? text : fmt::format("{}{:+}", text, index.offset);
}

std::string access_text(const std::string& tensor, const Access& access, const std::vector<Label>& labels) {
  std::vector<std::string> indices;
  for (const Index& index : access.indices) indices.push_back(index_text(index, labels));
  return fmt::format("{}[{}]", tensor, fmt::join(indices, ","));
}

std::vector<std::string> reasons(const Input&, const Vertex& vertex, const EinGraph&) {
  return std::vector<std::string>(vertex.bound.size());
}

std::vector<std::string> reasons(const EinSum& einsum, const Vertex& vertex, const EinGraph& graph) {
  std::vector<std::string> result(einsum.labels.size());
  for (std::size_t i = 0; i < einsum.operands.size(); ++i) {
    const Vertex& tensor = graph[vertex.inputs[i]];
    const Access& access = einsum.operands[i];
    for (std::size_t d = 0; d < access.indices.size(); ++d) {
      const auto plain = lowering::plain_label(access.indices[d]);
      const bool is_whole = plain && einsum.labels[*plain].extent == tensor.bound[d];
      for (const IndexTerm& term : access.indices[d].terms) {
        if (is_whole || !result[term.label].empty()) continue;
        const std::string text = access_text(tensor.name, access, einsum.labels);
        result[term.label] =
            plain ? fmt::format("its extent is not that of dimension {} of {}, which it is in {}", d, tensor.name, text)
                  : fmt::format("it is part of the window index {} of {}", index_text(access.indices[d], einsum.labels),
                                text);
      }
    }
  }
  return result;
}

std::vector<std::string> reasons(const View& view, const Vertex&, const EinGraph&) {
  std::vector<std::string> result(view.labels.size());
  for (const auto* groups : {&view.from, &view.to}) {
    for (const std::vector<std::size_t>& group : *groups) {
      std::vector<std::string> names;
      for (const std::size_t label : group) names.push_back(view.labels[label].name);
      for (std::size_t i = 1; i < group.size(); ++i)
        result[group[i]] = fmt::format("it is not the first label of the group ({})", fmt::join(names, " "));
    }
  }
  const bool is_empty =
      std::any_of(view.labels.begin(), view.labels.end(), [](const Label& label) { return label.extent == Extent(0); });
  if (is_empty) result.assign(view.labels.size(), "the tensor has no elements");
  return result;
}

}  // namespace

Shape label_extents(const Vertex& vertex) {
  struct Extents {
    const Vertex& vertex;
    Shape operator()(const Input&) const { return vertex.bound; }
    Shape operator()(const EinSum& einsum) const { return of(einsum.labels); }
    Shape operator()(const View& view) const { return of(view.labels); }
    static Shape of(const std::vector<Label>& labels) {
      Shape extents;
      for (const Label& label : labels) extents.push_back(label.extent);
      return extents;
    }
  };
  return std::visit(Extents{vertex}, vertex.op);
}

std::vector<std::string> cannot_be_cut(const Vertex& vertex, const EinGraph& graph) {
  return std::visit([&](const auto& op) { return reasons(op, vertex, graph); }, vertex.op);
}

GraphCuts default_cuts(const EinGraph& graph, std::int64_t sites) {
  GraphCuts cuts;
  for (const Vertex& vertex : graph.vertices) {
    const Shape extents = label_extents(vertex);
    const std::vector<std::string> reason = cannot_be_cut(vertex, graph);
    std::vector<std::size_t> order(extents.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto last = std::remove_if(order.begin(), order.end(), [&](std::size_t l) { return !reason[l].empty(); });
    order.erase(last, order.end());
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return extents[a] > extents[b]; });
    std::vector<std::int64_t>& parts = cuts.parts.emplace_back(extents.size(), 1);
    std::int64_t calls = 1;
    for (const std::size_t l : order) {
      const std::int64_t most = std::max<std::int64_t>(1, std::min(sites, most_default_calls / calls));
      parts[l] = std::clamp<std::int64_t>(extents[l].value(), 1, most);
      calls *= parts[l];
    }
  }
  return cuts;
}

namespace lowering {

void check_cuts(const EinGraph& graph, const GraphCuts& cuts) {
  invariant(cuts.parts.size() == graph.vertices.size(), "every vertex has a partition vector");
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    const Shape extents = label_extents(vertex);
    const std::vector<std::int64_t>& parts = cuts.parts[v];
    invariant(parts.size() == extents.size(), "a partition vector has one entry per label");
    const std::vector<std::string> reason = cannot_be_cut(vertex, graph);
    for (std::size_t l = 0; l < parts.size(); ++l) {
      const std::int64_t most = reason[l].empty() ? std::max<std::int64_t>(1, extents[l].value()) : 1;
      if (parts[l] >= 1 && parts[l] <= most) continue;
      std::string what = fmt::format("dimension {}", l);
      if (const auto* einsum = std::get_if<EinSum>(&vertex.op))
        what = fmt::format("label '{}'", einsum->labels[l].name);
      if (const auto* view = std::get_if<View>(&vertex.op)) what = fmt::format("label '{}'", view->labels[l].name);
      const std::string why = reason[l].empty() ? fmt::format("its extent is {}", extents[l].value()) : reason[l];
      throw UserError(
          fmt::format("{} of {} cannot be cut into {} parts: {}; at most {}", what, vertex.name, parts[l], why, most));
    }
  }
}

}  // namespace lowering
}  // namespace einrel
