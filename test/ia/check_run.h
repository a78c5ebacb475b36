#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ia/interpret.h"
#include "ia/traffic.h"

namespace einrel::test {

/// What inference says of where the tuples of a node lie, as the interpreter reports it.
inline std::vector<std::pair<Key, Site>> inferred_tuples(const IaNode& node, std::int64_t sites) {
  std::vector<std::pair<Key, Site>> tuples;
  const std::vector<Chunk>& chunks = node.type.relation.chunks;
  if (std::holds_alternative<Everywhere>(node.type.placement)) {
    for (const Chunk& chunk : chunks) {
      for (Site site = 0; site < sites; ++site) tuples.emplace_back(chunk.key, site);
    }
  }
  for (const PlacedChunk& tuple : node.type.tuples) tuples.emplace_back(chunks[tuple.chunk].key, tuple.site);
  std::sort(tuples.begin(), tuples.end());
  return tuples;
}

/// Everything in which a run of the plan is not as inference says.
inline std::string wrong_inference(const IaStore& store, const IaPlan& plan, const IaRun& run) {
  if (run.moved != cost_of(store, plan).moved) {
    return "moved " + std::to_string(run.moved) + " floats, inferred " + std::to_string(cost_of(store, plan).moved);
  }
  const Traffic traffic = bytes_of(store, plan);
  if (run.received != traffic.received || run.sent != traffic.sent) return "other bytes than predicted";
  const std::vector<IaId> nodes = nodes_of(store, plan);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const IaNode& node = store[nodes[i]];
    if (run.tuples[i] != inferred_tuples(node, store.sites())) return "tuples lie elsewhere than inferred";
    const auto* part = std::get_if<Partitioned>(&node.type.placement);
    if (part == nullptr) continue;
    for (const auto& [key, site] : run.tuples[i]) {
      const std::vector<Site> sites = sites_of(part->grid, project(key, part->positions));
      if (!std::binary_search(sites.begin(), sites.end(), site)) return "tuples do not lie as Part_D says";
    }
    if (copies_of(part->grid) > 1 &&
        std::ssize(node.type.tuples) != copies_of(part->grid) * std::ssize(node.type.relation.chunks))
      return "there are not as many copies as Part_D says";
  }
  const RelationType& type = store[plan.front().id].type.relation;
  const Relation& relation = run.outputs.begin()->second;
  if (relation.size() != type.chunks.size()) return "other keys than inferred";
  for (const Chunk& chunk : type.chunks) {
    const auto found = relation.find(chunk.key);
    if (found == relation.end() || found->second.shape() != chunk.bound) return "other chunks than inferred";
  }
  return "";
}

}  // namespace einrel::test
