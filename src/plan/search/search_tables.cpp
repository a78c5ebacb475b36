#include "plan/search/search_tables.h"

#include <algorithm>
#include <numeric>

#include "einsum/vertex_facts.h"

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

bool Tables::are_alike(std::size_t v, std::size_t w) const {
  const Vertex& a = graph.vertices[v];
  const Vertex& b = graph.vertices[w];
  if (readers[v] != readers[w]) return false;
  if (a.dtype != b.dtype || a.bound != b.bound || a.inputs.size() != b.inputs.size() || !(a.op == b.op)) return false;
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    const Vertex& x = graph[a.inputs[i]];
    const Vertex& y = graph[b.inputs[i]];
    if (x.bound != y.bound || x.dtype != y.dtype) return false;
    if (readers[a.inputs[i].index] != readers[b.inputs[i].index]) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if ((a.inputs[i] == a.inputs[j]) != (b.inputs[i] == b.inputs[j])) return false;
    }
  }
  return true;
}

std::size_t Tables::find_class(std::size_t v, const Candidates& candidates) {
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (are_alike(v, first_of_class[c])) return c;
  }
  classes.push_back(std::make_unique<VertexClass>(new_class(v, candidates)));
  first_of_class.push_back(v);
  return classes.size() - 1;
}

VertexClass Tables::new_class(std::size_t v, const Candidates& candidates) const {
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

Source Tables::source(std::size_t v, std::size_t operand, const VertexClass& of) const {
  const Vertex& vertex = graph.vertices[v];
  Source source{operand, {}, {}};
  std::map<Needs, std::size_t> known;
  for (const VertexPlan& plan : of.candidates) {
    Needs layouts;
    for (std::size_t o = operand; o < vertex.inputs.size(); ++o) {
      if (vertex.inputs[o] == vertex.inputs[operand]) layouts.push_back(needed_layout(vertex, o, plan));
    }
    std::sort(layouts.begin(), layouts.end());
    layouts.erase(std::unique(layouts.begin(), layouts.end()), layouts.end());
    source.need_of.push_back(find_or_add(known, source.needs, std::move(layouts)));
  }
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
