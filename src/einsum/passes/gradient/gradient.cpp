#include "einsum/passes/gradient/gradient.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "einsum/expr/scalar_expr.h"
#include "einsum/front/build/formula_type.h"
#include "einsum/front/build/fresh_name.h"
#include "einsum/front/build/substitute.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/passes/gradient/arithmetic.h"
#include "einsum/passes/gradient/factors.h"
#include "einsum/passes/gradient/projection.h"
#include "einsum/passes/gradient/vertex_adjoints.h"

namespace einrel::gradient {

using build::Formula;

namespace {

/// Whether a formula is as cheap to compute as to read again: a few sums and products of numbers and one element.
bool is_cheap(const Formula& formula) {
  constexpr std::size_t most_parts = 5;
  std::size_t parts = 0;
  std::size_t elements = 0;
  bool is_simple = true;
  build::for_each_part(formula, [&](const Formula& part) {
    if (std::holds_alternative<build::Cast>(part.op())) return;  // of numbers and labels
    ++parts;
    elements += std::holds_alternative<build::Access>(part.op()) ? 1U : 0U;
    const auto* const unary = std::get_if<build::Unary>(&part.op());
    const auto* const binary = std::get_if<build::Binary>(&part.op());
    const bool is_leaf = part.arguments().empty();
    const bool negates = unary != nullptr && unary->function == UnaryFunction::negate;
    const bool counts = binary != nullptr && binary->function <= BinaryFunction::divide;
    is_simple = is_simple && (is_leaf || negates || counts);
  });
  return is_simple && parts <= most_parts && elements <= 1;
}

/// The view that undoes another one, with its labels in the order of its result.
View back_of(const View& view) {
  View back;
  std::vector<std::size_t> moved(view.labels.size());
  for (const std::vector<std::size_t>& group : view.from) {
    for (const std::size_t label : group) {
      moved[label] = back.labels.size();
      back.labels.push_back(view.labels[label]);
    }
  }
  const auto groups = [&](std::vector<std::vector<std::size_t>> of) {
    for (std::vector<std::size_t>& group : of) {
      for (std::size_t& label : group) label = moved[label];
    }
    return of;
  };
  back.from = groups(view.to);
  back.to = groups(view.from);
  return back;
}

/// Going back from one vertex to all that it is computed from.
class Sweep {
 public:
  Sweep(const Request& request, const GrowingGraph& growing)
      : request_(request),
        growing_(growing),
        depends_(depend_on(growing.graph, request.variables)),
        signs_(growing.graph),
        adjoints_(growing.graph.vertices.size()) {
    for (std::size_t v = 0; v < request.variables.size(); ++v) at(request.variables[v], request.labels[v]);
  }

  Adjoints run() {
    const VertexId of = request_.of;
    Adjoint& first = at(of, {});
    reached_.insert(of.index);
    first.value = request_.seed ? build::element(growing_.graph[*request_.seed].name, first.labels) : build::number(1);
    for (std::size_t v = of.index + 1; v-- > 0;) {
      if (depends_[v] && reached_.count(v) != 0 && !is_input(growing_.graph.vertices[v])) go_back(VertexId{v});
    }
    Adjoints result;
    for (const VertexId variable : request_.variables) {
      std::optional<Adjoint> adjoint = adjoints_[variable.index];
      if (reached_.count(variable.index) == 0) adjoint.reset();
      if (adjoint) adjoint->value = typed(adjoint->value, compute_type(growing_.graph[variable].dtype));
      result.of_variables.push_back(std::move(adjoint));
    }
    result.blocked = std::move(blocked_);
    return result;
  }

 private:
  /// The adjoint of a vertex, 0 at first. Its dimensions are called as the labels of the vertex, or as `wishes` say.
  Adjoint& at(VertexId id, std::vector<std::string> wishes) {
    std::optional<Adjoint>& adjoint = adjoints_[id.index];
    if (adjoint) return *adjoint;
    const Vertex& vertex = growing_.graph[id];
    wishes.resize(vertex.bound.size());
    if (!is_input(vertex)) {
      const std::vector<std::string> labels = label_names(vertex);
      const LabelGroups groups = result_groups(vertex);
      for (std::size_t d = 0; d < groups.size(); ++d) {
        if (groups[d].size() == 1) wishes[d] = labels[groups[d].front()];
      }
    }
    adjoint = Adjoint{{}, build::number(0), {}};
    for (std::size_t d = 0; d < wishes.size(); ++d) {
      const std::string wish = wishes[d].empty() ? "d" + std::to_string(d + 1) : wishes[d];
      adjoint->labels.push_back(new_label(wish, vertex.bound[d], adjoint->extents));
    }
    return *adjoint;
  }

  std::string new_label(const std::string& wish, Extent extent, std::map<std::string, Extent>& extents) const {
    return build::fresh_name(wish, [&](const std::string& name) {
      return growing_.reserved.count(name) == 0 && extents.insert({name, extent}).second;
    });
  }

  /// Adds a part of what flows back to a vertex.
  void add(VertexId to, const Formula& part) {
    Formula& value = adjoints_[to.index]->value;
    value = sum(value, part);
    reached_.insert(to.index);
  }

  void go_back(VertexId id) {
    const Vertex vertex = growing_.graph[id];  // the graph grows
    Adjoint& adjoint = *adjoints_[id.index];
    if (!is_cheap(adjoint.value)) store(vertex, adjoint);
    std::visit([&](const auto& op) { back_through(id, vertex, op); }, vertex.op);
  }

  /// The formula as a value of a type.
  Formula typed(const Formula& value, DType dtype) const {
    const auto of_tensor = [&](const std::string& name) { return growing_.graph[growing_.find(name)].dtype; };
    return build::FormulaTypes(of_tensor)(value) == dtype ? value : build::cast(dtype, value);
  }

  /// From now on the adjoint is a tensor.
  void store(const Vertex& vertex, Adjoint& adjoint) {
    const Formula value = typed(adjoint.value, compute_type(vertex.dtype));
    const VertexId id = growing_.define({vertex.where, "grad_" + vertex.name, adjoint.labels, value, adjoint.extents});
    adjoint.value = build::element(growing_.graph[id].name, adjoint.labels);
  }

  void back_through(VertexId, const Vertex&, const Input&) {}

  void back_through(VertexId id, const Vertex& vertex, const EinSum& einsum) {
    std::vector<bool> wanted;
    for (const VertexId input : vertex.inputs)
      wanted.push_back(depends_[input.index] && is_float(growing_.graph[input].dtype));
    std::map<std::size_t, Formula> adjoints;
    if (number_of(adjoints_[id.index]->value) == 0) {  // of no elements
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i]) adjoints.insert({i, build::number(0)});
      }
    }
    for (const auto& [operand, value] : adjoints_of_operands(id, adjoints_[id.index]->value, wanted, growing_, signs_))
      adjoints.insert_or_assign(operand, value);
    const std::vector<std::string> names = label_names(vertex);
    for (const auto& [operand, value] : adjoints) {
      const Access& access = einsum.operands[operand];
      std::vector<std::string> wishes;
      for (const Index& index : access.indices) {
        const std::optional<std::size_t> label = plain_label(index);
        wishes.push_back(label ? names[*label] : "");
      }
      Adjoint& adjoint = at(vertex.inputs[operand], std::move(wishes));
      const Vertex& to = growing_.graph[vertex.inputs[operand]];
      const Formula part = projected({einsum.labels, names, value, compute_type(to.dtype)}, access.indices, to.bound,
                                     adjoint.labels, adjoint.extents, growing_.reserved);
      add(vertex.inputs[operand], part);
    }
    for (std::size_t i = 0; i < vertex.inputs.size(); ++i) {
      if (depends_[vertex.inputs[i].index] && adjoints.count(i) == 0) blocked_.emplace_back(id, vertex.inputs[i]);
    }
  }

  /// Whether an adjoint is a tensor of the type that the vertex is computed in, read as it lies.
  bool is_stored(const Vertex& vertex, const Adjoint& adjoint) const {
    const auto* const access = std::get_if<build::Access>(&adjoint.value.op());
    if (access == nullptr || access->pad || access->indices.size() != adjoint.labels.size()) return false;
    for (std::size_t d = 0; d < adjoint.labels.size(); ++d) {
      const build::Index& index = access->indices[d];
      if (!is_plain(index) || index.terms[0].label.text != adjoint.labels[d]) return false;
    }
    const Vertex& tensor = growing_.graph[growing_.find(access->tensor.text)];
    return tensor.dtype == compute_type(vertex.dtype) && tensor.bound == vertex.bound;
  }

  /// The view back.
  void back_through(VertexId id, const Vertex& vertex, const View& view) {
    Adjoint& adjoint = *adjoints_[id.index];
    if (!is_stored(vertex, adjoint)) store(vertex, adjoint);
    const VertexId source = growing_.find(std::get<build::Access>(adjoint.value.op()).tensor.text);
    const VertexId operand = vertex.inputs[0];
    const Vertex& of = growing_.graph[operand];
    const VertexId back = growing_.add(
        {"grad_" + of.name, growing_.graph[source].dtype, of.bound, {source}, back_of(view), vertex.where});
    const std::vector<std::string> names = label_names(vertex);
    std::vector<std::string> wishes;
    for (const std::vector<std::size_t>& group : view.from)
      wishes.push_back(group.size() == 1 ? names[group.front()] : "");
    const std::vector<std::string> labels = at(operand, std::move(wishes)).labels;
    add(operand, build::element(growing_.graph[back].name, labels));
  }

  void back_through(VertexId id, const Vertex& vertex, const Opaque& opaque) {
    opaque.function == OpaqueFunction::inverse ? back_through_inverse(id, vertex, opaque)
                                               : back_through_factor(id, vertex, opaque);
  }

  void back_through_factor(VertexId id, const Vertex& vertex, const Opaque& opaque) {
    Adjoint& adjoint = *adjoints_[id.index];
    if (!is_stored(vertex, adjoint)) store(vertex, adjoint);
    const std::vector<std::string> names = label_names(vertex);
    std::vector<std::string> wishes;
    for (const std::size_t label : opaque.operand) wishes.push_back(names[label]);
    Adjoint& to = at(vertex.inputs[0], wishes);
    FactorAdjoint factor{vertex, std::get<build::Access>(adjoint.value.op()).tensor.text, {}, {}, {}};
    factor.labels.resize(opaque.operand.size());
    for (std::size_t d = 0; d < opaque.operand.size(); ++d) factor.labels[opaque.operand[d]] = to.labels[d];
    for (const char* const wish : {"p", "q"})
      factor.between.push_back(new_label(wish, opaque.labels.back().extent, to.extents));
    factor.extents = to.extents;
    add(vertex.inputs[0], adjoint_through(factor, growing_));
  }

  /// Of Y = X^-1: -Y^T G Y^T.
  void back_through_inverse(VertexId id, const Vertex& vertex, const Opaque& opaque) {
    const Adjoint& adjoint = *adjoints_[id.index];
    const std::vector<std::string> names = label_names(vertex);
    std::vector<std::string> wishes;
    for (const std::size_t label : opaque.operand) wishes.push_back(names[label]);
    Adjoint& to = at(vertex.inputs[0], wishes);
    std::vector<std::string> labels(names.size());  // as the dimensions of X are called
    for (std::size_t d = 0; d < opaque.operand.size(); ++d) labels[opaque.operand[d]] = to.labels[d];
    const std::size_t rows = labels.size() - 2;
    const Extent extent = opaque.labels.back().extent;
    const std::vector<std::string> matrix{new_label("p", extent, to.extents), new_label("q", extent, to.extents)};
    std::vector<std::string> before = labels;
    before[rows] = matrix[0];
    before[rows + 1] = labels[rows];
    std::vector<std::string> after = labels;
    after[rows] = labels[rows + 1];
    after[rows + 1] = matrix[1];
    build::LabelForms forms;
    for (std::size_t l = 0; l < rows; ++l) forms[adjoint.labels[l]] = build::index(labels[l]);
    for (std::size_t l = rows; l < labels.size(); ++l) forms[adjoint.labels[l]] = build::index(matrix[l - rows]);
    const Formula inner = product(product(build::element(vertex.name, before), with_labels(adjoint.value, forms)),
                                  build::element(vertex.name, after));
    add(vertex.inputs[0], negative(reduce(Reducer::sum, matrix, inner)));
  }

  const Request& request_;
  const GrowingGraph& growing_;
  std::vector<bool> depends_;
  Signs signs_;
  std::vector<std::optional<Adjoint>> adjoints_;        ///< per vertex
  std::set<std::size_t> reached_;                       ///< vertices that something flows back to
  std::vector<std::pair<VertexId, VertexId>> blocked_;  ///< as in Adjoints
};

}  // namespace

Adjoints adjoints(const Request& request, const GrowingGraph& growing) { return Sweep(request, growing).run(); }

std::vector<bool> depend_on(const EinGraph& graph, const std::vector<VertexId>& variables) {
  std::vector<bool> depends(graph.vertices.size());
  for (const VertexId variable : variables) depends[variable.index] = true;
  for (std::size_t v = 0; v < depends.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    for (const std::size_t operand : operands_read(vertex))
      depends[v] = depends[v] || depends[vertex.inputs[operand].index];
  }
  return depends;
}

}  // namespace einrel::gradient
