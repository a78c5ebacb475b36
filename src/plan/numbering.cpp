#include "plan/numbering.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace einrel {
namespace {

bool is_input(const Vertex& vertex) { return std::holds_alternative<Input>(vertex.op); }

/// The plan of an input that lies as a consumer needs it: where that wants copies, on the first of their sites.
VertexPlan plan_of_input(const Layout& need) {
  VertexPlan plan;
  for (const LayoutAxis& axis : need.axes) {
    const bool repeats =
        axis.grid > 1 && std::find(plan.strides.begin(), plan.strides.end(), axis.stride) != plan.strides.end();
    plan.parts.push_back(repeats || axis.cut.unit != 1 ? 1 : axis.cut.parts);
    plan.grid.push_back(plan.parts.back() == 1 ? 1 : axis.grid);
    plan.strides.push_back(plan.parts.back() == 1 ? 0 : axis.stride);
  }
  return plan;
}

class Numbering {
 public:
  Numbering(const EinGraph& graph, Plan& plan)
      : graph_(graph), plan_(plan), transfers_(plan.sites), is_laid_out_(graph.vertices.size(), false) {}

  void run() {
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      if (is_input(graph_.vertices[v])) continue;
      number(v);
      is_laid_out_[v] = true;
      // For now inputs lie as their first consumer needs them.
      for (std::size_t o = 0; o < graph_.vertices[v].inputs.size(); ++o) {
        const std::size_t producer = graph_.vertices[v].inputs[o].index;
        if (is_laid_out_[producer]) continue;
        plan_.vertices[producer] = plan_of_input(needed_layout(graph_.vertices[v], o, plan_.vertices[v]));
        is_laid_out_[producer] = true;
      }
    }
    lay_out_inputs();
  }

 private:
  void number(std::size_t v) {
    VertexPlan& plan = plan_.vertices[v];
    std::vector<std::size_t> cut;
    std::vector<std::size_t> whole;
    for (std::size_t l = 0; l < plan.grid.size(); ++l) (plan.grid[l] > 1 ? cut : whole).push_back(l);
    double least = std::numeric_limits<double>::infinity();
    VertexPlan best = plan;
    constexpr std::size_t most_permuted = 5;
    do {
      std::vector<std::size_t> order = cut;
      order.insert(order.end(), whole.begin(), whole.end());
      plan.strides = strides_in_order(plan.grid, order);
      const double bytes = bytes_to(v);
      if (bytes < least) {
        least = bytes;
        best = plan;
      }
    } while (least > 0 && cut.size() <= most_permuted && std::next_permutation(cut.begin(), cut.end()));
    plan = best;
  }

  /// What a vertex receives of operands that are laid out.
  double bytes_to(std::size_t v) {
    const Vertex& vertex = graph_.vertices[v];
    double bytes = 0;
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      const std::size_t producer = vertex.inputs[o].index;
      if (!is_laid_out_[producer]) continue;
      bytes += bytes_between(producer, needed_layout(vertex, o, plan_.vertices[v]));
    }
    return bytes;
  }

  double bytes_between(std::size_t producer, const Layout& need) {
    const Vertex& tensor = graph_.vertices[producer];
    const auto& received = transfers_.received(result_layout(tensor, plan_.vertices[producer]), need, tensor.bound);
    return std::accumulate(received.begin(), received.end(), 0.0) * static_cast<double>(size_of(tensor.dtype));
  }

  void lay_out_inputs() {
    std::vector<std::set<Layout>> needs(graph_.vertices.size());
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      const Vertex& vertex = graph_.vertices[v];
      for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
        if (!is_input(graph_[vertex.inputs[o]])) continue;
        needs[vertex.inputs[o].index].insert(needed_layout(vertex, o, plan_.vertices[v]));
      }
    }
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      if (!is_input(graph_.vertices[v])) continue;
      double least = std::numeric_limits<double>::infinity();
      VertexPlan best = one_part_per_site(PartitionVector(graph_.vertices[v].bound.size(), 1));
      for (const Layout& candidate : needs[v]) {
        plan_.vertices[v] = plan_of_input(candidate);
        double bytes = 0;
        for (const Layout& need : needs[v]) bytes += bytes_between(v, need);
        if (bytes >= least) continue;
        least = bytes;
        best = plan_.vertices[v];
      }
      plan_.vertices[v] = best;
    }
  }

  const EinGraph& graph_;
  Plan& plan_;
  Transfers transfers_;
  std::vector<bool> is_laid_out_;
};

}  // namespace

const std::vector<std::int64_t>& Transfers::received(const Layout& have, const Layout& need, const Shape& bound) {
  const auto [at, is_new] = known_.try_emplace({have, need, bound});
  if (is_new) at->second = elements_received(have, need, bound, sites_);
  return at->second;
}

void number_sites(const EinGraph& graph, Plan& plan) { Numbering(graph, plan).run(); }

}  // namespace einrel
