#include "plan/formats/implementations.h"

#include <algorithm>
#include <set>

#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

constexpr double most_ways = 300;  // as many as a vertex of four long labels has

/// Whether a matrix in that format has a name among the 19, whatever the numbers: a row or a column is not cut.
bool is_named(const TensorFormat& format, const Shape& bound) {
  if (format.size() != 2) return true;
  const auto is_single = [&](std::size_t d) { return format[d].parts > 1 && bound[d].value() == format[d].parts; };
  if (is_single(0) == is_single(1)) return true;
  return format[is_single(0) ? 1 : 0].parts == 1;
}

/// Finds into how many parts each label may be cut.
class LabelChoices {
 public:
  LabelChoices(const EinGraph& graph, const Vertex& vertex, const std::map<std::string, Format>& given)
      : given_(given), extents_(label_extents(vertex)), reasons_(cannot_be_cut_apart(vertex, graph)) {
    choices_.resize(extents_.size(), {1});
    for (std::size_t l = 0; l < extents_.size(); ++l) add_sizes(l, extents_[l]);
    add(vertex, result_labels(vertex));
    for (const std::size_t operand : operands_read(vertex))
      add(graph[vertex.inputs[operand]], operand_labels(vertex, operand));
    fix(vertex);
  }

  /// Without those of most parts, one after the other, until there are few ways.
  bool drop_smallest_chunks() {
    bool is_dropped = false;
    while (count() > most_ways) {
      const auto most = std::max_element(choices_.begin(), choices_.end(),
                                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
      most->erase(std::prev(most->end()));
      is_dropped = true;
    }
    return is_dropped;
  }

  /// Calls use(parts) for each combination.
  template <class Use>
  void for_each(const Use& use) const {
    std::vector<std::set<std::int64_t>::const_iterator> at;
    for (const auto& choices : choices_) at.push_back(choices.begin());
    std::vector<std::int64_t> parts(choices_.size());
    while (true) {
      for (std::size_t l = 0; l < at.size(); ++l) parts[l] = *at[l];
      use(parts);
      std::size_t l = at.size();
      while (l > 0 && ++at[l - 1] == choices_[l - 1].end()) {
        --l;
        at[l] = choices_[l].begin();
      }
      if (l == 0) return;
    }
  }

 private:
  double count() const {
    double product = 1;
    for (const auto& choices : choices_) product *= static_cast<double>(choices.size());
    return product;
  }

  void add_parts(std::size_t label, std::int64_t parts) {
    if (reasons_[label].empty())
      choices_[label].insert(std::clamp<std::int64_t>(parts, 1, std::max<std::int64_t>(extents_[label].value(), 1)));
  }
  void add_sizes(std::size_t label, Extent extent) {
    for (const std::int64_t size : format_sizes) add_parts(label, parts_of(extent, size));
  }
  void add(const Vertex& tensor, const std::vector<std::optional<std::size_t>>& labels) {
    const auto given = given_.find(tensor.name);
    const TensorFormat format = given == given_.end() ? TensorFormat{} : cuts_in(given->second, tensor.bound);
    for (std::size_t d = 0; d < labels.size(); ++d) {
      if (!labels[d]) continue;
      add_sizes(*labels[d], tensor.bound[d]);
      if (!format.empty()) add_parts(*labels[d], format[d].parts);
    }
  }

  /// A result in a given format: as far as its labels can be cut.
  void fix(const Vertex& vertex) {
    const auto given = given_.find(vertex.name);
    if (given == given_.end()) return;
    const TensorFormat format = cuts_in(given->second, vertex.bound);
    const std::vector<std::optional<std::size_t>> labels = result_labels(vertex);
    for (std::size_t d = 0; d < labels.size(); ++d) {
      if (!labels[d] || !reasons_[*labels[d]].empty()) continue;
      choices_[*labels[d]].clear();
      add_parts(*labels[d], format[d].parts);
    }
  }

  const std::map<std::string, Format>& given_;
  Shape extents_;
  std::vector<std::string> reasons_;
  std::vector<std::set<std::int64_t>> choices_;  ///< fewest parts first
};

/// {parts, 1} where that has the same chunks.
DimensionCut simplest(Extent extent, const DimensionCut& cut) {
  const std::int64_t units = extent.value() / cut.unit;
  return units % cut.parts == 0 ? DimensionCut{cut.parts, 1} : cut;
}

TensorFormat simplest(TensorFormat format, const Shape& bound) {
  for (std::size_t d = 0; d < format.size(); ++d) format[d] = simplest(bound[d], format[d]);
  return format;
}

}  // namespace

Implementation implementation_of(const EinGraph& graph, std::size_t vertex, const std::vector<std::int64_t>& parts) {
  const Vertex& own = graph.vertices[vertex];
  Implementation way{parts, {}, simplest(result_cuts(own, parts), own.bound)};
  for (const std::size_t operand : operands_read(own)) {
    const std::size_t tensor = own.inputs[operand].index;
    const Shape& bound = graph.vertices[tensor].bound;
    NeededFormat need{tensor, simplest(operand_cuts(own, operand, bound, parts), bound)};
    if (std::find(way.reads.begin(), way.reads.end(), need) == way.reads.end()) way.reads.push_back(std::move(need));
  }
  return way;
}

Implementations implementations_of(const EinGraph& graph, std::size_t vertex,
                                   const std::map<std::string, Format>& given) {
  const Vertex& own = graph.vertices[vertex];
  const auto fits = [&](const TensorFormat& format, const Vertex& tensor, bool is_any_name) {
    const auto fixed = given.find(tensor.name);
    if (fixed != given.end() && (&tensor == &own || format == cuts_in(fixed->second, tensor.bound))) return true;
    return (is_any_name || is_named(format, tensor.bound)) && can_hold(format, tensor.bound, tensor.dtype);
  };
  Implementations found;
  LabelChoices choices(graph, own, given);
  found.are_all = !choices.drop_smallest_chunks();
  const auto find = [&](bool is_any_name) {
    choices.for_each([&](const std::vector<std::int64_t>& parts) {
      double calls = 1;
      for (const std::int64_t part : parts) calls *= static_cast<double>(part);
      if (calls > static_cast<double>(most_chunks)) return;
      Implementation way = implementation_of(graph, vertex, parts);
      const bool can_read = std::all_of(way.reads.begin(), way.reads.end(), [&](const NeededFormat& need) {
        return fits(need.format, graph.vertices[need.tensor], is_any_name);
      });
      if (can_read && fits(way.result, own, is_any_name)) found.ways.push_back(std::move(way));
    });
  };
  find(false);
  if (found.ways.empty()) find(true);  // the result is given as one without a name, and so is what is read for it
  return found;
}

}  // namespace einrel
