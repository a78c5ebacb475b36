#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "einsum/vertex_facts.h"
#include "tra/from_einsum.h"
#include "tra/lowering.h"

namespace einrel {
namespace {

/// More kernel calls per vertex than this are not made by default: a plan should stay one that people can look at.
constexpr std::int64_t most_default_calls = 1024;

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
