#include <algorithm>

#include "einsum/expr/scalar_expr.h"
#include "einsum/graph/ein_graph.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

/// How often each label stands in `positions`.
void count_labels(const std::vector<std::size_t>& positions, std::vector<std::size_t>& counts) {
  for (const std::size_t label : positions) {
    invariant(label < counts.size(), "a label position is in range");
    ++counts[label];
  }
}

void verify_access(const Access& access, const Vertex& operand, const EinSum& einsum) {
  invariant(access.indices.size() == operand.bound.size(), "an access has one index per dimension");
  const bool reads_nothing = std::any_of(access.indices.begin(), access.indices.end(), [&](const Index& index) {
    return std::any_of(index.terms.begin(), index.terms.end(), [&](const IndexTerm& term) {
      invariant(term.label < einsum.labels.size(), "an index label is in range");
      return einsum.labels[term.label].extent == Extent(0);
    });
  });
  if (access.pad || reads_nothing) return;
  for (std::size_t d = 0; d < access.indices.size(); ++d) {
    const bool is_open = operand.bound[d].is_open() ||
                         std::any_of(access.indices[d].terms.begin(), access.indices[d].terms.end(),
                                     [&](const IndexTerm& term) { return einsum.labels[term.label].extent.is_open(); });
    if (is_open) continue;
    std::int64_t low = access.indices[d].offset;
    std::int64_t high = low;
    for (const IndexTerm& term : access.indices[d].terms) {
      const std::int64_t reach = checked_multiply(term.coefficient, einsum.labels[term.label].extent.value() - 1);
      std::int64_t& end = term.coefficient < 0 ? low : high;
      end = checked_add(end, reach);
    }
    invariant(low >= 0 && high < operand.bound[d].value(), "an access without pad stays inside its operand");
  }
}

/// Runs the types of the body over a stack of types.
void verify_body(const EinSum& einsum, const Vertex& vertex, const EinGraph& graph) {
  std::vector<DType> stack;
  for (const ScalarStep& step : einsum.body.steps) {
    invariant(step.type != DType::bf16 && step.type != DType::f16, "narrow types are computed in f32");
    const std::size_t taken = arity(step);
    invariant(stack.size() >= taken, "a step finds its arguments");
    if (const auto* operand = std::get_if<OperandValue>(&step.op)) {
      invariant(operand->operand < vertex.inputs.size(), "an operand position is in range");
      const DType dtype = graph[vertex.inputs[operand->operand]].dtype;
      invariant(compute_type(dtype) == step.type, "an operand arrives in its compute type");
    } else if (const auto* label = std::get_if<LabelValue>(&step.op)) {
      invariant(label->label < einsum.labels.size(), "a label value is in range");
    } else if (const auto* constant = std::get_if<Constant>(&step.op)) {
      invariant(std::holds_alternative<double>(constant->value) == is_float(step.type), "a constant fits its type");
    } else if (const auto* binary = std::get_if<ApplyBinary>(&step.op)) {
      const DType a = stack[stack.size() - 2];
      invariant(a == stack.back(), "both arguments of a binary step have one type");
      invariant(binary->function != BinaryFunction::divide || is_float(a), "integers are not divided");
      invariant(is_comparison(binary->function) ? step.type == DType::boolean : step.type == a,
                "a binary step keeps the type");
    } else if (std::holds_alternative<ApplyWhere>(step.op)) {
      invariant(stack[stack.size() - 3] == DType::boolean, "a condition is a bool");
      invariant(stack[stack.size() - 2] == step.type && stack.back() == step.type,
                "both branches have the result's type");
    } else if (const auto* unary = std::get_if<ApplyUnary>(&step.op)) {
      invariant(stack.back() == step.type, "a unary step keeps the type");
      invariant(keeps_integers(unary->function) || is_float(step.type), "only some functions are of integers");
    } else if (std::holds_alternative<ApplyRandom>(step.op)) {
      invariant(std::all_of(stack.end() - 3, stack.end(), [](DType type) { return type == DType::i64; }),
                "a random number is found by whole numbers");
      invariant(step.type == DType::f32 || step.type == DType::f64, "a random number is a float");
    } else if (std::holds_alternative<CheckRange>(step.op)) {
      invariant(stack.back() == DType::i64 && stack[stack.size() - 2] == DType::i64 && step.type == DType::i64,
                "what is in range and where it stands are whole numbers");
    } else if (const auto* round = std::get_if<Round>(&step.op)) {
      invariant(is_narrow(round->to), "values are rounded to narrow types");
      invariant(step.type == DType::f32, "what is rounded to a narrow type is computed with in f32");
    }
    stack.resize(stack.size() - taken);
    stack.push_back(step.type);
  }
  invariant(stack.size() == 1, "a body leaves one value");
}

void verify_einsum(const EinSum& einsum, const Vertex& vertex, const EinGraph& graph) {
  std::vector<std::size_t> counts(einsum.labels.size(), 0);
  count_labels(einsum.output, counts);
  count_labels(einsum.reduced, counts);
  invariant(std::all_of(counts.begin(), counts.end(), [](std::size_t n) { return n == 1; }),
            "every label is in the output or reduced, once");
  invariant(einsum.reducer.has_value() || einsum.reduced.empty(), "labels are reduced by a reducer");
  invariant(vertex.bound.size() == einsum.output.size(), "the bound has one extent per output label");
  for (std::size_t d = 0; d < einsum.output.size(); ++d) {
    invariant(vertex.bound[d] == einsum.labels[einsum.output[d]].extent, "the bound is that of the output labels");
  }
  invariant(einsum.operands.size() == vertex.inputs.size(), "one access per input");
  for (std::size_t i = 0; i < vertex.inputs.size(); ++i)
    verify_access(einsum.operands[i], graph[vertex.inputs[i]], einsum);
  invariant(!einsum.body.steps.empty(), "a body computes something");
  verify_body(einsum, vertex, graph);
  const DType type = einsum.body.type();
  const DType result = einsum.reducer ? reduced_type(*einsum.reducer, type) : type;
  invariant(compute_type(vertex.dtype) == result, "the vertex has the type that its body and reducer give");
}

void verify_view(const View& view, const Vertex& vertex, const EinGraph& graph) {
  invariant(vertex.inputs.size() == 1, "a view has one operand");
  const auto verify_side = [&](const std::vector<std::vector<std::size_t>>& groups, const Shape& bound) {
    std::vector<std::size_t> counts(view.labels.size(), 0);
    invariant(groups.size() == bound.size(), "one group per dimension");
    for (std::size_t d = 0; d < groups.size(); ++d) {
      count_labels(groups[d], counts);
      std::int64_t product = 1;
      const bool is_open =
          bound[d].is_open() || std::any_of(groups[d].begin(), groups[d].end(),
                                            [&](std::size_t label) { return view.labels[label].extent.is_open(); });
      if (is_open) continue;
      for (const std::size_t label : groups[d]) product = checked_multiply(product, view.labels[label].extent.value());
      invariant(Extent(product) == bound[d], "a group multiplies to its dimension");
    }
    invariant(std::all_of(counts.begin(), counts.end(), [](std::size_t n) { return n == 1; }),
              "every label stands once on a side");
  };
  verify_side(view.from, graph[vertex.inputs[0]].bound);
  verify_side(view.to, vertex.bound);
  invariant(vertex.dtype == graph[vertex.inputs[0]].dtype, "a view keeps the dtype");
}

void verify_opaque(const Opaque& opaque, const Vertex& vertex, const EinGraph& graph) {
  invariant(vertex.inputs.size() == 1, "linear algebra has one operand");
  invariant(opaque.labels.size() >= matrix_labels(opaque.function), "a matrix has rows and columns");
  invariant(opaque.output < results_of(opaque.function).size(), "the function has that output");
  invariant(vertex.dtype == DType::f32 || vertex.dtype == DType::f64, "linear algebra computes f32 and f64");
  const Vertex& operand = graph[vertex.inputs[0]];
  invariant(vertex.dtype == operand.dtype, "linear algebra keeps the dtype");
  std::vector<std::size_t> counts(opaque.labels.size(), 0);
  count_labels(opaque.operand, counts);
  const std::size_t between = batch_labels(opaque) + 2;
  for (std::size_t l = 0; l < counts.size(); ++l)
    invariant(counts[l] == (l == between ? 0U : 1U), "every label of the operand is one dimension of it");
  Shape bound;
  for (const std::size_t label : opaque.operand) bound.push_back(opaque.labels[label].extent);
  invariant(bound == operand.bound, "labels have the extents of the operand");
  Shape result;
  for (const std::size_t label : dimensions_of(opaque)) result.push_back(opaque.labels[label].extent);
  invariant(result == vertex.bound, "the result has the extents of its labels");
  const Extent rows = opaque.labels[batch_labels(opaque)].extent;
  const Extent columns = opaque.labels[batch_labels(opaque) + 1].extent;
  if (rows.is_open() || columns.is_open()) return;
  if (opaque.function == OpaqueFunction::inverse) {
    invariant(rows == columns, "a matrix is square");
  } else {
    invariant(opaque.labels[between].extent == Extent(std::min(rows.value(), columns.value())),
              "what is between two factors is as long as the shorter side");
  }
}

struct VerifyOp {
  const Vertex& vertex;
  const EinGraph& graph;
  void operator()(const Input&) const { invariant(vertex.inputs.empty(), "an input reads nothing"); }
  void operator()(const EinSum& einsum) const { verify_einsum(einsum, vertex, graph); }
  void operator()(const View& view) const { verify_view(view, vertex, graph); }
  void operator()(const Opaque& opaque) const { verify_opaque(opaque, vertex, graph); }
};

void verify_steps(const EinGraph& graph) {
  const Steps& steps = graph.steps;
  invariant(steps.feedback <= graph.outputs.size(), "what only steps need are outputs");
  const auto output = [&](std::size_t position) -> const Vertex& {
    invariant(position < graph.outputs.size(), "what goes to the next step is an output");
    return graph[graph.outputs[position]];
  };
  for (const State& state : steps.states) {
    invariant(state.now.index < graph.vertices.size() && is_input(graph[state.now]), "a state is an input");
    if (!state.next) continue;
    const Vertex& next = output(*state.next);
    const Vertex& now = graph[state.now];
    invariant(next.dtype == now.dtype, "a state keeps its type");
    const auto same = [](Extent a, Extent b) { return a.is_open() || b.is_open() || a == b; };
    invariant(std::equal(next.bound.begin(), next.bound.end(), now.bound.begin(), now.bound.end(), same),
              "a state keeps its shape");
  }
  if (!steps.until) return;
  const Vertex& until = output(*steps.until);
  invariant(until.dtype == DType::boolean && until.bound.empty(), "a condition is one bool");
}

}  // namespace

void verify(const EinGraph& graph) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    for (const VertexId input : vertex.inputs) invariant(input.index < v, "inputs come before their readers");
    std::visit(VerifyOp{vertex, graph}, vertex.op);
  }
  for (const VertexId output : graph.outputs) invariant(output.index < graph.vertices.size(), "an output is a vertex");
  verify_steps(graph);
}

}  // namespace einrel
