#include "plan/cost/memory.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/cost/cost.h"
#include "plan/cost/least_memory.h"
#include "plan/layout.h"
#include "plan/routes.h"
#include "plan/staying_inputs.h"
#include "plan/transfers.h"

namespace einrel {
namespace {

std::int64_t element_bytes(const Vertex& vertex) { return static_cast<std::int64_t>(size_of(vertex.dtype)); }

/// Partial results of its parts that a site has at a time, where one is not reduced onto the other.
std::int64_t partial_results(const Vertex& vertex, const VertexPlan& plan) {
  if (reduces_onto_result(vertex)) return 1;
  std::int64_t parts = 1;
  for (const std::size_t label : reduced_labels(vertex)) {
    parts = checked_multiply(parts, (plan.parts[label] + plan.grid[label] - 1) / plan.grid[label]);
  }
  return parts;
}

/// The iteration space of a vertex as if it were a tensor.
Layout iteration_layout(const VertexPlan& plan) {
  Layout layout;
  for (std::size_t l = 0; l < plan.parts.size(); ++l)
    layout.axes.push_back({{plan.parts[l], 1}, plan.grid[l], plan.strides[l]});
  layout.copies = plan.copies;
  return layout;
}

bool is_cut_alike(const Layout& have, const Layout& need) {
  return std::equal(have.axes.begin(), have.axes.end(), need.axes.begin(), need.axes.end(),
                    [](const LayoutAxis& a, const LayoutAxis& b) { return a.cut == b.cut; });
}

/// Something that is held while vertices `from` to `to` are computed, both included.
struct Holding {
  std::size_t vertex = 0;
  HeldAs as = HeldAs::stored;
  std::size_t from = 0;
  std::size_t to = 0;
  std::int64_t element_bytes = 0;
  const std::vector<std::int64_t>* elements = nullptr;  ///< per site

  std::int64_t bytes_at(std::size_t site) const { return checked_multiply((*elements)[site], element_bytes); }
};

/// All that is held by anyone at any time.
class Holdings {
 public:
  Holdings(const EinGraph& graph, const Plan& plan)
      : graph_(graph),
        plan_(plan),
        transfers_(plan.sites),
        routes_(graph, plan, transfers_),
        last_(last_readers(graph)) {}
  Holdings(const Holdings&) = delete;
  Holdings& operator=(const Holdings&) = delete;
  ~Holdings() = default;

  /// They point into this.
  std::vector<Holding> run() {
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      store(v);
      for (const std::size_t operand : operands_read(graph_.vertices[v])) bring(v, operand);
      reduce(v);
      join(v);
    }
    for (std::size_t s = 0; s < graph_.steps.states.size(); ++s) carry(s);
    for (auto& [what, copy] : copies_) all_.push_back(copy);
    return std::move(all_);
  }

 private:
  void store(std::size_t v) {
    if (!last_[v]) return;  // an input that nobody reads
    const Vertex& tensor = graph_.vertices[v];
    const Layout layout = result_layout(tensor, plan_.vertices[v]);
    all_.push_back({v, HeldAs::stored, is_input(tensor) ? 0 : v, *last_[v], element_bytes(tensor), held(v, layout)});
  }

  void bring(std::size_t v, std::size_t operand) {
    const std::size_t producer = graph_.vertices[v].inputs[operand].index;
    if (const std::optional<std::size_t> number = routes_.route_of(v, operand)) bring_by(producer, *number, v);
  }

  /// The next value of a state to where that lies, at the end of a step.
  void carry(std::size_t s) {
    const std::optional<std::size_t> number = routes_.route_of_state(s);
    if (number) bring_by(graph_.outputs[*graph_.steps.states[s].next].index, *number, graph_.vertices.size() - 1);
  }

  /// For vertex v.
  void bring_by(std::size_t producer, std::size_t number, std::size_t v) {
    const Vertex& tensor = graph_.vertices[producer];
    const Layout& have = routes_.source(producer, number);
    const Layout& need = routes_.route(producer, number).need;
    const auto [copy, is_new] = copies_.try_emplace({producer, number});
    if (is_new) {
      // Chunks that are cut alike are the same: a site that has one needs no other.
      const auto* const elements =
          is_cut_alike(have, need) ? &transfers_.received(have, need, tensor.bound) : held(producer, need);
      copy->second = {producer, HeldAs::copy, v, v, element_bytes(tensor), elements};
    }
    if (stays(tensor)) {
      copy->second.from = 0;
      copy->second.to = graph_.vertices.size() - 1;
      return;
    }
    // What it is, or was, taken from is there, too, and may be it in part.
    for (std::optional part(number); part; part = routes_.route(producer, *part).source)
      copies_.at({producer, *part}).to = v;
  }

  void reduce(std::size_t v) {
    const Vertex& vertex = graph_.vertices[v];
    const std::int64_t sites = partial_sites(vertex, plan_.vertices[v]);
    const std::int64_t parts = partial_results(vertex, plan_.vertices[v]);
    if (sites == 1 && parts == 1) return;
    const std::int64_t each = partial_bytes(vertex);
    all_.push_back(
        {v, HeldAs::partial, v, v, checked_multiply(parts, each), held(v, partial_layout(vertex, plan_.vertices[v]))});
    all_.push_back({v, HeldAs::partial, v, v, checked_multiply(sites - 1, each),
                    held(v, owned_layout(vertex, plan_.vertices[v]))});
  }

  void join(std::size_t v) {
    const std::int64_t each = bytes_between(graph_.vertices[v], plan_.vertices[v]);
    if (each == 0) return;
    all_.push_back(
        {v, HeldAs::between, v, v, each, held(iteration_layout(plan_.vertices[v]), label_extents(graph_.vertices[v]))});
  }

  const std::vector<std::int64_t>* held(std::size_t v, const Layout& layout) {
    return held(layout, graph_.vertices[v].bound);
  }
  const std::vector<std::int64_t>* held(const Layout& layout, const Shape& bound) {
    const auto [at, is_new] = held_.try_emplace({layout, bound});
    if (is_new) {
      for (std::int64_t site = 0; site < plan_.sites; ++site) at->second.push_back(elements_at(layout, bound, site));
    }
    return &at->second;
  }

  const EinGraph& graph_;
  const Plan& plan_;
  Transfers transfers_;
  std::map<std::pair<Layout, Shape>, std::vector<std::int64_t>> held_;  // elements per site
  Routes routes_;
  std::map<std::pair<std::size_t, std::size_t>, Holding> copies_;  // tensors and their routes
  std::vector<std::optional<std::size_t>> last_;                   // last_readers
  std::vector<Holding> all_;
};

/// All that one site ever holds.
std::vector<HeldForSome> held_by(const std::vector<Holding>& holdings, std::size_t site) {
  std::vector<HeldForSome> held;
  for (const Holding& holding : holdings) {
    const std::int64_t bytes = holding.bytes_at(site);
    if (bytes > 0) held.push_back({{holding.vertex, holding.as, bytes}, holding.from, holding.to});
  }
  std::stable_sort(held.begin(), held.end(),
                   [](const HeldForSome& a, const HeldForSome& b) { return a.from < b.from; });
  return held;
}

/// What of it is there while a vertex is computed, largest first.
std::vector<HeldTensor> held_at(const std::vector<HeldForSome>& held, std::size_t vertex) {
  std::map<std::pair<std::size_t, HeldAs>, std::int64_t> sums;
  for (const HeldForSome& each : held) {
    if (each.from <= vertex && vertex <= each.to) sums[{each.tensor.vertex, each.tensor.as}] += each.tensor.bytes;
  }
  std::vector<HeldTensor> tensors;
  for (const auto& [what, bytes] : sums) tensors.push_back({what.first, what.second, bytes});
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const HeldTensor& a, const HeldTensor& b) { return a.bytes > b.bytes; });
  return tensors;
}

}  // namespace

std::string_view name_of(HeldAs as) {
  constexpr std::array<std::string_view, 4> names{"stored", "copy", "partial", "between"};
  return names.at(static_cast<std::size_t>(as));
}

SitePeak peak_of(const EinGraph& graph, const Plan& plan) {
  Holdings found(graph, plan);
  const std::vector<Holding> holdings = found.run();
  std::vector<std::vector<const Holding*>> begin(graph.vertices.size());
  std::vector<std::vector<const Holding*>> end(graph.vertices.size());
  for (const Holding& holding : holdings) {
    begin[holding.from].push_back(&holding);
    end[holding.to].push_back(&holding);
  }
  SitePeak peak;
  peak.by_vertex.resize(graph.vertices.size());
  std::vector<std::int64_t> live(static_cast<std::size_t>(plan.sites), 0);
  peak.by_site = live;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    for (const Holding* const holding : begin[v]) {
      for (std::size_t site = 0; site < live.size(); ++site)
        live[site] = checked_add(live[site], holding->bytes_at(site));
    }
    const bool computes = !is_input(graph.vertices[v]) || v + 1 == graph.vertices.size();
    const auto most = std::max_element(live.begin(), live.end());
    peak.by_vertex[v] = *most;
    for (std::size_t site = 0; computes && site < live.size(); ++site)
      peak.by_site[site] = std::max(peak.by_site[site], live[site]);
    if (computes && *most > peak.bytes) {
      peak.bytes = *most;
      peak.site = static_cast<std::size_t>(most - live.begin());
      peak.vertex = v;
    }
    for (const Holding* const holding : end[v]) {
      for (std::size_t site = 0; site < live.size(); ++site) live[site] -= holding->bytes_at(site);
    }
  }
  peak.held = held_by(holdings, peak.site);
  peak.tensors = held_at(peak.held, peak.vertex);
  return peak;
}

std::int64_t least_memory_of(const EinGraph& graph, const Vertex& vertex, const VertexPlan& plan) {
  const std::int64_t owned = elements_at(result_layout(vertex, plan), vertex.bound, 0);
  std::int64_t bytes = checked_multiply(owned, element_bytes(vertex));
  std::map<VertexId, std::int64_t> operands;
  for (const std::size_t operand : operands_read(vertex)) {
    const Vertex& tensor = graph[vertex.inputs[operand]];
    const std::int64_t needed = elements_at(needed_layout(vertex, operand, tensor.bound, plan), tensor.bound, 0);
    std::int64_t& most = operands[vertex.inputs[operand]];
    most = std::max(most, checked_multiply(needed, element_bytes(tensor)));
  }
  for (const auto& [tensor, needed] : operands) bytes = checked_add(bytes, needed);
  if (const std::int64_t each = bytes_between(vertex, plan); each > 0) {
    const std::int64_t space = elements_at(iteration_layout(plan), label_extents(vertex), 0);
    bytes = checked_add(bytes, checked_multiply(each, space));
  }
  const std::int64_t sites = partial_sites(vertex, plan);
  if (sites == 1) return bytes;
  const std::int64_t own = elements_at(partial_layout(vertex, plan), vertex.bound, 0);
  const std::int64_t partial = checked_add(own, checked_multiply(sites - 1, owned));
  return checked_add(bytes, checked_multiply(partial_bytes(vertex), partial));
}

}  // namespace einrel
