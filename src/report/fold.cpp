#include "report/fold.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_key.h"

namespace einrel {
namespace {

constexpr std::size_t least_saved = 8;       // vertices; a shorter list is easier to read as it is
constexpr std::size_t longest_layer = 4096;  // vertices

bool are_cut_alike(const std::vector<PlanReport>& reports, std::size_t a, std::size_t b) {
  return std::all_of(reports.begin(), reports.end(), [&](const PlanReport& report) {
    return is_cut_alike(report.plan.vertices[a], report.plan.vertices[b]);
  });
}

/// A number per vertex, the same for those that compute alike and are cut alike.
std::vector<std::size_t> kinds_of(const EinGraph& graph, const std::vector<PlanReport>& reports) {
  std::unordered_map<std::string, std::vector<std::size_t>> seen;
  std::vector<std::size_t> kinds(graph.vertices.size());
  for (std::size_t v = 0; v < kinds.size(); ++v) {
    ByteKey key;
    put_computation(key, graph.vertices[v]);
    key.put(graph.vertices[v].inputs.size());
    std::vector<std::size_t>& alike = seen[key.take()];
    const auto found =
        std::find_if(alike.begin(), alike.end(), [&](std::size_t other) { return are_cut_alike(reports, other, v); });
    kinds[v] = found == alike.end() ? v : *found;
    if (found == alike.end()) alike.push_back(v);
  }
  return kinds;
}

/// Finds what repeats among the computed vertices, which it numbers from 0.
class Folder {
 public:
  Folder(const EinGraph& graph, const std::vector<PlanReport>& reports)
      : graph_(graph), kinds_(kinds_of(graph, reports)), numbers_(graph.vertices.size()) {
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      if (is_input(graph.vertices[v])) continue;
      numbers_[v] = computed_.size();
      computed_.push_back(v);
    }
  }

  Folding fold() const {
    Folding folding = unfolded(graph_);
    for (std::size_t first = 0; first < computed_.size();) {
      const auto [length, times] = longest_from(first);
      if (times * length - length < least_saved) {
        ++first;
        continue;
      }
      take(first, length, times, folding);
      first += length * times;
    }
    fold_inputs(folding);
    std::fill(folding.alike.begin(), folding.alike.end(), std::vector<std::size_t>{});
    for (std::size_t v = 0; v < folding.shown.size(); ++v) folding.alike[folding.shown[v]].push_back(v);
    return folding;
  }

 private:
  /// Whether the operands of a computed vertex and of that which is `length` after it are the same tensor, or as far
  /// before them, or inputs alike. The first time, from `first` on, may read anything from before.
  bool reads_alike(std::size_t first, std::size_t at, std::size_t length) const {
    const std::vector<VertexId>& one = graph_.vertices[computed_[at]].inputs;
    const std::vector<VertexId>& other = graph_.vertices[computed_[at + length]].inputs;
    for (std::size_t o = 0; o < one.size(); ++o) {
      const std::size_t a = one[o].index;
      const std::size_t b = other[o].index;
      if (a == b) continue;
      const bool comes_in = is_input(graph_.vertices[a]);
      if (is_input(graph_.vertices[b])) {
        if (!comes_in || kinds_[a] != kinds_[b]) return false;
      } else if (comes_in || numbers_[b] - numbers_[a] != length) {
        const bool is_from_before = comes_in || numbers_[a] < first;
        if (!is_from_before || at >= first + length || numbers_[b] < first) return false;
      }
    }
    return true;
  }

  bool is_alike(std::size_t first, std::size_t at, std::size_t length) const {
    return at + length < computed_.size() && kinds_[computed_[at]] == kinds_[computed_[at + length]] &&
           reads_alike(first, at, length);
  }

  /// Of all layers that begin at `first`, the length and the times of those that leave the least to show.
  std::pair<std::size_t, std::size_t> longest_from(std::size_t first) const {
    std::pair<std::size_t, std::size_t> best{1, 1};
    std::size_t saved = 0;
    const std::size_t longest = std::min(longest_layer, (computed_.size() - first) / 2);
    for (std::size_t length = 1; length <= longest && saved + length < computed_.size() - first; ++length) {
      std::size_t at = first;
      while (is_alike(first, at, length)) ++at;
      const std::size_t times = 1 + (at - first) / length;
      if (length * (times - 1) <= saved) continue;
      saved = length * (times - 1);
      best = {length, times};
    }
    return best;
  }

  void take(std::size_t first, std::size_t length, std::size_t times, Folding& folding) const {
    FoldedGroup group{{}, times, computed_[first + length * times - 1]};
    for (std::size_t at = 0; at < length * times; ++at) {
      const std::size_t shown = computed_[first + at % length];
      folding.shown[computed_[first + at]] = shown;
      if (at < length) group.vertices.push_back(shown);
    }
    folding.groups.push_back(std::move(group));
  }

  /// An input that only vertices read which are not shown: that of the vertex which is.
  void fold_inputs(Folding& folding) const {
    std::vector<bool> is_read(graph_.vertices.size(), false);  // by a vertex that is shown
    for (const std::size_t v : computed_) {
      if (folding.shown[v] != v) continue;
      for (const VertexId input : graph_.vertices[v].inputs) is_read[input.index] = true;
    }
    for (const std::size_t v : computed_) {
      const std::vector<VertexId>& inputs = graph_.vertices[v].inputs;
      for (std::size_t o = 0; o < inputs.size(); ++o) {
        const std::size_t shown = graph_.vertices[folding.shown[v]].inputs[o].index;
        const std::size_t input = inputs[o].index;
        if (is_input(graph_.vertices[input]) && !is_read[input]) folding.shown[input] = shown;
      }
    }
  }

  const EinGraph& graph_;
  std::vector<std::size_t> kinds_;
  std::vector<std::size_t> numbers_;   // by vertex
  std::vector<std::size_t> computed_;  // vertices
};

}  // namespace

Folding unfolded(const EinGraph& graph) {
  Folding folding{{}, std::vector<std::size_t>(graph.vertices.size()), {}};
  std::iota(folding.shown.begin(), folding.shown.end(), std::size_t{0});
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) folding.alike.push_back({v});
  return folding;
}

Folding fold(const EinGraph& graph, const std::vector<PlanReport>& reports) { return Folder(graph, reports).fold(); }

}  // namespace einrel
