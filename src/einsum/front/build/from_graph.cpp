#include "einsum/front/build/from_graph.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "einsum/expr/scalar_expr.h"
#include "einsum/front/build/formula_type.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_key.h"

namespace einrel::build {
namespace {

/// Turns the steps of a body into formulas.
struct StepFormula {
  const Vertex& vertex;
  const EinSum& einsum;
  const EinGraph& graph;
  const std::vector<std::string>& labels;
  const ScalarStep& step;
  std::vector<Formula> arguments;
  /// The type that its argument has but the language would not give it: it is made of numbers, labels and scalars.
  std::optional<DType> weak;

  Formula operator()(const OperandValue& value) const {
    const einrel::Access& access = einsum.operands[value.operand];
    const Vertex& operand = graph[vertex.inputs[value.operand]];
    std::vector<Index> indices;
    for (const einrel::Index& index : access.indices) indices.push_back(index_of(index, labels));
    return element(operand.name, std::move(indices), access.pad);
  }
  Formula operator()(const Constant& constant) const {
    if (const auto* const integer = std::get_if<std::int64_t>(&constant.value))
      return step.type == DType::boolean ? cast(DType::boolean, whole_number(*integer)) : whole_number(*integer);
    return number(std::get<double>(constant.value));
  }
  Formula operator()(const LabelValue& value) const { return name(labels[value.label]); }
  Formula operator()(const ScalarValue& value) const { return name(value.name); }
  Formula operator()(const ApplyUnary& unary) const { return apply(unary.function, arguments[0]); }
  Formula operator()(const ApplyBinary& binary) const { return apply(binary.function, arguments[0], arguments[1]); }
  Formula operator()(const ApplyWhere&) const { return where(arguments[0], arguments[1], arguments[2]); }
  Formula operator()(const Convert&) const { return cast(step.type, converted()); }
  Formula operator()(const Round& round) const { return cast(round.to, converted()); }
  Formula operator()(const ApplyRandom& random) const {
    return Formula(Random{random.function, random.stream}, arguments);
  }
  Formula operator()(const CheckRange& check) const {
    InRange range{check.tensor, {}, check.indexed, check.extent};
    for (const Extent extent : check.shape) range.shape.push_back(extent.value());
    return Formula(std::move(range), arguments);
  }

 private:
  Formula converted() const { return weak ? cast(*weak, arguments[0]) : arguments[0]; }
};

std::vector<std::string> names_at(const std::vector<std::size_t>& positions, const std::vector<std::string>& labels) {
  std::vector<std::string> names;
  for (const std::size_t position : positions) names.push_back(labels[position]);
  return names;
}

/// Whether the language gives a step no type of its own: it is made of numbers, labels and scalars.
std::vector<bool> weak_steps(const ScalarExpr& body) {
  std::vector<bool> weak;
  const std::vector<std::vector<std::size_t>> arguments = arguments_of_steps(body);
  for (std::size_t s = 0; s < body.steps.size(); ++s) {
    const ScalarStep& step = body.steps[s];
    bool is_weak = !std::holds_alternative<OperandValue>(step.op) && !std::holds_alternative<Convert>(step.op) &&
                   !std::holds_alternative<Round>(step.op) && !std::holds_alternative<CheckRange>(step.op);
    for (const std::size_t argument : arguments[s]) is_weak = is_weak && weak[argument];
    weak.push_back(is_weak);
  }
  return weak;
}

/// Whether the language takes a step for a whole number, if nothing that it meets says otherwise.
std::vector<bool> whole_steps(const ScalarExpr& body) {
  std::vector<bool> whole;
  const std::vector<std::vector<std::size_t>> arguments = arguments_of_steps(body);
  for (std::size_t s = 0; s < body.steps.size(); ++s) {
    const auto& op = body.steps[s].op;
    const auto* const constant = std::get_if<Constant>(&op);
    const auto* const unary = std::get_if<ApplyUnary>(&op);
    const auto* const binary = std::get_if<ApplyBinary>(&op);
    const bool is_number = constant != nullptr && std::holds_alternative<std::int64_t>(constant->value);
    const bool keeps = (unary != nullptr && keeps_integers(unary->function)) ||
                       (binary != nullptr && binary->function != BinaryFunction::divide) ||
                       std::holds_alternative<ApplyWhere>(op);
    const std::vector<std::size_t>& taken = arguments[s];
    const bool of_whole = std::all_of(taken.begin(), taken.end(), [&](std::size_t argument) {
      return whole[argument] || (std::holds_alternative<ApplyWhere>(op) && argument == taken.front());
    });
    whole.push_back(is_number || std::holds_alternative<LabelValue>(op) || (keeps && of_whole));
  }
  return whole;
}

bool is_comparison(const ScalarStep& step) {
  const auto* const binary = std::get_if<ApplyBinary>(&step.op);
  return binary != nullptr && einrel::is_comparison(binary->function);
}

struct VertexStatement {
  const Vertex& vertex;
  const EinGraph& graph;
  const std::vector<std::string>& labels;
  using What = decltype(Statement::what);

  What operator()(const Input&) const { throw Bug("an input has no formula"); }
  What operator()(const EinSum& einsum) const {
    Formula value = formulas_of(vertex, graph, labels).back();
    if (weak_steps(einsum.body).back()) value = cast(einsum.body.type(), value);
    if (einsum.reducer) {
      // What is reduced in f32 is of that type, unless the result is of its own.
      const DType type = language_type(value).value_or(einsum.body.type());
      const bool is_narrow = reduced_type(*einsum.reducer, type) == vertex.dtype;
      if (!is_narrow && compute_type(type) != type) value = cast(DType::f32, value);
      value = reduce(*einsum.reducer, names_at(einsum.reduced, labels), value);
    }
    if (language_type(value) != vertex.dtype) value = cast(vertex.dtype, value);
    return definition(names_at(einsum.output, labels), value);
  }
  What operator()(const View& view) const {
    return ViewDefinition{{vertex.name, {}}, groups(view.to), {graph[vertex.inputs[0]].name, {}}, groups(view.from)};
  }
  What operator()(const Opaque& opaque) const {
    const std::vector<std::string> matrix(labels.begin() + static_cast<std::ptrdiff_t>(batch_labels(opaque)),
                                          labels.end());
    return definition(
        names_at(dimensions_of(opaque), labels),
        call(result_of(opaque), matrix, element(graph[vertex.inputs[0]].name, names_at(opaque.operand, labels))));
  }

 private:
  std::optional<DType> language_type(const Formula& value) const {
    const auto of_tensor = [&](const std::string& name) {
      const auto read = std::find_if(vertex.inputs.begin(), vertex.inputs.end(),
                                     [&](VertexId input) { return graph[input].name == name; });
      return graph[*read].dtype;
    };
    return FormulaTypes(of_tensor)(value);
  }
  What definition(const std::vector<std::string>& left, const Formula& value) const {
    return Definition{{vertex.name, {}}, names(left), expr_of(value)};
  }
  std::vector<Group> groups(const std::vector<std::vector<std::size_t>>& positions) const {
    std::vector<Group> groups;
    for (const std::vector<std::size_t>& group : positions) groups.push_back(names(names_at(group, labels)));
    return groups;
  }
};

}  // namespace

Index index_of(const einrel::Index& index, const std::vector<std::string>& labels) {
  Index written;
  written.offset = index.offset;
  for (const einrel::IndexTerm& term : index.terms)
    written.terms.push_back({term.coefficient, {labels[term.label], {}}});
  return written;
}

std::vector<Formula> formulas_of(const Vertex& vertex, const EinGraph& graph, const std::vector<std::string>& labels) {
  const EinSum& einsum = *einsum_of(vertex);
  const std::vector<bool> weak = weak_steps(einsum.body);
  const std::vector<bool> whole = whole_steps(einsum.body);
  const std::vector<std::vector<std::size_t>> taken = arguments_of_steps(einsum.body);
  const std::vector<std::size_t> first = first_equal_steps(einsum.body);
  std::vector<Formula> formulas;
  for (std::size_t s = 0; s < taken.size(); ++s) {
    if (first[s] != s) {
      formulas.push_back(formulas[first[s]]);
      continue;
    }
    const ScalarStep& step = einsum.body.steps[s];
    std::vector<Formula> arguments;
    for (const std::size_t argument : taken[s]) arguments.push_back(formulas[argument]);
    std::optional<DType> weak_type;
    if (!taken[s].empty() && weak[taken[s].back()]) weak_type = einsum.body.steps[taken[s].back()].type;
    const bool is_where = std::holds_alternative<ApplyWhere>(step.op);
    if (is_where && weak[taken[s][1]] && weak[taken[s][2]] && is_integer(step.type))
      arguments[1] = cast(step.type, arguments[1]);  // else both sides would be f32
    if (is_comparison(step) && weak[taken[s][0]] && weak[taken[s][1]]) {
      const bool are_whole = whole[taken[s][0]] && whole[taken[s][1]];
      const DType compared = einsum.body.steps[taken[s][0]].type;
      if (compared != (are_whole ? DType::i64 : DType::f64)) arguments[0] = cast(compared, arguments[0]);
    }
    formulas.push_back(
        std::visit(StepFormula{vertex, einsum, graph, labels, step, std::move(arguments), weak_type}, step.op));
  }
  return formulas;
}

Statement statement_of(const Vertex& vertex, const EinGraph& graph, const std::vector<std::string>& labels) {
  return {vertex.where, std::visit(VertexStatement{vertex, graph, labels}, vertex.op)};
}

}  // namespace einrel::build
