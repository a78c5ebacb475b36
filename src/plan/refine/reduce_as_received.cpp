#include "plan/refine/reduce_as_received.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "einsum/graph/vertex_facts.h"
#include "machine/seconds.h"
#include "plan/layout.h"
#include "plan/placed_inputs.h"

namespace einrel {
namespace {

/// Results are read and written once more for every piece: a kernel does so anyhow after this many positions.
constexpr std::int64_t least_extent = 256;
/// Scalar operations of one part: what a product takes to be worth several threads, far more than a task costs.
constexpr double least_flops = nominal_processor.flops_per_core * packed_part_seconds;

class Pieces {
 public:
  Pieces(const EinGraph& graph, Plan& plan) : graph_(graph), plan_(plan), readers_(graph.vertices.size(), 0) {
    for (const Vertex& vertex : graph.vertices) {
      fewest_parts_read_.emplace_back(vertex.bound.size(), std::numeric_limits<std::int64_t>::max());
      for (const std::size_t operand : operands_read(vertex)) ++readers_[vertex.inputs[operand].index];
    }
  }

  /// Vertices in their order: what an earlier one has got is taken from there.
  void cut(std::size_t v) {
    cut_along_reduced(v);
    remember_reading(v);
  }

 private:
  void cut_along_reduced(std::size_t v) {
    const Vertex& vertex = graph_.vertices[v];
    if (!reduces_onto_result(vertex)) return;
    const PartitionVector most = most_parts(vertex, graph_);
    double flops_of_part = flops(vertex);
    for (const std::int64_t parts : plan_.vertices[v].parts) flops_of_part /= static_cast<double>(parts);
    for (const std::size_t label : reduced_labels(vertex)) {
      if (most[label] >= least_extent) lay_along(v, label);
      std::int64_t& parts = plan_.vertices[v].parts[label];
      const std::int64_t pieces = parts == 1 ? pieces_along(v, label) : 1;
      if (pieces == 1 || most[label] / pieces < least_extent) continue;
      if (flops_of_part / static_cast<double>(pieces) < least_flops) continue;
      parts = pieces;
      flops_of_part /= static_cast<double>(pieces);
      cut_inputs(v, label);
    }
  }

  void remember_reading(std::size_t v) {
    const Vertex& vertex = graph_.vertices[v];
    for (const std::size_t operand : operands_read(vertex)) {
      const PartitionVector parts = operand_parts(vertex, operand, plan_.vertices[v].parts);
      PartitionVector& least = fewest_parts_read_[vertex.inputs[operand].index];
      for (std::size_t dim = 0; dim < parts.size(); ++dim) least[dim] = std::min(least[dim], parts[dim]);
    }
  }

  /// How an operand lies along a label.
  struct Along {
    std::size_t tensor = 0;
    std::size_t dim = 0;
    LayoutAxis axis;
    bool is_window = false;
  };

  std::vector<Along> along(std::size_t v, std::size_t label) const {
    const Vertex& vertex = graph_.vertices[v];
    std::vector<Along> found;
    for (const std::size_t operand : operands_read(vertex)) {
      const std::size_t tensor = vertex.inputs[operand].index;
      const Layout layout = result_layout(graph_.vertices[tensor], plan_.vertices[tensor]);
      const std::vector<std::optional<std::size_t>> labels = operand_labels(vertex, operand);
      for (std::size_t dim = 0; dim < labels.size(); ++dim) {
        if (labels[dim] != label) continue;
        const bool is_whole = label_extents(vertex)[label] == graph_.vertices[tensor].bound[dim];
        const EinSum* const einsum = einsum_of(vertex);
        const bool is_plain = einsum == nullptr || plain_label(einsum->operands[operand].indices[dim]);
        found.push_back({tensor, dim, layout.axes[dim], einsum != nullptr && !(is_plain && is_whole)});
      }
    }
    return found;
  }

  /// An input that lies on one site along the label may be read in any pieces, if nobody else wants it whole.
  bool can_follow(const Along& operand) const {
    return lies_freely(graph_.vertices[operand.tensor]) && readers_[operand.tensor] == 1 &&
           operand.axis.cut == DimensionCut{1, 1};
  }

  /// The only dimension that is spread over sites of an input that goes whole to all sites of a vertex, its one reader:
  /// it could be any dimension, the same bytes would move.
  std::optional<std::size_t> spread_dim(std::size_t v, std::size_t operand) const {
    const Vertex& vertex = graph_.vertices[v];
    const std::size_t tensor = vertex.inputs[operand].index;
    if (!lies_freely(graph_.vertices[tensor]) || readers_[tensor] != 1) return std::nullopt;
    for (const std::optional<std::size_t> label : operand_labels(vertex, operand)) {
      if (!label || plan_.vertices[v].parts[*label] > 1) return std::nullopt;
    }
    const std::vector<std::int64_t>& grid = plan_.vertices[tensor].grid;
    const auto is_spread = [](std::int64_t sites) { return sites > 1; };
    if (std::count_if(grid.begin(), grid.end(), is_spread) != 1) return std::nullopt;
    return static_cast<std::size_t>(std::find_if(grid.begin(), grid.end(), is_spread) - grid.begin());
  }

  /// Spreads such inputs along a label that is reduced, where all other operands come in as many pieces of it.
  void lay_along(std::size_t v, std::size_t label) {
    const Vertex& vertex = graph_.vertices[v];
    const std::vector<Along> operands = along(v, label);
    for (const std::size_t operand : operands_read(vertex)) {
      const std::size_t tensor = vertex.inputs[operand].index;
      const std::optional<std::size_t> spread = spread_dim(v, operand);
      const auto here =
          std::find_if(operands.begin(), operands.end(), [&](const Along& each) { return each.tensor == tensor; });
      if (!spread || here == operands.end() || here->dim == *spread) continue;
      VertexPlan& input = plan_.vertices[tensor];
      const std::int64_t pieces = input.parts[*spread];
      const bool others_agree = std::all_of(operands.begin(), operands.end(), [&](const Along& other) {
        return other.tensor == tensor || other.axis.cut == DimensionCut{pieces, 1} || can_follow(other);
      });
      if (!others_agree || graph_.vertices[tensor].bound[here->dim].value() / pieces < least_extent) continue;
      std::swap(input.parts[*spread], input.parts[here->dim]);
      std::swap(input.grid[*spread], input.grid[here->dim]);
      std::swap(input.strides[*spread], input.strides[here->dim]);
    }
  }

  /// In how many pieces, from different sites, all operands come that have the label; 1 where they differ, and where an
  /// earlier vertex got one in larger pieces, which would have to be cut.
  std::int64_t pieces_along(std::size_t v, std::size_t label) const {
    const std::vector<Along> operands = along(v, label);
    std::int64_t pieces = 1;
    for (const Along& operand : operands) {
      if (operand.axis.grid > 1) pieces = std::max(pieces, operand.axis.cut.parts);
    }
    const bool agree = std::all_of(operands.begin(), operands.end(), [&](const Along& operand) {
      if (operand.is_window) return false;
      return (operand.axis.cut == DimensionCut{pieces, 1} &&
              fewest_parts_read_[operand.tensor][operand.dim] >= pieces) ||
             can_follow(operand);
    });
    return agree ? pieces : 1;
  }

  void cut_inputs(std::size_t v, std::size_t label) {
    for (const Along& operand : along(v, label)) {
      if (can_follow(operand)) plan_.vertices[operand.tensor].parts[operand.dim] = plan_.vertices[v].parts[label];
    }
  }

  const EinGraph& graph_;
  Plan& plan_;
  std::vector<int> readers_;
  std::vector<PartitionVector> fewest_parts_read_;  ///< by tensor and dimension, of the vertices so far
};

}  // namespace

void reduce_as_received(const EinGraph& graph, Plan& plan) {
  Pieces pieces(graph, plan);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) pieces.cut(v);
}

Plan reduced_at_once(const EinGraph& graph, Plan plan) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    VertexPlan& cut = plan.vertices[v];
    const auto put_together = [&](std::size_t label) {
      if (cut.grid[label] == 1) cut.parts[label] = 1;
    };
    if (is_input(graph.vertices[v])) {
      for (std::size_t dim = 0; dim < cut.parts.size(); ++dim) put_together(dim);
    } else {
      for (const std::size_t label : reduced_labels(graph.vertices[v])) put_together(label);
    }
  }
  return plan;
}

}  // namespace einrel
