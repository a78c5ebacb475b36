#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "einsum/graph/vertex_facts.h"
#include "tra/from_einsum.h"
#include "tra/lowering.h"
#include "tra/repartition.h"

namespace einrel {
namespace {

/// More kernel calls per vertex than this are not made by default: a plan should stay one that people can look at.
constexpr std::int64_t most_default_calls = 1024;

/// Cuts a dimension along the first label of its group, in units of the others.
DimensionCut cut_of(const std::vector<std::size_t>& group, const std::vector<Label>& labels,
                    const std::vector<std::int64_t>& parts) {
  if (group.empty() || parts[group.front()] == 1) return {};
  DimensionCut cut{parts[group.front()], 1};
  for (std::size_t i = 1; i < group.size(); ++i) cut.unit = checked_multiply(cut.unit, labels[group[i]].extent.value());
  return cut;
}

/// The term of the label that cuts a dimension which is read at this index.
const IndexTerm& term_along(const EinSum& einsum, const Index& index) {
  const std::optional<std::size_t> label = label_along(einsum, index);
  return *std::find_if(index.terms.begin(), index.terms.end(),
                       [&](const IndexTerm& term) { return term.label == label; });
}

/// Whether both walk through every dimension in the same steps along the same label.
bool walks_alike(const EinSum& einsum, const Access& a, const Access& b) {
  return std::equal(a.indices.begin(), a.indices.end(), b.indices.begin(), [&](const Index& x, const Index& y) {
    if (x.terms.empty() || y.terms.empty()) return x.terms.empty() == y.terms.empty();
    return term_along(einsum, x) == term_along(einsum, y);
  });
}

/// What is read along a dimension for position 0 of the label that cuts it.
Window window_of(const EinSum& einsum, const Access& access, std::size_t dim) {
  const Index& index = access.indices[dim];
  const IndexTerm& along = term_along(einsum, index);
  Window window{einsum.labels[along.label].extent, along.coefficient, index.offset, index.offset, access.pad};
  for (const IndexTerm& term : index.terms) {
    if (term.label == along.label) continue;
    const std::int64_t last = std::max<std::int64_t>(einsum.labels[term.label].extent.value() - 1, 0);
    std::int64_t& end = term.coefficient < 0 ? window.low : window.high;
    end = checked_add(end, checked_multiply(term.coefficient, last));
  }
  return window;
}

/// What all operands together read there that read the same tensor alike. Different padding keeps them apart.
Window common_window(const Vertex& vertex, const EinSum& einsum, std::size_t operand, std::size_t dim) {
  const Access& access = einsum.operands[operand];
  std::vector<const Access*> alike;
  std::optional<double> pad = access.pad;
  bool is_one_padding = true;
  for (std::size_t other = 0; other < einsum.operands.size(); ++other) {
    const Access& beside = einsum.operands[other];
    if (vertex.inputs[other] != vertex.inputs[operand] || !walks_alike(einsum, access, beside)) continue;
    alike.push_back(&beside);
    is_one_padding = is_one_padding && (!pad || !beside.pad || pad == beside.pad);
    if (beside.pad) pad = beside.pad;
  }
  Window window = window_of(einsum, access, dim);
  if (is_one_padding) window.pad = pad;
  for (const Access* const beside : alike) {
    if (!is_one_padding && beside->pad != access.pad) continue;
    const Window also = window_of(einsum, *beside, dim);
    window.low = std::min(window.low, also.low);
    window.high = std::max(window.high, also.high);
  }
  return window;
}

}  // namespace

GraphCuts default_cuts(const EinGraph& graph, std::int64_t sites) {
  GraphCuts cuts;
  for (const Vertex& vertex : graph.vertices) {
    const Shape extents = label_extents(vertex);
    const std::vector<std::string> reason = cannot_be_cut_apart(vertex, graph);
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

DimensionCut operand_cut(const Vertex& vertex, std::size_t operand, std::size_t dim, Extent extent,
                         const std::vector<std::int64_t>& parts) {
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr) return cut_of(operand_groups(vertex, operand)[dim], labels_of(vertex), parts);
  const std::optional<std::size_t> label = label_along(*einsum, einsum->operands[operand].indices[dim]);
  if (!label || parts[*label] == 1) return {};
  const bool is_whole = plain_label(einsum->operands[operand].indices[dim]) && einsum->labels[*label].extent == extent;
  if (is_whole && std::count(vertex.inputs.begin(), vertex.inputs.end(), vertex.inputs[operand]) == 1)
    return {parts[*label], 1};
  const Window window = common_window(vertex, *einsum, operand, dim);
  const bool covers = window.coefficient > 0 && window.low == 0 && window.high < window.coefficient &&
                      extent.value() % window.coefficient == 0 &&
                      extent.value() / window.coefficient == window.extent.value();
  const DimensionCut cut{parts[*label], 1, window};
  const DimensionCut plain{parts[*label], 1};
  if (plain.parts <= extent.value() && same_chunks(extent, cut, plain)) return plain;
  return covers ? DimensionCut{parts[*label], window.coefficient} : cut;  // side by side
}

std::vector<DimensionCut> operand_cuts(const Vertex& vertex, std::size_t operand, const Shape& bound,
                                       const std::vector<std::int64_t>& parts) {
  std::vector<DimensionCut> cuts;
  for (std::size_t d = 0; d < bound.size(); ++d) cuts.push_back(operand_cut(vertex, operand, d, bound[d], parts));
  return cuts;
}

std::vector<DimensionCut> result_cuts(const Vertex& vertex, const std::vector<std::int64_t>& parts) {
  std::vector<DimensionCut> cuts;
  for (const std::vector<std::size_t>& group : result_groups(vertex))
    cuts.push_back(cut_of(group, labels_of(vertex), parts));
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
      const std::string why = reason[l].empty() ? fmt::format("its extent is {}", extents[l].value()) : reason[l];
      throw UserError(fmt::format("{} of {} cannot be cut into {} parts: {}; at most {}", label_title(vertex, l),
                                  vertex.name, parts[l], why, most));
    }
  }
}

}  // namespace lowering
}  // namespace einrel
