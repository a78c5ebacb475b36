#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "einsum/graph/vertex_facts.h"
#include "machine/seconds.h"
#include "plan/cost/bound_cost.h"
#include "plan/cost/cost.h"
#include "plan/cost/modelled.h"
#include "plan/staying_inputs.h"

namespace einrel {
namespace {

Layout layout_in_one_part(Layout layout) {
  for (LayoutAxis& axis : layout.axes) axis.cut.parts = 1;
  return layout;
}

class BoundModel : public CostModel {
 public:
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    return bound_of_vertex(graph.vertices[vertex], graph, plan.parts);
  }
  std::vector<double> of_moves(const Vertex& tensor, const std::vector<Layout>& have,
                               const std::vector<Layout>& need) const override {
    return bounds_of_repartitions(tensor.bound, parts_of(have), parts_of(need));
  }
  double of_input(const Vertex&, const Layout&) const override { return 0; }
  bool sends_once() const override { return false; }

 private:
  static std::vector<PartitionVector> parts_of(const std::vector<Layout>& layouts) {
    std::vector<PartitionVector> parts(layouts.size());
    for (std::size_t l = 0; l < layouts.size(); ++l) {
      for (const LayoutAxis& axis : layouts[l].axes) parts[l].push_back(axis.cut.parts);
    }
    return parts;
  }
};

bool lies_alike(const Layout& have, const Layout& need) {
  return have.copies == need.copies &&
         std::equal(have.axes.begin(), have.axes.end(), need.axes.begin(),
                    [](const LayoutAxis& a, const LayoutAxis& b) { return a.cut == b.cut && a.grid == b.grid; });
}

class FloatsModel : public CostModel {
 public:
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    return reduced_floats(graph.vertices[vertex], plan);
  }
  std::vector<double> of_moves(const Vertex& tensor, const std::vector<Layout>& have,
                               const std::vector<Layout>& need) const override {
    std::vector<double> costs;
    costs.reserve(have.size() * need.size());
    for (const Layout& from : have) {
      for (const Layout& to : need) {
        costs.push_back(lies_alike(from, to) ? 0 : copies_in(to) * elements_in(tensor.bound));
      }
    }
    return costs;
  }
  double of_input(const Vertex& tensor, const Layout& need) const override {
    return need.copies.empty() ? 0 : copies_in(need) * elements_in(tensor.bound);
  }
  double of_misplacing(const Vertex& tensor, const Layout&, std::int64_t) const override {
    return elements_in(tensor.bound);
  }
};

class BytesModel : public CostModel {
 public:
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    return reduced_bytes(graph.vertices[vertex], plan);
  }
  /// Every site needs its share; those that hold one keep what both have in common, along a dimension the smaller of
  /// the two shares. At best these are as many sites as there are of the fewer kind.
  std::vector<double> of_moves(const Vertex& tensor, const std::vector<Layout>& have,
                               const std::vector<Layout>& need) const override {
    const std::vector<double> sites_needed = each(need, sites_in);
    const std::vector<double> copies = each(need, copies_in);
    std::vector<std::vector<double>> grids;  // needed, per dimension
    for (std::size_t d = 0; d < tensor.bound.size(); ++d) {
      grids.push_back(each(need, [&](const Layout& layout) { return static_cast<double>(layout.axes[d].grid); }));
    }
    const double bytes = bytes_of(tensor);
    std::vector<double> costs(have.size() * need.size());
    std::vector<double> shares(need.size());
    auto cost = costs.begin();
    for (const Layout& from : have) {
      std::fill(shares.begin(), shares.end(), 1);
      for (std::size_t d = 0; d < grids.size(); ++d) {
        const auto grid = static_cast<double>(from.axes[d].grid);
        for (std::size_t n = 0; n < shares.size(); ++n) shares[n] *= std::max(grid, grids[d][n]);
      }
      const double sites = sites_in(from);
      for (std::size_t n = 0; n < shares.size(); ++n) {
        *cost++ = bytes * (copies[n] - std::min(sites, sites_needed[n]) / shares[n]);
      }
    }
    return costs;
  }
  double of_input(const Vertex& tensor, const Layout& need) const override {
    return bytes_of(tensor) * (copies_in(need) - 1);
  }
  /// At best everything lies where it is needed.
  double of_misplacing(const Vertex& tensor, const Layout&, std::int64_t) const override { return bytes_of(tensor); }

 private:
  template <class F>
  static std::vector<double> each(const std::vector<Layout>& layouts, F of) {
    std::vector<double> values;
    values.reserve(layouts.size());
    for (const Layout& layout : layouts) values.push_back(of(layout));
    return values;
  }
};

class SecondsModel : public CostModel {
 public:
  explicit SecondsModel(Machine machine) : machine_(std::move(machine)) {}
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    const Vertex& computed = graph.vertices[vertex];
    return vertex_seconds(graph, computed, plan, machine_) + adding_seconds(computed, plan, machine_) +
           receiving_parts_seconds(computed, plan, machine_);
  }
  std::vector<double> of_moves(const Vertex& tensor, const std::vector<Layout>& have,
                               const std::vector<Layout>& need) const override {
    std::vector<double> costs = bytes_.of_moves(tensor, have, need);
    struct Needed {
      double bytes;
      double sites;
      double fewest_messages;
    };
    std::vector<Needed> needed;
    needed.reserve(need.size());
    for (const Layout& to : need) {
      const double copies = copies_in(to);
      needed.push_back({bytes_of(tensor) * copies, sites_in(to), tree_depth(copies)});
    }
    auto cost = costs.begin();
    for (const Layout& from : have) {
      for (std::size_t n = 0; n < need.size(); ++n, ++cost) {
        if (*cost > 0) {
          const auto& [bytes, sites, fewest_messages] = needed[n];
          const double messages = messages_to(from, need[n], *cost / bytes, fewest_messages);
          *cost = receiving_seconds(*cost / sites, messages, sites, machine_);
        }
        *cost += copying_seconds(tensor, from, need[n], machine_);
      }
    }
    return costs;
  }
  /// Each of the sites that want copies stores a piece.
  double of_input(const Vertex& tensor, const Layout& need) const override {
    const double sites = sites_in(need);
    return receiving_seconds(bytes_.of_input(tensor, need) / sites, copies_in(need) - 1, sites, machine_);
  }
  /// At worst every site sends a piece of each part, and all of it is cut once more.
  double of_misplacing(const Vertex& tensor, const Layout& layout, std::int64_t sites) const override {
    auto messages = static_cast<double>(sites);
    for (const LayoutAxis& axis : layout.axes)
      messages *= std::ceil(static_cast<double>(axis.cut.parts) / static_cast<double>(axis.grid));
    const double receivers = sites_in(layout);
    return receiving_seconds(bytes_of(tensor) / receivers, messages, receivers, machine_) +
           copying_seconds(tensor, layout_in_one_part(layout), layout, machine_);
  }

 private:
  Machine machine_;
  BytesModel bytes_;
};

/// Another model, but inputs that stay where they are brought cost what a step pays of that.
class AverageStep : public CostModel {
 public:
  explicit AverageStep(std::unique_ptr<CostModel> of_one) : of_one_(std::move(of_one)) {}
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    return of_one_->of_vertex(graph, vertex, plan);
  }
  std::vector<double> of_moves(const Vertex& tensor, const std::vector<Layout>& have,
                               const std::vector<Layout>& need) const override {
    std::vector<double> costs = of_one_->of_moves(tensor, have, need);
    for (double& cost : costs) cost *= share_of_step(tensor);
    return costs;
  }
  double of_input(const Vertex& tensor, const Layout& need) const override {
    return share_of_step(tensor) * of_one_->of_input(tensor, need);
  }
  double of_misplacing(const Vertex& tensor, const Layout& layout, std::int64_t sites) const override {
    return share_of_step(tensor) * of_one_->of_misplacing(tensor, layout, sites);
  }
  bool sends_once() const override { return of_one_->sends_once(); }

 private:
  std::unique_ptr<CostModel> of_one_;
};

std::unique_ptr<CostModel> model_of_one_step(CostKind kind, const Machine& machine) {
  switch (kind) {
    case CostKind::bound: return std::make_unique<BoundModel>();
    case CostKind::floats: return std::make_unique<FloatsModel>();
    case CostKind::bytes: return std::make_unique<BytesModel>();
    case CostKind::seconds: break;
  }
  return std::make_unique<SecondsModel>(machine);
}

}  // namespace

double one_site_seconds(const EinGraph& graph, std::size_t vertex, const Machine& machine) {
  const Vertex& computed = graph.vertices[vertex];
  const VertexPlan whole = one_part_per_site(PartitionVector(label_extents(computed).size(), 1));
  return vertex_seconds(graph, computed, whole, machine);
}

std::unique_ptr<CostModel> cost_model(CostKind kind, const Machine& machine) {
  return std::make_unique<AverageStep>(model_of_one_step(kind, machine));
}

}  // namespace einrel
