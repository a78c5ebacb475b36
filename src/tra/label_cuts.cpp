#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "einsum/graph/vertex_facts.h"
#include "tra/from_einsum.h"
#include "tra/lowering.h"

namespace einrel {
namespace {

/// More kernel calls per vertex than this are not made by default: a plan should stay one that people can look at.
constexpr std::int64_t most_default_calls = 1024;

/// Cuts each dimension along the first label of its group, in units of the others.
std::vector<DimensionCut> cuts_of(const LabelGroups& groups, const std::vector<Label>& labels,
                                  const std::vector<std::int64_t>& parts) {
  std::vector<DimensionCut> cuts;
  for (const std::vector<std::size_t>& group : groups) {
    cuts.emplace_back();
    if (group.empty() || parts[group.front()] == 1) continue;
    cuts.back().parts = parts[group.front()];
    for (std::size_t i = 1; i < group.size(); ++i)
      cuts.back().unit = checked_multiply(cuts.back().unit, labels[group[i]].extent.value());
  }
  return cuts;
}

}  // namespace

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

std::vector<DimensionCut> operand_cuts(const Vertex& vertex, std::size_t operand,
                                       const std::vector<std::int64_t>& parts) {
  return cuts_of(operand_groups(vertex, operand), labels_of(vertex), parts);
}

std::vector<DimensionCut> result_cuts(const Vertex& vertex, const std::vector<std::int64_t>& parts) {
  return cuts_of(result_groups(vertex), labels_of(vertex), parts);
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
