#include "einsum/passes/selection_split.h"

#include <algorithm>
#include <utility>

#include "einsum/graph/selection.h"
#include "einsum/graph/vertex_splitter.h"

namespace einrel {
namespace {

/// What lies between may be so many times as much as what the vertex reads and writes, or so many bytes: each value of
/// a window takes part in as many products as the window has positions.
constexpr double most_growth = 64;
constexpr double always_fits = 0x1p28;

class SelectionSplit {
 public:
  SelectionSplit(VertexSplitter splitter, const EinGraph& graph)
      : splitter_(std::move(splitter)), einsum_(splitter_.einsum()), graph_(graph) {}

  /// True when it appended the vertices that replace the original one.
  bool run() {
    if (splitter_.has_no_bindings()) return false;
    std::optional<Selected> found = selected(einsum_);
    if (!found) return false;
    is_selected_.assign(einsum_.labels.size(), false);
    for (const Selection& selection : found->selections) is_selected_[selection.label] = true;
    const bool stays = not_selected_as_it_is(einsum_, *found, dtypes(), splitter_.vertex().dtype).empty();
    selections_ = std::move(found->selections);
    append_positions();
    if (stays) {
      const ScalarExpr body = only_selected(selections_, found->value);
      if (body == einsum_.body || einsum_.reducer == Reducer::any) return false;
      splitter_.finish(body, splitter_.all_labels(), Reducer::sum);
    } else {
      append_parts(found->value);
    }
    return splitter_.keep_what_fits(most_bytes());
  }

 private:
  using Selections = std::vector<Selection>;

  std::vector<DType> dtypes() const {
    std::vector<DType> all;
    for (const VertexId input : splitter_.vertex().inputs) all.push_back(graph_[input].dtype);
    return all;
  }

  /// Tensors of the elements that say positions and are padded, or are computed in i32, and of positions in the result
  /// that are computed of elements: where the result is cut, chunks need one number for each.
  void append_positions() {
    for (Selection& selection : selections_) {
      for (ElementTerm& term : selection.position.elements) {
        if (term.computed) {
          term = {term.coefficient, operand_of(tensor_of(*term.computed))};
          continue;
        }
        const auto [id, access] = splitter_.operand(term.operand);
        if (!access.pad) continue;
        const ScalarExpr element{{{graph_[id].dtype, OperandValue{term.operand}}}};
        term.operand = operand_of(tensor_of(element));
      }
      if (!is_output(selection.label) || selection.position.elements.empty() || is_element(selection.position))
        continue;
      selection.position = {{}, {{1, operand_of(tensor_of(position_of(selection)))}}};
    }
  }
  static bool is_element(const SelectingForm& form) {
    return form.elements.size() == 1 && form.elements.front().coefficient == 1 && form.labels.terms.empty() &&
           form.labels.offset == 0;
  }

  BodyPart tensor_of(const ScalarExpr& element) {
    const LabelSet labels = splitter_.labels_of(element);
    return splitter_.intermediate(element, labels, labels);
  }
  static std::size_t operand_of(const BodyPart& part) {
    return std::get<OperandValue>(part.expr.steps.front().op).operand;
  }

  /// The position of a selection, as a value.
  ScalarExpr position_of(const Selection& selection) const {
    ScalarExpr sum;
    const auto add = [&](std::vector<ScalarStep> steps, std::int64_t coefficient) {
      if (coefficient != 1)
        steps.insert(steps.end(), {whole_step(coefficient), binary_step(DType::i64, BinaryFunction::multiply)});
      const bool is_first = sum.steps.empty();
      append(sum, {std::move(steps)});
      if (!is_first) sum.steps.push_back(binary_step(DType::i64, BinaryFunction::add));
    };
    for (const IndexTerm& term : selection.position.labels.terms)
      add({{DType::i64, LabelValue{term.label}}}, term.coefficient);
    for (const ElementTerm& term : selection.position.elements) add(element(term.operand), term.coefficient);
    const std::int64_t offset = selection.position.labels.offset;
    if (offset != 0 || sum.steps.empty()) add({whole_step(offset)}, 1);
    return sum;
  }

  /// Of an integer tensor, as an i64.
  std::vector<ScalarStep> element(std::size_t operand) const {
    const DType type = graph_[splitter_.operand(operand).first].dtype;
    std::vector<ScalarStep> steps{{type, OperandValue{operand}}};
    if (type != DType::i64) steps.push_back({DType::i64, Convert{}});
    return steps;
  }

  /// where(label == position, ..., 0) for each selection.
  ScalarExpr only_selected(const Selections& selections, ScalarExpr value) const {
    for (auto selection = selections.rbegin(); selection != selections.rend(); ++selection) {
      ScalarExpr condition{{{DType::i64, LabelValue{selection->label}}}};
      append(condition, position_of(*selection));
      condition.steps.push_back(binary_step(DType::boolean, BinaryFunction::equal));
      value = only_where(std::move(condition), value);
    }
    return value;
  }

  LabelSet without_selected(LabelSet labels) const {
    for (std::size_t l = 0; l < labels.size(); ++l) labels[l] = labels[l] && !is_selected_[l];
    return labels;
  }

  bool is_output(std::size_t label) const {
    return std::find(einsum_.output.begin(), einsum_.output.end(), label) != einsum_.output.end();
  }

  void append_parts(const ScalarExpr& value) {
    Selections scattered;
    for (const Selection& selection : selections_) {
      if (is_output(selection.label)) scattered.push_back(selection);
    }
    ScalarExpr gathered = gather(value);
    const bool is_truth = gathered.type() == DType::boolean;
    if (einsum_.reducer == Reducer::any && !is_truth) gathered.steps.push_back({DType::boolean, Convert{}});
    const bool counts = gathered.type() == DType::boolean && (einsum_.reducer == Reducer::sum || !scattered.empty());
    if (counts) gathered = as_count(std::move(gathered));
    const LabelSet rest = without_selected(splitter_.all_labels());
    if (scattered.empty()) return splitter_.finish(gathered, rest, einsum_.reducer);
    scatter(gathered, rest, scattered);
  }

  /// 1 for true.
  static ScalarExpr as_count(ScalarExpr value) {
    if (std::holds_alternative<Constant>(value.steps.front().op) && value.steps.size() == 1) {
      value.steps.front().type = DType::i64;
    } else {
      value.steps.push_back({DType::i64, Convert{}});
    }
    return value;
  }

  /// sum[rest] where(selected, value, 0), and what is left to do with sums.
  void scatter(const ScalarExpr& value, const LabelSet& rest, const Selections& scattered) {
    const bool as_it_is = is_source(value);
    const ScalarExpr body = only_selected(scattered, as_it_is ? value : scattered_values(value, rest, scattered));
    LabelSet all = splitter_.output_labels();
    unite(all, as_it_is ? rest : splitter_.labels_of(body));
    const bool counts = einsum_.reducer == Reducer::any;  // any are true where there are more than 0
    if (!counts && !is_narrow(splitter_.vertex().dtype)) return splitter_.finish(body, all, Reducer::sum);
    ScalarExpr sum = splitter_.intermediate(body, all, einsum_.output, Reducer::sum).expr;
    if (counts) append(sum, {{whole_step(0), binary_step(DType::boolean, BinaryFunction::not_equal)}});
    splitter_.finish(sum, splitter_.output_labels(), std::nullopt);
  }

  /// What kernels scatter as it is.
  bool is_source(const ScalarExpr& value) const {
    if (value.steps.size() != 1) return false;
    if (const auto* const number = std::get_if<Constant>(&value.steps.front().op)) return is_addend(*number);
    const auto* const element = std::get_if<OperandValue>(&value.steps.front().op);
    return element != nullptr && !splitter_.operand(element->operand).second.pad;
  }

  /// A tensor of what is scattered. Where elements say where to, its rows lie as those of the result.
  ScalarExpr scattered_values(const ScalarExpr& value, const LabelSet& all, const Selections& scattered) {
    LabelSet needed = splitter_.output_labels();
    std::vector<std::size_t> order;
    const auto add = [&](std::size_t label) {
      if (!is_selected_[label] && std::find(order.begin(), order.end(), label) == order.end()) order.push_back(label);
    };
    bool has_elements = false;
    for (const Selection& selection : scattered) {
      const ScalarExpr position = position_of(selection);
      unite(needed, splitter_.labels_of(position));
      has_elements = has_elements || !selection.position.elements.empty();
      for (const ElementTerm& element : selection.position.elements) {
        for (const Index& index : splitter_.operand(element.operand).second.indices) {
          for (const IndexTerm& term : index.terms) add(term.label);
        }
      }
    }
    if (!has_elements) return splitter_.intermediate(value, all, without_selected(needed)).expr;
    for (const std::size_t label : einsum_.output) add(label);
    for (std::size_t l = 0; l < needed.size(); ++l) {
      if (needed[l]) add(l);
    }
    return splitter_.intermediate(value, all, order, Reducer::sum).expr;
  }

  static void unite(LabelSet& all, const LabelSet& more) {
    for (std::size_t l = 0; l < all.size(); ++l) all[l] = all[l] || more[l];
  }

  /// The value without selected labels: what reads them becomes a gather, and they themselves become their positions.
  ScalarExpr gather(const ScalarExpr& value) {
    ScalarExpr result;
    for (const ScalarStep& step : value.steps) {
      const auto* const label = std::get_if<LabelValue>(&step.op);
      const Selections read = selections_read_by(splitter_.labels_of({{step}}));
      if (read.empty()) {
        result.steps.push_back(step);
      } else if (label != nullptr) {
        append(result, position_of(read.front()));
        if (step.type != DType::i64) result.steps.push_back({step.type, Convert{}});
      } else {
        append(result, gathered_element(step, read));
      }
    }
    // Where no position is, nothing counts, whatever the value makes of 0.
    for (const Selection& selection : selections_) {
      if (!is_output(selection.label)) result = only_in_range(selection, result);
    }
    return result;
  }

  /// Of the dtype of the tensor: half as much to write for narrow ones.
  ScalarExpr gathered_element(const ScalarStep& step, const Selections& read) {
    const auto [id, access] = splitter_.operand(std::get<OperandValue>(step.op).operand);
    const bool is_padded = access.pad.value_or(0) != 0;
    const ScalarExpr element = is_padded ? tensor_of({{step}}).expr : ScalarExpr{{step}};
    const DType stored = is_padded ? step.type : graph_[id].dtype;
    const Reducer reducer = stored == DType::boolean ? Reducer::any : Reducer::sum;
    const ScalarExpr body = only_selected(read, element);
    const LabelSet all = splitter_.labels_of(body);
    return splitter_.intermediate(body, all, without_selected(all), reducer, stored).expr;
  }

  Selections selections_read_by(const LabelSet& labels) const {
    Selections read;
    for (const Selection& selection : selections_) {
      if (labels[selection.label]) read.push_back(selection);
    }
    return read;
  }

  ScalarExpr only_in_range(const Selection& selection, const ScalarExpr& value) const {
    const std::int64_t extent = einsum_.labels[selection.label].extent.value();
    if (stays_in_range(selection, extent)) return value;
    ScalarExpr not_negative = position_of(selection);
    append(not_negative, {{whole_step(0), binary_step(DType::boolean, BinaryFunction::greater_equal)}});
    ScalarExpr inside = position_of(selection);
    append(inside, {{whole_step(extent), binary_step(DType::boolean, BinaryFunction::less)}});
    return only_where(std::move(not_negative), only_where(std::move(inside), value));
  }

  /// Of labels alone, or one element that has been checked.
  bool stays_in_range(const Selection& selection, std::int64_t extent) const {
    const auto& [labels, elements] = selection.position;
    if (is_element(selection.position)) return is_checked(splitter_.operand(elements.front().operand).first, extent);
    if (!elements.empty()) return false;
    std::int64_t low = labels.offset;
    std::int64_t high = low;
    for (const IndexTerm& term : labels.terms) {
      const std::int64_t reach = checked_multiply(term.coefficient, einsum_.labels[term.label].extent.value() - 1);
      std::int64_t& end = term.coefficient < 0 ? low : high;
      end = checked_add(end, reach);
    }
    return low >= 0 && high < extent;
  }

  bool is_checked(VertexId id, std::int64_t extent) const {
    const EinSum* const einsum = einsum_of(graph_[id]);
    if (einsum == nullptr || einsum->reducer) return false;
    const auto* const check = std::get_if<CheckRange>(&einsum->body.steps.back().op);
    return check != nullptr && check->extent <= extent;
  }

  /// That a vertex between may take: not much more than the program needs as it is written.
  double most_bytes() const {
    double bytes = 0;
    const auto bytes_of = [](const Vertex& vertex) {
      double own = static_cast<double>(size_of(vertex.dtype));
      for (const Extent extent : vertex.bound) own *= static_cast<double>(extent.value());
      return own;
    };
    for (const VertexId input : splitter_.vertex().inputs) bytes += bytes_of(graph_[input]);
    return std::max(most_growth * (bytes + bytes_of(splitter_.vertex())), always_fits);
  }

  VertexSplitter splitter_;
  const EinSum& einsum_;
  const EinGraph& graph_;
  std::vector<Selection> selections_;
  std::vector<bool> is_selected_;
};

}  // namespace

EinGraph split_selections(const EinGraph& graph) {
  return replace_vertices(graph, [](const Vertex&, VertexSplitter splitter, const EinGraph& result) {
    return SelectionSplit(std::move(splitter), result).run();
  });
}

}  // namespace einrel
