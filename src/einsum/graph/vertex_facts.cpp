#include "einsum/graph/vertex_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "einsum/expr/precedence.h"
#include "einsum/graph/print.h"
#include "einsum/graph/selection.h"
#include "tensor/convert.h"

namespace einrel {
namespace {

using MaybeLabels = std::vector<std::optional<std::size_t>>;

MaybeLabels first_of(const LabelGroups& groups) {
  MaybeLabels labels;
  labels.reserve(groups.size());
  for (const std::vector<std::size_t>& group : groups) {
    labels.push_back(group.empty() ? std::nullopt : std::optional(group.front()));
  }
  return labels;
}

LabelGroups groups_of(const MaybeLabels& labels) {
  LabelGroups groups;
  groups.reserve(labels.size());
  for (const std::optional<std::size_t> label : labels) {
    groups.push_back(label ? std::vector{*label} : std::vector<std::size_t>{});
  }
  return groups;
}

MaybeLabels each_of(const std::vector<std::size_t>& labels) { return {labels.begin(), labels.end()}; }

std::vector<std::size_t> first_numbers(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

struct ResultLabels {
  const Vertex& vertex;
  MaybeLabels operator()(const Input&) const { return each_of(first_numbers(vertex.bound.size())); }
  MaybeLabels operator()(const EinSum& einsum) const { return each_of(einsum.output); }
  MaybeLabels operator()(const View& view) const { return first_of(view.to); }
  MaybeLabels operator()(const Opaque& opaque) const { return each_of(dimensions_of(opaque)); }
};

struct OperandLabels {
  std::size_t operand = 0;
  MaybeLabels operator()(const Input&) const { throw Bug("an input reads nothing"); }
  MaybeLabels operator()(const EinSum& einsum) const {
    const std::vector<Index>& indices = einsum.operands[operand].indices;
    MaybeLabels labels;
    labels.reserve(indices.size());
    for (const Index& index : indices) labels.push_back(label_along(einsum, index));
    return labels;
  }
  MaybeLabels operator()(const View& view) const { return first_of(view.from); }
  MaybeLabels operator()(const Opaque& opaque) const { return each_of(opaque.operand); }
};

struct OperandsRead {
  std::vector<std::size_t> operator()(const Input&) const { return {}; }
  std::vector<std::size_t> operator()(const EinSum& einsum) const { return operands_read(einsum.body); }
  std::vector<std::size_t> operator()(const View&) const { return {0}; }
  std::vector<std::size_t> operator()(const Opaque&) const { return {0}; }
};

/// A number as an element of that type gives it to a computation in the other, as a double.
double read_from(DType stored, DType computed, double value) {
  return with_stored_type(stored, [&]<class Stored>() {
    const auto element = widen(narrow<Stored>(value));
    return with_stored_type(computed,
                            [&]<class Computed>() { return static_cast<double>(widen(narrow<Computed>(element))); });
  });
}

/// Why the padding of an operand cannot be an element of a chunk; "" where it can, or there is none.
std::string padding_obstacle(const EinSum& einsum, std::size_t operand, const Vertex& tensor) {
  const std::optional<double> pad = einsum.operands[operand].pad;
  if (!pad) return "";
  for (const ScalarStep& step : einsum.body.steps) {
    if (operand_read(step) != operand) continue;
    if (read_from(tensor.dtype, step.type, *pad) == read_from(step.type, step.type, *pad)) continue;
    return fmt::format("no {} is its padding {}", name_of(tensor.dtype), number_text(*pad));
  }
  return "";
}

/// How far apart the first and the last place are that an index has.
double reach_of(const EinSum& einsum, const Index& index) {
  double reach = 1;
  for (const IndexTerm& term : index.terms) {
    reach += std::abs(static_cast<double>(term.coefficient)) *
             static_cast<double>(std::max<std::int64_t>(einsum.labels[term.label].extent.value() - 1, 0));
  }
  return reach;
}

/// Why labels may not be cut.
struct CutReasons {
  const Vertex& vertex;
  const EinGraph& graph;
  bool may_overlap = true;  ///< chunks

  std::vector<std::string> operator()(const Input&) const { return std::vector<std::string>(vertex.bound.size()); }

  std::vector<std::string> operator()(const EinSum& einsum) const {
    std::vector<std::string> result(einsum.labels.size());
    for (std::size_t i = 0; i < einsum.operands.size(); ++i) {
      for (std::size_t d = 0; d < einsum.operands[i].indices.size(); ++d) {
        for (const IndexTerm& term : einsum.operands[i].indices[d].terms) {
          if (result[term.label].empty()) result[term.label] = obstacle(einsum, i, d, term.label);
        }
      }
    }
    add_windows_back(einsum, result);
    return result;
  }

  /// Why a label of the index in dimension `d` of an operand stays whole; "" where the dimension can be cut with it.
  std::string obstacle(const EinSum& einsum, std::size_t operand, std::size_t d, std::size_t label) const {
    const Vertex& tensor = graph[vertex.inputs[operand]];
    const Access read{einsum.operands[operand].indices, std::nullopt};
    const Index& index = read.indices[d];
    const bool is_plain = plain_label(index).has_value();
    if (is_plain && einsum.labels[label].extent == tensor.bound[d]) return "";
    const std::string text = access_text(read, tensor.name, einsum.labels);
    if (may_overlap && is_alone_along(einsum, index, label)) {
      const std::string padding = padding_obstacle(einsum, operand, tensor);
      if (!padding.empty()) return fmt::format("{} is read beyond its end in {}, and {}", tensor.name, text, padding);
      const auto extent = static_cast<double>(tensor.bound[d].value());
      if (!einsum.operands[operand].pad || reach_of(einsum, index) <= 2 * extent) return "";
      return fmt::format("most of what it reads is padding of {}", text);
    }
    if (is_plain)
      return fmt::format("its extent is not that of dimension {} of {}, which it is in {}", d, tensor.name, text);
    return fmt::format("it is part of the window index {} of {}", index_text(index, einsum.labels), text);
  }

  /// Whether chunks of a dimension that is read at this index can count those of the label.
  static bool is_alone_along(const EinSum& einsum, const Index& index, std::size_t label) {
    const auto times = std::count_if(index.terms.begin(), index.terms.end(),
                                     [&](const IndexTerm& term) { return term.label == label; });
    return label_along(einsum, index) == label && times == 1;
  }

  /// Of the labels of a result that others say, as in a transposed window over several dimensions, one: chunks of two
  /// would be looped over.
  static void add_windows_back(const EinSum& einsum, std::vector<std::string>& result) {
    const std::optional<Selected> found = selected(einsum);
    if (!found) return;
    std::vector<std::size_t> said;
    for (const Selection& selection : found->selections) {
      const bool is_output =
          std::find(einsum.output.begin(), einsum.output.end(), selection.label) != einsum.output.end();
      if (is_output && selection.position.elements.empty()) said.push_back(selection.label);
    }
    const auto extent = [&](std::size_t label) { return einsum.labels[label].extent.value(); };
    const auto largest =
        std::max_element(said.begin(), said.end(), [&](std::size_t a, std::size_t b) { return extent(a) < extent(b); });
    for (const std::size_t label : said) {
      if (label == *largest || !result[label].empty()) continue;
      result[label] =
          fmt::format("it is where other labels say, as is {}, which may be cut", einsum.labels[*largest].name);
    }
  }

  std::vector<std::string> operator()(const View& view) const {
    std::vector<std::string> result(view.labels.size());
    for (const auto* groups : {&view.from, &view.to}) {
      for (const std::vector<std::size_t>& group : *groups) {
        std::vector<std::string> names;
        for (const std::size_t label : group) names.push_back(view.labels[label].name);
        for (std::size_t i = 1; i < group.size(); ++i)
          result[group[i]] = fmt::format("it is not the first label of the group ({})", fmt::join(names, " "));
      }
    }
    const bool is_empty = std::any_of(view.labels.begin(), view.labels.end(),
                                      [](const Label& label) { return label.extent == Extent(0); });
    if (is_empty) result.assign(view.labels.size(), "the tensor has no elements");
    return result;
  }

  std::vector<std::string> operator()(const Opaque& opaque) const {
    std::vector<std::string> result(opaque.labels.size());
    const std::string why = fmt::format("{} takes whole matrices", name_of(result_of(opaque)));
    std::fill(result.begin() + static_cast<std::ptrdiff_t>(batch_labels(opaque)), result.end(), why);
    return result;
  }
};

double bindings_of(const std::vector<Label>& labels) {
  return std::accumulate(labels.begin(), labels.end(), 1.0, [](double product, const Label& label) {
    return product * static_cast<double>(label.extent.value());
  });
}

struct Flops {
  double operator()(const Input&) const { return 0; }
  double operator()(const View&) const { return 0; }
  double operator()(const Opaque& opaque) const {
    const auto extent = [&](std::size_t l) {
      return static_cast<double>(opaque.labels[batch_labels(opaque) + l].extent.value());
    };
    const auto batches = static_cast<double>(batches_of(opaque));
    if (opaque.function == OpaqueFunction::inverse) return 2 * batches * extent(0) * extent(0) * extent(0);
    const double longer = std::max(extent(0), extent(1));
    const double shorter = extent(2);
    // Golub and van Loan, Matrix Computations, 5.2.
    const bool is_longer = opaque.output == 1 || extent(0) > extent(1);
    return 2 * batches * shorter * shorter * ((is_longer ? longer : shorter) - shorter / 3);
  }
  double operator()(const EinSum& einsum) const {
    const auto computing = std::count_if(einsum.body.steps.begin(), einsum.body.steps.end(),
                                         [](const ScalarStep& step) { return arity(step) > 0; });
    double bindings = bindings_of(einsum.labels);
    const std::optional<Selected> found = selected(einsum);
    if (found && found->value.steps.size() == 1) {  // what else is selected is looped over, unless it was split
      for (const Selection& selection : found->selections)
        bindings /= static_cast<double>(std::max<std::int64_t>(einsum.labels[selection.label].extent.value(), 1));
    }
    return bindings * static_cast<double>(computing + (einsum.reducer ? 1 : 0));
  }
};

}  // namespace

const std::vector<Label>& labels_of(const Vertex& vertex) {
  struct Labels {
    const std::vector<Label>& operator()(const Input&) const {
      static const std::vector<Label> none;
      return none;
    }
    const std::vector<Label>& operator()(const EinSum& einsum) const { return einsum.labels; }
    const std::vector<Label>& operator()(const View& view) const { return view.labels; }
    const std::vector<Label>& operator()(const Opaque& opaque) const { return opaque.labels; }
  };
  return std::visit(Labels{}, vertex.op);
}

Shape label_extents(const Vertex& vertex) {
  if (is_input(vertex)) return vertex.bound;
  Shape extents;
  for (const Label& label : labels_of(vertex)) extents.push_back(label.extent);
  return extents;
}

std::vector<std::string> label_names(const Vertex& vertex) {
  std::vector<std::string> names;
  if (is_input(vertex)) {
    for (std::size_t d = 0; d < vertex.bound.size(); ++d) names.push_back(std::to_string(d));
  }
  for (const Label& label : labels_of(vertex)) names.push_back(label.name);
  return names;
}

std::string label_title(const Vertex& vertex, std::size_t label) {
  return is_input(vertex) ? fmt::format("dimension {}", label)
                          : fmt::format("label '{}'", labels_of(vertex)[label].name);
}

LabelGroups result_groups(const Vertex& vertex) {
  const View* const view = view_of(vertex);
  return view != nullptr ? view->to : groups_of(result_labels(vertex));
}

LabelGroups operand_groups(const Vertex& vertex, std::size_t operand) {
  const View* const view = view_of(vertex);
  return view != nullptr ? view->from : groups_of(operand_labels(vertex, operand));
}

MaybeLabels result_labels(const Vertex& vertex) { return std::visit(ResultLabels{vertex}, vertex.op); }

MaybeLabels operand_labels(const Vertex& vertex, std::size_t operand) {
  return std::visit(OperandLabels{operand}, vertex.op);
}

std::vector<std::size_t> reduced_labels(const Vertex& vertex) {
  const EinSum* const einsum = einsum_of(vertex);
  return einsum == nullptr ? std::vector<std::size_t>{} : einsum->reduced;
}

std::vector<std::size_t> operands_read(const Vertex& vertex) { return std::visit(OperandsRead{}, vertex.op); }

std::vector<std::size_t> operands_read(const ScalarExpr& body) {
  std::set<std::size_t> read;
  for (const ScalarStep& step : body.steps) {
    if (const auto operand = operand_read(step)) read.insert(*operand);
  }
  return {read.begin(), read.end()};
}

bool is_at_constant(const Vertex& vertex, std::size_t operand, std::size_t dimension) {
  const EinSum* const einsum = einsum_of(vertex);
  return einsum != nullptr && einsum->operands[operand].indices[dimension].terms.empty();
}

std::optional<std::size_t> plain_label(const Index& index) {
  const bool is_plain = index.offset == 0 && index.terms.size() == 1 && index.terms.front().coefficient == 1;
  return is_plain ? std::optional(index.terms.front().label) : std::nullopt;
}

std::optional<std::size_t> label_along(const EinSum& einsum, const Index& index) {
  if (index.terms.empty()) return std::nullopt;
  const auto extent = [&](const IndexTerm& term) { return einsum.labels[term.label].extent; };
  return std::max_element(index.terms.begin(), index.terms.end(),
                          [&](const IndexTerm& a, const IndexTerm& b) { return extent(a) < extent(b); })
      ->label;
}

std::vector<std::string> cannot_be_cut(const Vertex& vertex, const EinGraph& graph) {
  return std::visit(CutReasons{vertex, graph}, vertex.op);
}

std::vector<std::string> cannot_be_cut_apart(const Vertex& vertex, const EinGraph& graph) {
  return std::visit(CutReasons{vertex, graph, false}, vertex.op);
}

std::int64_t batches_of(const Opaque& opaque) {
  std::int64_t batches = 1;
  for (std::size_t l = 0; l < batch_labels(opaque); ++l) batches *= opaque.labels[l].extent.value();
  return batches;
}

std::vector<std::size_t> dimensions_of(const Opaque& opaque) {
  std::vector<std::size_t> dimensions = first_numbers(batch_labels(opaque));
  for (const std::size_t label : matrix_dimensions(result_of(opaque)))
    dimensions.push_back(batch_labels(opaque) + label);
  return dimensions;
}

std::vector<Vertex> outputs_together(const Vertex& vertex) {
  std::vector<Vertex> outputs;
  for (const OpaqueResult& result : results_of(std::get<Opaque>(vertex.op).function)) {
    Vertex& output = outputs.emplace_back(vertex);
    auto& opaque = std::get<Opaque>(output.op);
    opaque.output = result.output;
    output.bound.clear();
    for (const std::size_t label : dimensions_of(opaque)) output.bound.push_back(opaque.labels[label].extent);
  }
  return outputs;
}

std::string singular_text(const Vertex& vertex, std::int64_t batch) {
  const auto& opaque = std::get<Opaque>(vertex.op);
  const std::vector<Label>& labels = opaque.labels;
  std::string where;
  for (std::size_t l = batch_labels(opaque); l-- > 0;) {
    const std::int64_t extent = labels[l].extent.value();
    where = fmt::format("{}={}{}{}", labels[l].name, batch % extent, where.empty() ? "" : ", ", where);
    batch /= extent;
  }
  return fmt::format("the matrix{}{} in {} is singular: it has no inverse", where.empty() ? "" : " at ", where,
                     vertex.name);
}

double flops(const Vertex& vertex) { return std::visit(Flops{}, vertex.op); }

}  // namespace einrel
