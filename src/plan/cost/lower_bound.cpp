#include "plan/cost/lower_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "einsum/graph/vertex_facts.h"
#include "plan/cost/cost.h"

namespace einrel {
namespace {

/// Exchanges volume between two sides at a time, each time as much as is best, until what any box can still gain is
/// nothing.
class FaceSearch {
 public:
  FaceSearch(const BoxFaces& faces, double volume) : faces_(faces), has_(faces.extents.size()) {
    for (const double extent : faces.extents) most_.push_back(std::log(extent));
    double left = std::log(volume);
    for (const double most : most_) {
      sides_.push_back(std::clamp(left, 0.0, most));
      left -= sides_.back();
    }
    for (std::size_t l = 0; l < has_.size(); ++l) {
      for (const BoxFaces::Tensor& tensor : faces.tensors) {
        has_[l].push_back(std::find(tensor.labels.begin(), tensor.labels.end(), l) != tensor.labels.end());
      }
    }
  }

  double run() {
    constexpr int most_sweeps = 2000;
    constexpr double precision = 1e-9;
    for (int sweep = 0;; ++sweep) {
      const double gap = most_to_gain();
      const double sum = std::accumulate(areas_.begin(), areas_.end(), 0.0);
      if (gap <= precision * sum || sweep == most_sweeps) return sum - gap;
      for (std::size_t a = 0; a < sides_.size(); ++a) {
        for (std::size_t b = a + 1; b < sides_.size(); ++b) exchange(a, b);
      }
    }
  }

 private:
  double area(std::size_t t) const {
    double log = 0;
    for (const std::size_t label : faces_.tensors[t].labels) log += sides_[label];
    return faces_.tensors[t].weight * std::exp(log);
  }

  /// Side a times e^x, side b divided by it: of the faces, A * e^x have only a, B * e^-x only b.
  void exchange(std::size_t a, std::size_t b) {
    double only_a = 0;
    double only_b = 0;
    for (std::size_t t = 0; t < faces_.tensors.size(); ++t) {
      if (has_[a][t] == has_[b][t]) continue;
      (has_[a][t] ? only_a : only_b) += area(t);
    }
    if (only_a == only_b) return;
    constexpr double far = std::numeric_limits<double>::infinity();
    const double best = only_a == 0 ? far : only_b == 0 ? -far : std::log(only_b / only_a) / 2;
    const double least = std::max(-sides_[a], sides_[b] - most_[b]);
    const double most = std::min(most_[a] - sides_[a], sides_[b]);
    const double step = std::clamp(best, std::min(least, 0.0), std::max(most, 0.0));
    sides_[a] += step;
    sides_[b] -= step;
  }

  /// By how much the faces can fall at most: they are convex, so they lie above their tangent plane, which is least
  /// where the labels with the smallest slopes are longest.
  double most_to_gain() {
    areas_.clear();
    for (std::size_t t = 0; t < faces_.tensors.size(); ++t) areas_.push_back(area(t));
    std::vector<double> slopes(sides_.size(), 0);
    for (std::size_t l = 0; l < sides_.size(); ++l) {
      for (std::size_t t = 0; t < areas_.size(); ++t) slopes[l] += has_[l][t] ? areas_[t] : 0;
    }
    std::vector<std::size_t> order(sides_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return slopes[x] < slopes[y]; });
    double left = std::accumulate(sides_.begin(), sides_.end(), 0.0);
    double gain = 0;
    for (const std::size_t label : order) {
      const double side = std::min(left, most_[label]);
      left -= side;
      gain += slopes[label] * (sides_[label] - side);
    }
    return std::max(gain, 0.0);
  }

  const BoxFaces& faces_;
  std::vector<std::vector<bool>> has_;  // per label and tensor
  std::vector<double> most_;            // logarithms, like the sides
  std::vector<double> sides_;
  std::vector<double> areas_;  // per tensor, weighted
};

/// Whether every step of a body multiplies or is a number, and every operand stands in it once.
bool is_product(const ScalarExpr& body, std::size_t operands) {
  std::vector<int> seen(operands, 0);
  for (const ScalarStep& step : body.steps) {
    if (const auto* const value = std::get_if<OperandValue>(&step.op)) ++seen[value->operand];
    const auto* const binary = std::get_if<ApplyBinary>(&step.op);
    const bool is_other = std::holds_alternative<LabelValue>(step.op) || std::holds_alternative<ApplyUnary>(step.op) ||
                          std::holds_alternative<ApplyWhere>(step.op);
    if (is_other || (binary != nullptr && binary->function != BinaryFunction::multiply)) return false;
  }
  return std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; });
}

/// The labels of an operand, which are its whole dimensions, each once.
std::optional<std::vector<std::size_t>> plain_labels(const Vertex& vertex, const EinGraph& graph, std::size_t operand) {
  const auto& einsum = std::get<EinSum>(vertex.op);
  const Shape& bound = graph[vertex.inputs[operand]].bound;
  std::vector<std::size_t> labels;
  for (const std::optional<std::size_t> label : operand_labels(vertex, operand)) {
    if (!label || einsum.labels[*label].extent != bound[labels.size()]) return std::nullopt;
    labels.push_back(*label);
  }
  if (std::set<std::size_t>(labels.begin(), labels.end()).size() != labels.size()) return std::nullopt;
  return labels;
}

/// Weights are bytes of an element; the result's is last.
std::optional<BoxFaces> faces_of(const Vertex& vertex, const EinGraph& graph) {
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr || einsum->reducer != Reducer::sum || !is_product(einsum->body, einsum->operands.size()))
    return std::nullopt;
  if (std::set<VertexId>(vertex.inputs.begin(), vertex.inputs.end()).size() != vertex.inputs.size())
    return std::nullopt;
  BoxFaces faces;
  for (const Label& label : einsum->labels) {
    if (label.extent == Extent(0)) return std::nullopt;
    faces.extents.push_back(static_cast<double>(label.extent.value()));
  }
  for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
    auto labels = plain_labels(vertex, graph, o);
    if (!labels) return std::nullopt;
    faces.tensors.push_back({static_cast<double>(size_of(graph[vertex.inputs[o]].dtype)), std::move(*labels)});
  }
  faces.tensors.push_back({static_cast<double>(partial_bytes(vertex)), einsum->output});
  return faces;
}

std::optional<double> bytes_between(const BoxFaces& faces, double sites) {
  double all = 0;
  for (const BoxFaces::Tensor& tensor : faces.tensors) {
    double size = tensor.weight;
    for (const std::size_t label : tensor.labels) size *= faces.extents[label];
    all += size;
  }
  const double bindings = std::accumulate(faces.extents.begin(), faces.extents.end(), 1.0, std::multiplies<>());
  if (sites > bindings) return std::nullopt;
  const double least = sites * least_faces(faces, bindings / sites) - all;
  return least < 1 ? 0 : least;  // less than a byte is rounding
}

}  // namespace

double least_faces(const BoxFaces& faces, double volume) { return FaceSearch(faces, volume).run(); }

std::optional<double> least_bytes(const Vertex& vertex, const EinGraph& graph, std::int64_t sites) {
  const std::optional<BoxFaces> faces = faces_of(vertex, graph);
  return faces ? bytes_between(*faces, static_cast<double>(sites)) : std::nullopt;
}

std::vector<std::optional<double>> least_bytes(const EinGraph& graph, const Plan& plan) {
  std::map<std::pair<BoxFaces, std::int64_t>, std::optional<double>> known;
  std::vector<std::optional<double>> all;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const std::optional<BoxFaces> faces = faces_of(graph.vertices[v], graph);
    all.emplace_back();
    if (!faces) continue;
    const std::int64_t sites = sites_used(plan.vertices[v]);
    const auto [at, is_new] = known.try_emplace({*faces, sites});
    if (is_new) at->second = bytes_between(*faces, static_cast<double>(sites));
    all.back() = at->second;
  }
  return all;
}

}  // namespace einrel
