#include "einsum/graph/vertex_key.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

struct PutStep {
  ByteKey& key;
  void operator()(const OperandValue& v) const { key.put(v.operand); }
  void operator()(const Constant& v) const {
    std::visit([this](auto number) { key.put(number); }, v.value);
  }
  void operator()(const LabelValue& v) const { key.put(v.label); }
  void operator()(const ScalarValue& v) const { key.put(v.name); }
  void operator()(const ApplyUnary& v) const { key.put(v.function); }
  void operator()(const ApplyBinary& v) const { key.put(v.function); }
  void operator()(const ApplyWhere&) const {}
  void operator()(const Convert&) const {}
  void operator()(const Round& v) const { key.put(v.to); }
  void operator()(const ApplyRandom& v) const {
    key.put(v.function);
    key.put(v.stream);
  }
  void operator()(const CheckRange& v) const {
    key.put(v.tensor);
    key.put(v.shape);
    key.put(v.indexed);
    key.put(v.extent);
  }
};

void put_step(ByteKey& key, const ScalarStep& step) {
  key.put(step.type);
  key.put(static_cast<std::uint8_t>(step.op.index()));
  std::visit(PutStep{key}, step.op);
}

bool is_read_plainly(const EinSum& einsum, std::size_t label) {
  return std::any_of(einsum.operands.begin(), einsum.operands.end(), [&](const Access& access) {
    return std::any_of(access.indices.begin(), access.indices.end(),
                       [&](const Index& index) { return plain_label(index) == label; });
  });
}

/// For how many steps an input stays where it is brought, and where it lies.
void put_input(ByteKey& key, const Input& input) {
  key.put(input.steps);
  key.put(static_cast<std::uint8_t>(input.placement.has_value()));
  if (!input.placement) return;
  key.put(input.placement->size());
  for (const SiteDigit& digit : *input.placement) {
    key.put(static_cast<std::uint8_t>(digit.dimension.has_value()));
    key.put(digit.dimension.value_or(0));
    key.put(digit.sites);
  }
}

struct PutOp {
  ByteKey& key;
  const Vertex& vertex;

  void operator()(const Input& input) const {
    key.put(vertex.bound);
    put_input(key, input);
  }

  void operator()(const EinSum& einsum) const {
    put_labels(einsum.labels);
    for (std::size_t l = 0; l < einsum.labels.size(); ++l) {
      // Two open extents are the same where the same tensor gives them.
      if (einsum.labels[l].extent.is_open() && !is_read_plainly(einsum, l)) key.put(einsum.labels[l].name);
    }
    key.put(einsum.output);
    key.put(einsum.reduced);
    key.put(static_cast<std::int8_t>(einsum.reducer ? static_cast<int>(*einsum.reducer) : -1));
    key.put(einsum.operands.size());
    for (const Access& access : einsum.operands) {
      key.put(static_cast<std::uint8_t>(access.pad.has_value()));
      key.put(access.pad.value_or(0));
      key.put(access.indices.size());
      for (const Index& index : access.indices) {
        key.put(index.offset);
        key.put(index.terms.size());
        for (const IndexTerm& term : index.terms) {
          key.put(term.coefficient);
          key.put(term.label);
        }
      }
    }
    for (const ScalarStep& step : einsum.body.steps) put_step(key, step);
  }

  void operator()(const View& view) const {
    put_labels(view.labels);
    for (const auto* groups : {&view.from, &view.to}) {
      key.put(groups->size());
      for (const std::vector<std::size_t>& group : *groups) key.put(group);
    }
  }

  void operator()(const Opaque& opaque) const {
    put_labels(opaque.labels);
    key.put(opaque.function);
    key.put(opaque.output);
    key.put(opaque.operand);
  }

  void put_labels(const std::vector<Label>& labels) const {
    key.put(labels.size());
    for (const Label& label : labels) key.put(label.extent);
  }
};

}  // namespace

void put_computation(ByteKey& key, const Vertex& vertex) {
  key.put(vertex.dtype);
  key.put(static_cast<std::uint8_t>(vertex.op.index()));
  std::visit(PutOp{key, vertex}, vertex.op);
}

namespace {

using Arguments = std::vector<std::vector<std::size_t>>;

/// For each step, the first one that computes the same, and has the same mark if it takes arguments.
std::vector<std::size_t> first_equal(const ScalarExpr& expr, const Arguments& arguments,
                                     const std::vector<std::size_t>& marks) {
  std::unordered_map<std::string, std::size_t> known;
  std::vector<std::size_t> first;
  for (std::size_t s = 0; s < expr.steps.size(); ++s) {
    ByteKey key;
    put_step(key, expr.steps[s]);
    for (const std::size_t argument : arguments[s]) key.put(first[argument]);
    if (!arguments[s].empty()) key.put(marks[s]);
    first.push_back(known.insert({key.take(), s}).first->second);
  }
  return first;
}

/// A number for each step that says on which sides of where() it stands.
std::vector<std::size_t> sides_of_steps(const ScalarExpr& expr, const Arguments& arguments,
                                        const std::vector<std::size_t>& first) {
  std::map<std::array<std::size_t, 3>, std::size_t> known;  // by what is around it, the condition, and the side
  std::vector<std::size_t> sides(expr.steps.size());
  for (std::size_t s = expr.steps.size(); s-- > 0;) {
    const bool is_where = std::holds_alternative<ApplyWhere>(expr.steps[s].op);
    for (std::size_t a = 0; a < arguments[s].size(); ++a) {
      std::size_t& inner = sides[arguments[s][a]];
      inner = sides[s];
      if (is_where && a > 0)
        inner = known.insert({{sides[s], first[arguments[s][0]], a}, known.size() + 1}).first->second;
    }
  }
  return sides;
}

/// What is given of a tensor that is read: of what is computed, as much as of an input of which nothing is.
struct PutGiven {
  ByteKey& key;
  void operator()(const Input& input) const { put_input(key, input); }
  template <class Computed>
  void operator()(const Computed& /*op*/) const {
    put_input(key, {});
  }
};

}  // namespace

void put_computation_of_inputs(ByteKey& key, const Vertex& vertex, const EinGraph& graph) {
  put_computation(key, vertex);
  key.put(vertex.bound);
  for (const VertexId input : vertex.inputs) {
    key.put(graph[input].bound);
    key.put(graph[input].dtype);
    std::visit(PutGiven{key}, graph[input].op);
    const auto first = std::find(vertex.inputs.begin(), vertex.inputs.end(), input);
    key.put(static_cast<std::size_t>(first - vertex.inputs.begin()));
  }
}

std::vector<std::size_t> first_equal_steps(const ScalarExpr& expr) {
  const Arguments arguments = arguments_of_steps(expr);
  const std::vector<std::size_t> anywhere = first_equal(expr, arguments, std::vector<std::size_t>(expr.steps.size()));
  return first_equal(expr, arguments, sides_of_steps(expr, arguments, anywhere));
}

}  // namespace einrel
