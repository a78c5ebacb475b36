#include "plan/refine/numbering.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "einsum/graph/vertex_facts.h"
#include "plan/cost/cost.h"
#include "plan/placed_inputs.h"
#include "plan/search/sampled_cuts.h"
#include "plan/spmd.h"
#include "tra/lowering.h"

namespace einrel {
namespace {

/// The plan of an input that lies as a consumer needs it: where that wants copies, on the first of their sites.
VertexPlan plan_of_input(const Layout& need) {
  VertexPlan plan;
  for (const LayoutAxis& axis : need.axes) {
    plan.parts.push_back(axis.cut.unit != 1 ? 1 : axis.cut.parts);  // an input is cut in units of 1
    plan.grid.push_back(plan.parts.back() == 1 ? 1 : axis.grid);
    plan.strides.push_back(plan.parts.back() == 1 ? 0 : axis.stride);
  }
  return plan;
}

/// The same, but each of the sites that want copies has a piece of what they all get: cut along a dimension of which
/// each has all so far, at best one of which they want several parts. Nobody has more to send or to hold than others
/// then.
VertexPlan spread_plan_of_input(const Layout& need, const Shape& bound) {
  VertexPlan plan = plan_of_input(need);
  for (const SiteCopies& copies : need.copies) {
    std::size_t longest = bound.size();
    for (std::size_t d = 0; d < bound.size(); ++d) {
      const DimensionCut& cut = need.axes[d].cut;
      const bool in_parts = plan.parts[d] > 1 && plan.parts[d] % copies.count == 0;
      if (plan.grid[d] > 1 || (cut.parts > 1 && !in_parts) || bound[d].value() < copies.count) continue;
      const auto rank = [&](std::size_t dim) { return std::pair(plan.parts[dim], bound[dim]); };
      if (longest == bound.size() || rank(d) > rank(longest)) longest = d;
    }
    if (longest == bound.size()) continue;
    plan.parts[longest] = std::max(plan.parts[longest], copies.count);
    plan.grid[longest] = copies.count;
    plan.strides[longest] = copies.stride;
  }
  return plan;
}

bool reads_plainly(const EinSum& einsum, std::size_t operand) {
  const std::vector<Index>& indices = einsum.operands[operand].indices;
  return std::equal(indices.begin(), indices.end(), einsum.output.begin(), einsum.output.end(),
                    [](const Index& index, std::size_t label) { return plain_label(index) == label; });
}

class Numbering {
 public:
  Numbering(const EinGraph& graph, Plan& plan, Transfers& transfers, bool counts_links = true)
      : graph_(graph),
        plan_(plan),
        transfers_(transfers),
        counts_links_(counts_links),
        is_laid_out_(graph.vertices.size(), false) {
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      std::optional<VertexPlan> given = given_plan(graph.vertices[v]);
      if (!given) continue;
      plan_.vertices[v] = std::move(*given);
      is_laid_out_[v] = true;
    }
  }

  void run() {
    number_all();
    lay_out_inputs();
  }

  void lay_out_inputs() {
    const std::vector<std::set<Layout>> needs = needs_of_inputs();
    const std::vector<std::optional<std::size_t>> next = next_of_inputs(graph_);
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      if (lies_freely(graph_.vertices[v])) lay_out_input(v, needs[v], next[v]);
    }
  }

 private:
  void number_all() {
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      if (is_input(graph_.vertices[v])) continue;
      number(v);
      is_laid_out_[v] = true;
      // For now inputs lie as their first consumer needs them.
      for (std::size_t o = 0; o < graph_.vertices[v].inputs.size(); ++o) {
        const std::size_t producer = graph_.vertices[v].inputs[o].index;
        if (is_laid_out_[producer]) continue;
        plan_.vertices[producer] =
            plan_of_input(needed_layout(graph_.vertices[v], o, graph_.vertices[producer].bound, plan_.vertices[v]));
        is_laid_out_[producer] = true;
      }
    }
  }

  /// Copies are a digit, too, behind those of all labels.
  void number(std::size_t v) {
    VertexPlan& plan = plan_.vertices[v];
    std::vector<std::size_t> cut;
    std::vector<std::size_t> whole;
    std::vector<std::int64_t> counts = plan.grid;
    counts.push_back(copies_of(plan));
    for (std::size_t l = 0; l < counts.size(); ++l) (counts[l] > 1 ? cut : whole).push_back(l);
    if (plan.scatter) put_scattered_last(graph_.vertices[v], *plan.scatter, cut);
    double least = std::numeric_limits<double>::infinity();
    VertexPlan best = plan;
    const auto consider = [&](std::vector<std::size_t> order) {
      order.insert(order.end(), whole.begin(), whole.end());
      plan.strides = strides_in_order(counts, order);
      if (counts.back() > 1) plan.copies = {{counts.back(), plan.strides.back()}};
      plan.strides.pop_back();
      if (plan.scatter && !numbers_scatter(graph_.vertices[v], plan)) return;
      if (plan_.is_spmd && !spmd_fault(graph_.vertices[v], plan, mesh_of(plan_.sites)).empty()) return;
      const double bytes = cut.size() < 2 ? 0 : bytes_to(v, least) + parts_crossing(v);  // there is one way
      if (bytes >= least) return;
      least = bytes;
      best = plan;
    };
    for_each_order(v, counts, cut, [&](const std::vector<std::size_t>& order) {
      consider(order);
      return least > 0;
    });
    plan = best;
  }

  /// Orders of labels worth considering, as long as `goes_on` says so: all of few labels; of more, this one, and those
  /// in which as many as possible stay the digits that they are of where an operand lies.
  template <class GoesOn>
  void for_each_order(std::size_t v, const std::vector<std::int64_t>& counts, const std::vector<std::size_t>& cut,
                      GoesOn goes_on) {
    const Vertex& vertex = graph_.vertices[v];
    const std::size_t most_permuted = has_many_labels(vertex) ? 3 : 5;
    if (cut.size() > most_permuted) {
      if (!goes_on(cut)) return;
      for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
        if (is_laid_out_[vertex.inputs[o].index] && !goes_on(order_of_operand(v, o, counts, cut))) return;
      }
      return;
    }
    std::vector<std::size_t> places(cut.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    bool goes = true;
    do {
      std::vector<std::size_t> order;
      for (const std::size_t place : places) order.push_back(cut[place]);
      goes = goes_on(order);
    } while (goes && std::next_permutation(places.begin(), places.end()));
  }

  /// Labels that an operand is cut along as the vertex is take its digits; others fill the gaps, in their order.
  std::vector<std::size_t> order_of_operand(std::size_t v, std::size_t operand, const std::vector<std::int64_t>& counts,
                                            std::vector<std::size_t> left) const {
    const Vertex& vertex = graph_.vertices[v];
    const std::size_t producer = vertex.inputs[operand].index;
    const Layout have = result_layout(graph_.vertices[producer], plan_.vertices[producer]);
    const std::vector<std::optional<std::size_t>> labels = operand_labels(vertex, operand);
    std::vector<std::int64_t> wanted(counts.size(), 0);
    for (std::size_t d = 0; d < labels.size(); ++d) {
      const LayoutAxis& axis = have.axes[d];
      if (labels[d] && axis.grid == counts[*labels[d]]) wanted[*labels[d]] = axis.stride;
    }
    std::vector<std::size_t> order;  // the lowest digit first
    for (std::int64_t stride = 1; !left.empty(); stride *= counts[order.back()]) {
      auto next = std::find_if(left.begin(), left.end(), [&](std::size_t label) { return wanted[label] == stride; });
      if (next == left.end()) {
        const auto free =
            std::find_if(left.rbegin(), left.rend(), [&](std::size_t label) { return wanted[label] < stride; });
        next = free == left.rend() ? left.begin() : std::prev(free.base());
      }
      order.push_back(*next);
      left.erase(next);
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

  /// An order of labels that numbers_scatter allows.
  static void put_scattered_last(const Vertex& vertex, std::size_t scatter, std::vector<std::size_t>& labels) {
    const std::vector<std::size_t> reduced = reduced_labels(vertex);
    const auto rank = [&](std::size_t label) {
      return label == scatter ? 1 : std::find(reduced.begin(), reduced.end(), label) == reduced.end() ? 0 : 2;
    };
    std::stable_sort(labels.begin(), labels.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  }

  /// What a vertex receives of operands that are laid out; at least `enough` where it is that much.
  double bytes_to(std::size_t v, double enough) {
    const Vertex& vertex = graph_.vertices[v];
    double bytes = 0;
    for (std::size_t o = 0; o < vertex.inputs.size() && bytes < enough; ++o) {
      const std::size_t producer = vertex.inputs[o].index;
      if (!is_laid_out_[producer]) continue;
      bytes += bytes_between(producer, needed_layout(vertex, o, graph_.vertices[producer].bound, plan_.vertices[v]));
    }
    return bytes;
  }

  double bytes_between(std::size_t producer, const Layout& need) {
    const Vertex& tensor = graph_.vertices[producer];
    const Layout have = result_layout(tensor, plan_.vertices[producer]);
    auto elements = static_cast<double>(transfers_.sums(have, need, tensor.bound).all);
    for (const Link& link : counts_links_ ? transfers_.machine().links : std::vector<Link>()) {
      const auto& crossing = transfers_.crossing(link, have, need, tensor.bound);
      elements += times_as_slow(link) * std::accumulate(crossing.begin(), crossing.end(), 0.0);
    }
    return elements * static_cast<double>(size_of(tensor.dtype));
  }

  /// How many bytes to sites take as long as one that crosses a link, where all sites and all groups receive alike.
  double times_as_slow(const Link& link) const {
    return static_cast<double>(link.sites) * transfers_.machine().network_bandwidth / link.bandwidth;
  }

  /// What crosses links of the partial results of a vertex, as bytes to sites.
  double parts_crossing(std::size_t v) const {
    const Vertex& vertex = graph_.vertices[v];
    const VertexPlan& plan = plan_.vertices[v];
    if (!counts_links_ || partial_sites(vertex, plan) == 1) return 0;
    double bytes = 0;
    for (const Link& link : transfers_.machine().links) {
      const std::vector<std::int64_t> elements = einrel::parts_crossing(vertex, plan, plan_.sites, link.sites);
      bytes += times_as_slow(link) * std::accumulate(elements.begin(), elements.end(), 0.0) *
               static_cast<double>(size_of(vertex.dtype));
    }
    return bytes;
  }

  std::vector<std::set<Layout>> needs_of_inputs() const {
    std::vector<std::set<Layout>> needs(graph_.vertices.size());
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      const Vertex& vertex = graph_.vertices[v];
      for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
        const Vertex& tensor = graph_[vertex.inputs[o]];
        if (!lies_freely(tensor)) continue;
        needs[vertex.inputs[o].index].insert(needed_layout(vertex, o, tensor.bound, plan_.vertices[v]));
      }
    }
    return needs;
  }

  /// `next` takes its place after the program: where that is kept on several sites, it was so before. A state lies
  /// where moving it to who needs it, and its next value back to it, takes least.
  void lay_out_input(std::size_t v, const std::set<Layout>& needs, std::optional<std::size_t> next) {
    const Shape& bound = graph_.vertices[v].bound;
    const bool is_state = next && !graph_.steps.states.empty();
    std::optional<Layout> kept;
    if (next) kept = result_layout(graph_.vertices[*next], plan_.vertices[*next]);
    Moved least{std::numeric_limits<double>::infinity(), 0};
    VertexPlan best = one_part_per_site(PartitionVector(bound.size(), 1));
    for (const VertexPlan& candidate :
         plan_.is_spmd ? spmd_candidates(graph_, v, plan_.sites) : input_plans(bound, needs, kept, is_state)) {
      if (least.all == 0) break;
      plan_.vertices[v] = candidate;
      const Moved moved = moved_from(v, needs, is_state ? kept : std::nullopt);
      if (std::tie(moved.all, moved.most) >= std::tie(least.all, least.most)) continue;
      least = moved;
      best = candidate;
    }
    plan_.vertices[v] = best;
  }

  /// Bytes received by all sites, and by the one that receives most.
  struct Moved {
    double all = 0;
    double most = 0;
  };

  /// To those who need it; of a state that of which the `next` value is made there, back to it, too.
  Moved moved_from(std::size_t producer, const std::set<Layout>& needs, const std::optional<Layout>& next) {
    const Vertex& tensor = graph_.vertices[producer];
    const Layout have = result_layout(tensor, plan_.vertices[producer]);
    std::vector<double> received(static_cast<std::size_t>(plan_.sites), 0);
    const auto add = [&](const Layout& from, const Layout& to) {
      const std::vector<std::int64_t>& elements = transfers_.received(from, to, tensor.bound);
      for (std::size_t site = 0; site < received.size(); ++site) received[site] += static_cast<double>(elements[site]);
    };
    for (const Layout& need : needs) add(have, need);
    if (next) add(*next, have);
    return {std::accumulate(received.begin(), received.end(), 0.0),
            *std::max_element(received.begin(), received.end())};
  }

  const EinGraph& graph_;
  Plan& plan_;
  Transfers& transfers_;
  bool counts_links_;
  std::vector<bool> is_laid_out_;
};

}  // namespace

std::vector<std::optional<std::size_t>> next_of_inputs(const EinGraph& graph) {
  std::vector<std::optional<std::size_t>> next(graph.vertices.size());
  if (!graph.steps.states.empty()) {
    for (const State& state : graph.steps.states) {
      if (state.next) next[state.now.index] = graph.outputs[*state.next].index;
    }
    return next;
  }
  for (const VertexId output : graph.outputs) {
    const EinSum* const einsum = einsum_of(graph[output]);
    if (einsum == nullptr || einsum->reducer) continue;
    for (const std::size_t operand : operands_read(graph[output])) {
      const VertexId from = graph[output].inputs[operand];
      const bool is_alike = graph[from].bound == graph[output].bound && graph[from].dtype == graph[output].dtype;
      if (is_input(graph[from]) && is_alike && reads_plainly(*einsum, operand)) next[from.index] = output.index;
    }
  }
  return next;
}

std::vector<VertexPlan> input_plans(const Shape& bound, const std::set<Layout>& needs,
                                    const std::optional<Layout>& kept, bool is_state) {
  std::vector<VertexPlan> plans;
  const auto add_copied = [&](const Layout& layout) {
    plans.push_back(plan_of_input(layout));
    plans.back().copies = layout.copies;
  };
  if (kept && (is_state || !kept->copies.empty())) add_copied(*kept);
  for (const Layout& need : needs) {
    if (is_state && !need.copies.empty()) add_copied(need);
  }
  for (const Layout& need : needs) {
    plans.push_back(plan_of_input(need));
    plans.push_back(spread_plan_of_input(need, bound));
  }
  return plans;
}

void number_sites(const EinGraph& graph, Plan& plan, const Machine& machine) {
  Transfers transfers(plan.sites, machine);
  number_sites(graph, plan, transfers);
}

void number_sites(const EinGraph& graph, Plan& plan, Transfers& transfers) {
  Numbering(graph, plan, transfers).run();
  if (transfers.machine().links.empty()) return;
  // One vertex after the other, what crosses less for one may cross more for those that follow.
  Plan other = plan;
  Numbering(graph, other, transfers, false).run();
  const auto seconds = [&](const Plan& of) {
    return costs_of(graph, of, transfers.machine(), transfers).of(CostKind::seconds);
  };
  if (seconds(other) < seconds(plan)) plan = std::move(other);
}

void lay_out_inputs(const EinGraph& graph, Plan& plan) {
  Transfers transfers(plan.sites);
  Numbering(graph, plan, transfers).lay_out_inputs();
}

}  // namespace einrel
