#include "plan/search/search_tables.h"

#include <algorithm>
#include <numeric>

#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_key.h"
#include "plan/search/sampled_cuts.h"

namespace einrel::search {
namespace {

template <class T>
std::size_t find_or_add(std::map<T, std::size_t>& known, std::vector<T>& all, T value) {
  const auto [at, is_new] = known.try_emplace(std::move(value), all.size());
  if (is_new) all.push_back(at->first);
  return at->second;
}

}  // namespace

Tables::Tables(const EinGraph& of, const CostModel& by, const Candidates& candidates)
    : graph(of), model(by), readers(of.vertices.size(), 0) {
  for (const Vertex& vertex : graph.vertices) {
    for (const VertexId input : vertex.inputs) ++readers[input.index];
  }
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) class_of.push_back(find_class(v, candidates));
  edges_to.resize(graph.vertices.size());
  edges_from.resize(graph.vertices.size());
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const VertexClass& own = of_class(v);
    for (std::size_t s = 0; s < own.sources.size(); ++s) {
      const std::size_t producer = graph.vertices[v].inputs[own.sources[s].operand].index;
      edges_to[v].push_back(edges.size());
      edges_from[producer].push_back(edges.size());
      edges.push_back({producer, v, s, table_of(producer, v, s)});
    }
  }
}

/// Equal for vertices that compute alike of operands that are read alike, and so have the same candidates and costs.
std::string Tables::class_key(std::size_t v) const {
  const Vertex& vertex = graph.vertices[v];
  ByteKey key;
  put_computation_of_inputs(key, vertex, graph);
  if (has_many_labels(vertex)) key.put(v);                           // the cuts that are looked at depend on its place
  for (const Label& label : labels_of(vertex)) key.put(label.name);  // candidates may depend on them
  key.put(readers[v]);
  for (const VertexId input : vertex.inputs) key.put(readers[input.index]);
  return key.take();
}

std::size_t Tables::find_class(std::size_t v, const Candidates& candidates) {
  const auto [found, is_new] = class_of_key.insert({class_key(v), classes.size()});
  if (is_new) classes.push_back(std::make_unique<VertexClass>(new_class(v, candidates)));
  return found->second;
}

VertexClass Tables::new_class(std::size_t v, const Candidates& candidates) {
  const Vertex& vertex = graph.vertices[v];
  VertexClass made;
  made.candidates = candidates(vertex, v);
  if (is_input(v) && !is_shared_input(v)) made.candidates.resize(1);
  for (VertexPlan& plan : made.candidates) {
    plan.strides.assign(plan.grid.size(), 0);
    if (const std::int64_t copies = copies_of(plan); copies > 1) plan.copies = {{copies, 0}};
  }
  std::map<Layout, std::size_t> results;
  for (const VertexPlan& plan : made.candidates) {
    made.costs.push_back(is_input(v) ? 0 : model.of_vertex(graph, v, plan));
    made.result_of.push_back(find_or_add(results, made.results, result_layout(vertex, plan)));
  }
  for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
    const auto first = std::find(vertex.inputs.begin(), vertex.inputs.end(), vertex.inputs[o]);
    if (first - vertex.inputs.begin() == static_cast<std::ptrdiff_t>(o)) made.sources.push_back(source(v, o, made));
  }
  return made;
}

Source Tables::source(std::size_t v, std::size_t operand, const VertexClass& of) {
  const Vertex& vertex = graph.vertices[v];
  Source source{operand, {}, {}, {}};
  std::map<Needs, std::size_t> known;
  for (const VertexPlan& plan : of.candidates) {
    Needs layouts;
    for (std::size_t o = operand; o < vertex.inputs.size(); ++o) {
      if (vertex.inputs[o] == vertex.inputs[operand])
        layouts.push_back(needed_layout(vertex, o, graph[vertex.inputs[o]].bound, plan));
    }
    std::sort(layouts.begin(), layouts.end());
    layouts.erase(std::unique(layouts.begin(), layouts.end()), layouts.end());
    source.need_of.push_back(find_or_add(known, source.needs, std::move(layouts)));
  }
  for (const Needs& needs : source.needs)
    source.ids.push_back(id_of_needs.try_emplace(needs, id_of_needs.size()).first->second);
  return source;
}

const EdgeTable* Tables::table_of(std::size_t producer, std::size_t consumer, std::size_t s) {
  const auto [at, is_new] = tables.try_emplace({class_of[producer], class_of[consumer], s});
  if (!is_new) return at->second.get();
  at->second = std::make_unique<EdgeTable>();
  EdgeTable& table = *at->second;
  const Vertex& tensor = graph.vertices[producer];
  const std::vector<Needs>& needs = of_class(consumer).sources[s].needs;
  table.needs = needs.size();
  std::vector<Layout> all;  // of all needs, one after the other
  for (const Needs& need : needs) all.insert(all.end(), need.begin(), need.end());
  std::vector<double> costs;
  if (is_input(producer) && !is_shared_input(producer)) {
    for (const Layout& layout : all) costs.push_back(model.of_input(tensor, layout));
  } else {
    costs = model.of_moves(tensor, of_class(producer).results, all);
  }
  if (all.size() == needs.size()) {
    table.costs = std::move(costs);
    return &table;
  }
  for (auto cost = costs.begin(); cost != costs.end();) {
    for (const Needs& need : needs) {
      const auto end = cost + static_cast<std::ptrdiff_t>(need.size());
      table.costs.push_back(std::accumulate(cost, end, 0.0));
      cost = end;
    }
  }
  return &table;
}

}  // namespace einrel::search
