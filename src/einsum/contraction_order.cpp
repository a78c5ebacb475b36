#include "einsum/contraction_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "einsum/contraction_tree.h"

namespace einrel {
namespace {

/// The factors of a body that is a product, as ranges of its steps; one range when it is none.
std::vector<ScalarExpr> factors_of(const ScalarExpr& body) {
  const std::vector<std::size_t> starts = subexpression_starts(body);
  const auto is_product = [&](std::size_t root) {
    const auto* binary = std::get_if<ApplyBinary>(&body.steps[root].op);
    return binary != nullptr && binary->function == BinaryFunction::multiply;
  };
  std::vector<ScalarExpr> factors;
  std::vector<std::size_t> open{body.steps.size() - 1};  // roots; the leftmost factor is on top
  while (!open.empty()) {
    const std::size_t root = open.back();
    open.pop_back();
    if (is_product(root)) {
      open.push_back(root - 1);
      open.push_back(starts[root - 1] - 1);
    } else {
      const auto begin = body.steps.begin() + static_cast<std::ptrdiff_t>(starts[root]);
      factors.push_back({{begin, body.steps.begin() + static_cast<std::ptrdiff_t>(root) + 1}});
    }
  }
  return factors;
}

LabelSet labels_of(const ScalarExpr& expr, const EinSum& einsum) {
  LabelSet labels(einsum.labels.size(), false);
  for (const ScalarStep& step : expr.steps) {
    if (const auto* value = std::get_if<LabelValue>(&step.op)) labels[value->label] = true;
    if (const auto* operand = std::get_if<OperandValue>(&step.op)) {
      for (const Index& index : einsum.operands[operand->operand].indices) {
        for (const IndexTerm& term : index.terms) labels[term.label] = true;
      }
    }
  }
  return labels;
}

/// A factor or an intermediate product: how to compute or read it, in terms of the original vertex's labels and of
/// its operands followed by the intermediates.
struct Node {
  ScalarExpr expr;
  LabelSet labels;
};

/// Rewrites one vertex into several.
class VertexSplitter {
 public:
  VertexSplitter(const Vertex& vertex, EinGraph& graph, std::set<std::string>& names)
      : vertex_(vertex), einsum_(std::get<EinSum>(vertex.op)), graph_(graph), names_(names) {}

  /// True when it appended the vertices that replace the original one.
  bool run(OrderedContraction& report) {
    if (einsum_.reducer != Reducer::sum || sums_nothing()) return false;
    std::vector<ScalarExpr> constants;
    for (ScalarExpr& factor : factors_of(einsum_.body)) {
      LabelSet labels = labels_of(factor, einsum_);
      const bool has_labels = std::find(labels.begin(), labels.end(), true) != labels.end();
      if (has_labels)
        nodes_.push_back({std::move(factor), std::move(labels)});
      else
        constants.push_back(std::move(factor));
    }
    if (nodes_.size() < 2) return false;
    const std::size_t factors = nodes_.size() + constants.size();
    const ContractionTree tree = find_contraction_tree(describe());
    const bool reduces_first =
        std::find(tree.reduced_first.begin(), tree.reduced_first.end(), true) != tree.reduced_first.end();
    if (factors == 2 && !reduces_first) return false;
    const std::size_t first = graph_.vertices.size();
    apply_constants(constants, tree);
    build(tree);
    if (!fits_in_memory(first)) {
      graph_.vertices.resize(first);
      return false;
    }
    report.factors = factors;
    report.optimal = tree.optimal;
    report.flops_as_written = flops(vertex_);
    for (std::size_t v = first; v < graph_.vertices.size(); ++v) {
      report.flops_ordered += flops(graph_.vertices[v]);
      report.steps.push_back(graph_.vertices[v].name);
    }
    return true;
  }

 private:
  Contraction describe() const {
    Contraction contraction;
    contraction.output.assign(einsum_.labels.size(), false);
    for (const std::size_t label : einsum_.output) contraction.output[label] = true;
    for (const Label& label : einsum_.labels) contraction.extents.push_back(static_cast<double>(label.extent.value()));
    for (const Node& node : nodes_) contraction.factors.push_back(node.labels);
    return contraction;
  }

  /// Over no binding at all there is nothing to order, and the sum is 0 whatever the factors are.
  bool sums_nothing() const {
    return std::any_of(einsum_.labels.begin(), einsum_.labels.end(),
                       [](const Label& label) { return label.extent == Extent(0); });
  }

  /// Factors without labels go into the smallest factor, before anything is summed: after the sum they could be too
  /// late to keep it in range.
  void apply_constants(const std::vector<ScalarExpr>& constants, const ContractionTree& tree) {
    if (constants.empty()) return;
    const auto size = [&](const Node& node) {
      double elements = 1;
      for (std::size_t l = 0; l < node.labels.size(); ++l) {
        if (node.labels[l]) elements *= static_cast<double>(einsum_.labels[l].extent.value());
      }
      return elements;
    };
    const auto smallest =
        std::min_element(nodes_.begin(), nodes_.end(), [&](const Node& a, const Node& b) { return size(a) < size(b); });
    for (const ScalarExpr& constant : constants) smallest->expr = multiply(smallest->expr, constant);
    // A factor that is summed alone takes the constants along; another one becomes a tensor, so that what multiplies it
    // stays a plain contraction.
    const bool is_reduced_first = tree.reduced_first[static_cast<std::size_t>(smallest - nodes_.begin())];
    if (!is_reduced_first) *smallest = intermediate(smallest->expr, smallest->labels, smallest->labels);
  }

  /// Whether each vertex from `first` on has a size that can be counted; an intermediate can be larger than all that
  /// the program stores.
  bool fits_in_memory(std::size_t first) const {
    return std::all_of(graph_.vertices.begin() + static_cast<std::ptrdiff_t>(first), graph_.vertices.end(),
                       [](const Vertex& vertex) {
                         double bytes = static_cast<double>(size_of(vertex.dtype));
                         for (const Extent extent : vertex.bound) bytes *= static_cast<double>(extent.value());
                         return bytes < 0x1p62;
                       });
  }

  void build(const ContractionTree& tree) {
    for (std::size_t f = 0; f < tree.reduced_first.size(); ++f) {
      if (tree.reduced_first[f]) reduce_alone(f);
    }
    for (std::size_t s = 0; s < tree.steps.size(); ++s) {
      const auto [left, right] = tree.steps[s];
      const ScalarExpr body = multiply(nodes_[left].expr, nodes_[right].expr);
      LabelSet all = nodes_[left].labels;
      for (std::size_t l = 0; l < all.size(); ++l) all[l] = all[l] || nodes_[right].labels[l];
      if (s + 1 == tree.steps.size()) {
        add_vertex(body, all, einsum_.output, vertex_.name, vertex_.dtype);
      } else {
        nodes_.push_back(intermediate(body, all, needed_after(s, tree)));
      }
    }
  }

  /// The labels that the output and the nodes that are not multiplied yet need after step `s`.
  LabelSet needed_after(std::size_t s, const ContractionTree& tree) const {
    LabelSet needed(einsum_.labels.size(), false);
    for (const std::size_t label : einsum_.output) needed[label] = true;
    for (std::size_t later = s + 1; later < tree.steps.size(); ++later) {
      for (const std::size_t node : {tree.steps[later].first, tree.steps[later].second}) {
        if (node >= nodes_.size()) continue;
        for (std::size_t l = 0; l < needed.size(); ++l) needed[l] = needed[l] || nodes_[node].labels[l];
      }
    }
    return needed;
  }

  /// Sums a factor over the labels that only it has.
  void reduce_alone(std::size_t factor) {
    LabelSet needed(einsum_.labels.size(), false);
    for (const std::size_t label : einsum_.output) needed[label] = true;
    for (std::size_t other = 0; other < nodes_.size(); ++other) {
      for (std::size_t l = 0; other != factor && l < needed.size(); ++l)
        needed[l] = needed[l] || nodes_[other].labels[l];
    }
    nodes_[factor] = intermediate(nodes_[factor].expr, nodes_[factor].labels, needed);
  }

  static ScalarExpr multiply(ScalarExpr a, const ScalarExpr& b) {
    const DType type = a.type();
    a.steps.insert(a.steps.end(), b.steps.begin(), b.steps.end());
    a.steps.push_back({type, ApplyBinary{BinaryFunction::multiply}});
    return a;
  }

  /// A new vertex over the labels in `all` that `needed` has, and how to read it.
  Node intermediate(const ScalarExpr& body, const LabelSet& all, const LabelSet& needed) {
    LabelSet labels(all.size(), false);
    for (std::size_t l = 0; l < all.size(); ++l) labels[l] = all[l] && needed[l];
    const std::vector<std::size_t> output = order_of(body, labels);
    const VertexId id = add_vertex(body, all, output, unused_name(), body.type());
    Access access;
    for (const std::size_t label : output) access.indices.push_back({0, {{1, label}}});
    extra_operands_.emplace_back(id, access);
    const std::size_t operand = einsum_.operands.size() + extra_operands_.size() - 1;
    return {{{{body.type(), OperandValue{operand}}}}, labels};
  }

  /// `labels` as they lie side by side in the operands of a body: first those that several operands have, then those of
  /// each one. The operand whose innermost label stays comes last, so that whole stretches of it meet in the result.
  std::vector<std::size_t> order_of(const ScalarExpr& body, const LabelSet& labels) const {
    std::vector<std::vector<std::size_t>> lists;
    std::vector<std::size_t> holders(labels.size(), 0);
    for (const ScalarStep& step : body.steps) {
      const auto* const use = std::get_if<OperandValue>(&step.op);
      if (use == nullptr) continue;
      std::vector<std::size_t>& list = lists.emplace_back();
      const Access access = operand(use->operand).second;
      for (const Index& index : access.indices) {
        for (const IndexTerm& term : index.terms) {
          if (std::find(list.begin(), list.end(), term.label) != list.end()) continue;
          list.push_back(term.label);
          ++holders[term.label];
        }
      }
    }
    const auto stays_innermost = [&](const std::vector<std::size_t>& list) {
      return !list.empty() && labels[list.back()] && holders[list.back()] == 1;
    };
    std::stable_partition(lists.begin(), lists.end(), [&](const auto& list) { return !stays_innermost(list); });
    std::vector<std::size_t> order;
    LabelSet left = labels;
    const auto take = [&](std::size_t label) {
      if (left[label]) order.push_back(label);
      left[label] = false;
    };
    for (const bool shared : {true, false}) {
      for (const std::vector<std::size_t>& list : lists) {
        for (const std::size_t label : list) {
          if ((holders[label] > 1) == shared) take(label);
        }
      }
    }
    for (std::size_t l = 0; l < labels.size(); ++l) take(l);
    return order;
  }

  std::string unused_name() {
    std::string name;
    do {
      name = fmt::format("{}_{}", vertex_.name, ++last_number_);
    } while (!names_.insert(name).second);
    return name;
  }

  std::pair<VertexId, Access> operand(std::size_t position) const {
    if (position < einsum_.operands.size()) return {vertex_.inputs[position], einsum_.operands[position]};
    return extra_operands_[position - einsum_.operands.size()];
  }

  /// Appends the vertex with labels `output` that sums `body` over the rest of `all`.
  VertexId add_vertex(const ScalarExpr& body, const LabelSet& all, const std::vector<std::size_t>& output,
                      const std::string& name, DType dtype) {
    EinSum einsum;
    std::map<std::size_t, std::size_t> position;
    const auto add_label = [&](std::size_t label, std::vector<std::size_t>& list) {
      position[label] = einsum.labels.size();
      list.push_back(einsum.labels.size());
      einsum.labels.push_back(einsum_.labels[label]);
    };
    Vertex vertex;
    vertex.name = name;
    vertex.dtype = dtype;
    vertex.where = vertex_.where;
    for (const std::size_t label : output) {
      add_label(label, einsum.output);
      vertex.bound.push_back(einsum_.labels[label].extent);
    }
    for (std::size_t l = 0; l < all.size(); ++l) {
      if (all[l] && position.count(l) == 0) add_label(l, einsum.reduced);
    }
    if (!einsum.reduced.empty()) einsum.reducer = Reducer::sum;
    std::map<std::size_t, std::size_t> moved;
    einsum.body = body;
    for (ScalarStep& step : einsum.body.steps) {
      if (auto* value = std::get_if<LabelValue>(&step.op)) value->label = position.at(value->label);
      auto* use = std::get_if<OperandValue>(&step.op);
      if (use == nullptr) continue;
      if (moved.count(use->operand) == 0) {
        auto [input, access] = operand(use->operand);
        for (Index& index : access.indices) {
          for (IndexTerm& term : index.terms) term.label = position.at(term.label);
        }
        moved[use->operand] = einsum.operands.size();
        einsum.operands.push_back(std::move(access));
        vertex.inputs.push_back(input);
      }
      use->operand = moved.at(use->operand);
    }
    vertex.op = std::move(einsum);
    graph_.vertices.push_back(std::move(vertex));
    return VertexId{graph_.vertices.size() - 1};
  }

  const Vertex& vertex_;
  const EinSum& einsum_;
  EinGraph& graph_;
  std::set<std::string>& names_;
  std::vector<Node> nodes_;
  std::vector<std::pair<VertexId, Access>> extra_operands_;
  std::size_t last_number_ = 0;
};

}  // namespace

EinGraph order_contractions(const EinGraph& graph, std::vector<OrderedContraction>& report) {
  EinGraph result;
  result.scalars = graph.scalars;
  std::set<std::string> names;
  for (const Vertex& vertex : graph.vertices) names.insert(vertex.name);
  std::vector<VertexId> moved;
  for (const Vertex& original : graph.vertices) {
    Vertex vertex = original;
    for (VertexId& input : vertex.inputs) input = moved[input.index];
    OrderedContraction ordered;
    ordered.tensor = vertex.name;
    if (std::holds_alternative<EinSum>(vertex.op) && VertexSplitter(vertex, result, names).run(ordered)) {
      report.push_back(std::move(ordered));
    } else {
      result.vertices.push_back(std::move(vertex));
    }
    moved.push_back(VertexId{result.vertices.size() - 1});
  }
  for (const VertexId output : graph.outputs) result.outputs.push_back(moved[output.index]);
  return result;
}

}  // namespace einrel
