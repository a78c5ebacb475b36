#include "plan/placed_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <variant>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/layout.h"

namespace einrel {
namespace {

constexpr std::string_view copies = "copies";

/// Of each dimension of an input the names of the labels by which it is read, as in A[i,j].
std::vector<std::set<std::string>> labels_read(const EinGraph& graph, std::size_t input) {
  std::vector<std::set<std::string>> labels(graph.vertices[input].bound.size());
  for (const Vertex& reader : graph.vertices) {
    for (std::size_t operand = 0; operand < reader.inputs.size(); ++operand) {
      if (reader.inputs[operand].index != input) continue;
      const std::vector<std::optional<std::size_t>> read = operand_labels(reader, operand);
      const std::vector<std::string> names = label_names(reader);
      for (std::size_t d = 0; d < labels.size(); ++d) {
        if (read[d]) labels[d].insert(names[*read[d]]);
      }
    }
  }
  return labels;
}

/// What a placement says of one input, as digits.
class Digits {
 public:
  Digits(const EinGraph& graph, std::size_t input, std::int64_t sites)
      : tensor_(graph.vertices[input]), labels_(labels_read(graph, input)), sites_(sites) {}

  std::vector<SiteDigit> of(const GivenPlacement& given) const {
    std::vector<SiteDigit> digits;
    std::set<std::size_t> cut;
    std::int64_t left = sites_;  // of whole numbers of each digit
    for (const auto& [along, count] : given) {
      if (count < 1) fail(fmt::format("{} sites along '{}'", count, printable(along)), "give 1 or more");
      const std::optional<std::size_t> dimension = dimension_of(along);
      if (dimension && !cut.insert(*dimension).second)
        fail(fmt::format("'{}' is a dimension that it names already", printable(along)), "name each once");
      if (dimension && count > std::max<std::int64_t>(tensor_.bound[*dimension].value(), 1))
        fail(fmt::format("{} parts of '{}', which has {} positions", count, printable(along),
                         tensor_.bound[*dimension].value()),
             "give at most as many parts as positions");
      if (count > left) fail(fmt::format("its sites are more than {}", sites_), "plan for more sites, or name fewer");
      left /= count;
      if (count > 1) digits.push_back({dimension, count});
    }
    return digits;
  }

 private:
  /// Nothing of copies.
  std::optional<std::size_t> dimension_of(const std::string& along) const {
    if (along == copies) {
      if (std::any_of(labels_.begin(), labels_.end(),
                      [](const auto& names) { return names.contains(std::string(copies)); }))
        fail("'copies' is one of its labels, too", "give the number of that dimension, or another name to the label");
      return std::nullopt;
    }
    std::vector<std::size_t> found;
    for (std::size_t d = 0; d < labels_.size(); ++d) {
      const auto from_end = static_cast<std::int64_t>(d) - static_cast<std::int64_t>(labels_.size());
      if (labels_[d].contains(along) || along == std::to_string(d) || along == std::to_string(from_end))
        found.push_back(d);
    }
    if (found.size() > 1) {
      fail(fmt::format("'{}' stands for several dimensions, {}", printable(along), fmt::join(found, " and ")),
           fmt::format("give the number of one, as in {}", found.front()));
    }
    if (found.empty()) fail(fmt::format("nothing reads it by a label '{}'", printable(along)), known_text());
    return found.front();
  }

  std::string known_text() const {
    std::vector<std::string> dimensions;
    for (std::size_t d = 0; d < labels_.size(); ++d)
      dimensions.push_back(labels_[d].empty() ? std::to_string(d)
                                              : fmt::format("{} or {}", d, fmt::join(labels_[d], " or ")));
    dimensions.emplace_back(copies);
    return fmt::format("name {}", fmt::join(dimensions, ", "));
  }

  [[noreturn]] void fail(const std::string& what, const std::string& help) const {
    throw UserError(
        fmt::format("the placement of '{}' cannot be: {}\n  help: {}", printable(tensor_.name), what, help));
  }

  const Vertex& tensor_;
  std::vector<std::set<std::string>> labels_;
  std::int64_t sites_;
};

std::size_t input_named(const EinGraph& graph, const std::string& name) {
  std::vector<std::string> known;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (!is_input(graph.vertices[v])) continue;
    if (graph.vertices[v].name != name) {
      known.push_back(graph.vertices[v].name);
    } else if (is_state(graph, v)) {
      throw UserError(
          fmt::format("a placement of '{0}': it is a state, which lies where its step leaves it\n  help: "
                      "leave '{0}' out; placements are of inputs",
                      printable(name)));
    } else {
      return v;
    }
  }
  const std::string near = did_you_mean(name, known);
  throw UserError(
      fmt::format("a placement of '{0}': the program has no input '{0}'{1}", printable(name),
                  near.empty() ? "\n  help: name an input that the program's outputs are computed from" : "; " + near));
}

/// The placement that is given of a tensor, if any.
struct PlacementOf {
  const std::vector<SiteDigit>* operator()(const Input& input) const {
    return input.placement ? &*input.placement : nullptr;
  }
  template <class Computed>
  const std::vector<SiteDigit>* operator()(const Computed& /*op*/) const {
    return nullptr;
  }
};

const std::vector<SiteDigit>* placement_of(const Vertex& tensor) { return std::visit(PlacementOf{}, tensor.op); }

}  // namespace

EinGraph with_placed_inputs(EinGraph graph, const GivenPlacements& given, std::int64_t sites) {
  for (const auto& [name, placement] : given) {
    const std::size_t input = input_named(graph, name);
    std::get<Input>(graph.vertices[input].op).placement = Digits(graph, input, sites).of(placement);
  }
  return graph;
}

std::optional<VertexPlan> given_plan(const Vertex& tensor) {
  const std::vector<SiteDigit>* const digits = placement_of(tensor);
  if (digits == nullptr) return std::nullopt;
  VertexPlan plan = one_part_per_site(PartitionVector(tensor.bound.size(), 1));
  std::int64_t stride = 1;
  for (auto digit = digits->rbegin(); digit != digits->rend(); ++digit) {
    if (digit->dimension) {
      plan.parts[*digit->dimension] = plan.grid[*digit->dimension] = digit->sites;
      plan.strides[*digit->dimension] = stride;
    } else {
      plan.copies.push_back({digit->sites, stride});
    }
    stride *= digit->sites;
  }
  return plan;
}

bool lies_freely(const Vertex& tensor) { return is_input(tensor) && placement_of(tensor) == nullptr; }

std::int64_t sites_of_placed_inputs(const EinGraph& graph) {
  std::int64_t most = 1;
  for (const Vertex& vertex : graph.vertices) {
    const std::optional<VertexPlan> plan = given_plan(vertex);
    if (plan) most = std::max(most, sites_used(*plan) * copies_of(*plan));
  }
  return most;
}

std::string placement_fault(const EinGraph& graph, const Plan& plan) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    const std::optional<VertexPlan> given = given_plan(vertex);
    if (given && result_layout(vertex, *given) != result_layout(vertex, plan.vertices[v]))
      return fmt::format("the input {} lies otherwise than its placement says", vertex.name);
  }
  return "";
}

}  // namespace einrel
