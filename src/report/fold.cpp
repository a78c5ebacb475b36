#include "report/fold.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_key.h"
#include "einsum/graph/vertex_parameters.h"

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
    put_computation(key, without_parameters(graph.vertices[v]));
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
  /// The vertices of one time: where they begin among the computed ones, and how many they are.
  struct Time {
    std::size_t begin;
    std::size_t length;
  };

  bool is_of(const Time& time, std::size_t v) const {
    return !is_input(graph_.vertices[v]) && numbers_[v] >= time.begin;
  }

  std::size_t operand(std::size_t at, std::size_t o) const { return graph_.vertices[computed_[at]].inputs[o].index; }

  /// Whether two vertices at the same place of two times that follow each other compute alike, and read what their own
  /// times compute at the same places.
  bool computes_alike(const Time& time, std::size_t at) const {
    const std::size_t next = at + time.length;
    if (next >= computed_.size() || kinds_[computed_[at]] != kinds_[computed_[next]]) return false;
    for (std::size_t o = 0; o < graph_.vertices[computed_[at]].inputs.size(); ++o) {
      const std::size_t a = operand(at, o);
      const std::size_t b = operand(next, o);
      const bool is_own = is_of(time, a);
      if (is_own != is_of({time.begin + time.length, time.length}, b)) return false;
      if (is_own && numbers_[b] - numbers_[a] != time.length) return false;
    }
    return true;
  }

  /// Whether they read from before their times the same, or inputs alike, or each time tensors that are as far from
  /// those of the time before: a layer what the layer before it gives, and a layer of gradients, in reverse order, what
  /// its layer gives.
  bool goes_on(std::size_t first, const Time& time, std::size_t at) const {
    for (std::size_t o = 0; o < graph_.vertices[computed_[at]].inputs.size(); ++o) {
      const std::size_t a = operand(at, o);
      const std::size_t b = operand(at + time.length, o);
      if (is_of(time, a) || a == b) continue;
      const bool comes_in = is_input(graph_.vertices[a]);
      if (comes_in != is_input(graph_.vertices[b])) return false;
      if (comes_in && kinds_[a] != kinds_[b]) return false;
      if (comes_in || time.begin < first + 2 * time.length) continue;
      const std::size_t before = operand(at - time.length, o);
      if (numbers_[b] - numbers_[a] != numbers_[a] - numbers_[before]) return false;
    }
    return true;
  }

  template <class Alike>
  bool are_all(const Time& time, const Alike& is_alike) const {
    for (std::size_t at = time.begin; at < time.begin + time.length; ++at) {
      if (!is_alike(at)) return false;
    }
    return true;
  }

  /// How often `length` vertices come from `first` on. The first time and the last may read anything from before.
  std::size_t times_from(std::size_t first, std::size_t length) const {
    std::size_t times = 1;
    for (bool goes = true; goes; ++times) {
      const Time time{first + (times - 1) * length, length};
      if (!are_all(time, [&](std::size_t at) { return computes_alike(time, at); })) break;
      goes = times == 1 || are_all(time, [&](std::size_t at) { return goes_on(first, time, at); });
    }
    return times;
  }

  /// Of all layers that begin at `first`, the length and the times of those that leave the least to show.
  std::pair<std::size_t, std::size_t> longest_from(std::size_t first) const {
    std::pair<std::size_t, std::size_t> best{1, 1};
    std::size_t saved = 0;
    const std::size_t longest = std::min(longest_layer, (computed_.size() - first) / 2);
    for (std::size_t length = 1; length <= longest && saved + length < computed_.size() - first; ++length) {
      const std::size_t times = times_from(first, length);
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
        const bool is_alike = is_input(graph_.vertices[input]) && kinds_[shown] == kinds_[input];
        if (is_alike && !is_read[input]) folding.shown[input] = shown;
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
