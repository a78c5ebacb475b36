#include "einsum/passes/common_labels.h"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

struct OwnLabels {
  std::vector<Label>* operator()(Input& /*it has none*/) const { return nullptr; }
  template <class Operation>
  std::vector<Label>* operator()(Operation& operation) const {
    return &operation.labels;
  }
};

/// What is known of the tensors so far: for each dimension the labels that walk through it, none where nobody has said.
class CommonLabels {
 public:
  void name(Vertex& vertex) {
    bounds_.push_back(vertex.bound);
    std::vector<Label>* const labels = std::visit(OwnLabels{}, vertex.op);
    if (labels == nullptr) {
      dimensions_.emplace_back(vertex.bound.size());
      return;
    }
    std::vector<std::optional<std::string>> names(labels->size());
    std::set<std::string> taken;
    for_each_dimension(vertex, [&](const std::vector<std::size_t>& group, std::vector<Label>& known, Extent) {
      if (known.size() != group.size()) return;
      for (std::size_t i = 0; i < group.size(); ++i) {
        std::optional<std::string>& name = names[group[i]];
        const bool is_same = known[i].extent == (*labels)[group[i]].extent;
        if (!name && is_same && taken.insert(known[i].name).second) name = known[i].name;
      }
    });
    for (std::size_t label = 0; label < labels->size(); ++label)
      (*labels)[label].name = names[label] ? *names[label] : fresh((*labels)[label].name);
    for_each_dimension(vertex, [&](const std::vector<std::size_t>& group, std::vector<Label>& known, Extent bound) {
      const bool is_padded = group.size() == 1 && (*labels)[group.front()].extent != bound;
      if (known.empty() && !is_padded) known = chosen(*labels, group);
    });
    dimensions_.emplace_back();
    for (const std::vector<std::size_t>& group : result_groups(vertex))
      dimensions_.back().push_back(chosen(*labels, group));
  }

 private:
  template <class Function>
  void for_each_dimension(const Vertex& vertex, const Function& function) {
    for (std::size_t operand = 0; operand < vertex.inputs.size(); ++operand) {
      std::vector<std::vector<Label>>& known = dimensions_[vertex.inputs[operand].index];
      const LabelGroups groups = operand_groups(vertex, operand);
      for (std::size_t dimension = 0; dimension < groups.size(); ++dimension)
        function(groups[dimension], known[dimension], bounds_[vertex.inputs[operand].index][dimension]);
    }
  }
  static std::vector<Label> chosen(const std::vector<Label>& labels, const std::vector<std::size_t>& group) {
    std::vector<Label> of_group;
    for (const std::size_t label : group) of_group.push_back(labels[label]);
    return of_group;
  }
  std::string fresh(const std::string& wanted) {
    std::string name = wanted;
    std::size_t& last = last_counts_[wanted];
    if (last == 0) last = 1;
    while (!used_.insert(name).second) name = wanted + "_" + std::to_string(++last);
    return name;
  }

  std::vector<std::vector<std::vector<Label>>> dimensions_;  // by vertex
  std::vector<Shape> bounds_;                                // the same
  std::set<std::string> used_;
  std::map<std::string, std::size_t> last_counts_;  // by what was wanted: no smaller one is free
};

}  // namespace

EinGraph with_common_labels(EinGraph graph) {
  CommonLabels common;
  for (Vertex& vertex : graph.vertices) common.name(vertex);
  return graph;
}

}  // namespace einrel
