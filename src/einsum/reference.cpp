#include "einsum/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "einsum/expr/scalar_value.h"
#include "einsum/expr/whole_number.h"
#include "einsum/graph/vertex_facts.h"
#include "tensor/convert.h"

namespace einrel {
namespace {

/// A position for every label of the vertex.
using Binding = std::vector<std::int64_t>;

double as_double(Number value) {
  return std::visit([](auto computed) { return static_cast<double>(computed); }, value);
}

void store(Tensor& tensor, std::int64_t offset, Number value) {
  with_stored_type(tensor.dtype(), [&]<class Stored>() {
    const auto stored = std::visit([](auto computed) { return narrow<Stored>(computed); }, value);
    std::memcpy(tensor.mutable_data() + offset * static_cast<std::int64_t>(sizeof(Stored)), &stored, sizeof(Stored));
  });
}

std::int64_t index_value(const Index& index, const Binding& binding) {
  std::int64_t value = index.offset;
  for (const IndexTerm& term : index.terms) value += term.coefficient * binding[term.label];
  return value;
}

Number read(const Access& access, const Tensor& operand, const Binding& binding) {
  invariant(access.indices.size() == operand.rank(), "an access has one index per dimension of its operand");
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < operand.rank(); ++d) {
    const std::int64_t at = index_value(access.indices[d], binding);
    if (at < 0 || at >= operand.shape()[d].value()) {
      invariant(access.pad.has_value(), "an access without pad reads outside its operand");
      return *access.pad;
    }
    offset += at * operand.strides()[d];
  }
  return with_stored_type(operand.dtype(),
                          [&]<class Stored>() -> Number { return widen(operand.load<Stored>(offset)); });
}

/// What the leaves of a body stand for at one binding.
struct LeafValues {
  const EinSum& einsum;
  const std::vector<Tensor>& operands;
  const ScalarBindings& scalars;
  const Binding& binding;

  Number operator()(const OperandValue& op) const {
    return read(einsum.operands[op.operand], operands[op.operand], binding);
  }
  Number operator()(const LabelValue& op) const { return binding[op.label]; }
  Number operator()(const ScalarValue& op) const {
    const auto bound = scalars.find(op.name);
    invariant(bound != scalars.end(), "a scalar is not bound");
    return bound->second;
  }
};

/// Visits every binding of `which` labels in row-major order; the other labels of `binding` stay as they are.
template <class Visit>
void for_each_binding(const std::vector<Label>& labels, const std::vector<std::size_t>& which, Binding& binding,
                      Visit&& visit) {
  Shape extents;
  for (const std::size_t label : which) extents.push_back(labels[label].extent);
  const std::int64_t count = element_count(extents);
  for (const std::size_t label : which) binding[label] = 0;
  for (std::int64_t visited = 0; visited < count; ++visited) {
    visit();
    for (std::size_t d = which.size(); d-- > 0;) {
      if (++binding[which[d]] < extents[d].value()) break;
      binding[which[d]] = 0;
    }
  }
}

/// What a row of functions.def makes of all values, one after another. A: a double or a WholeNumber.
template <class A, class Take>
// NOLINTNEXTLINE(readability-function-cognitive-complexity): a case for each row
A folded(Reducer reducer, const std::vector<Number>& values, Take take) {
  switch (reducer) {
#define EINREL_PAIR_REDUCER(...)
#define EINREL_REDUCER(id, name, usage, meaning, result, traits, kept, start, each, fold, continues, slope, sql, jax, \
                       torch, add, ...)                                                                               \
  case Reducer::id:                                                                                                   \
    if constexpr (Kept::kept != Kept::truth || std::is_same_v<A, WholeNumber>) {                                      \
      A a = start;                                                                                                    \
      for (const Number value : values) {                                                                             \
        const A b = take(value);                                                                                      \
        a = add;                                                                                                      \
      }                                                                                                               \
      return a;                                                                                                       \
    }                                                                                                                 \
    break;
#include "einsum/expr/functions.def"
    default: break;
  }
  throw Bug("a reducer of other values, or one that keeps two numbers");
}

/// m + log(sum of exp(x - m)), where m is the largest x.
Number logsumexp(const std::vector<Number>& values) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const Number value : values) largest = apply(BinaryFunction::maximum, largest, as_double(value));
  if (!std::isfinite(largest)) return largest;
  double sum = 0;
  for (const Number value : values) sum += std::exp(as_double(value) - largest);
  return largest + std::log(sum);
}

/// The position of the first value that no other beats. A NaN beats every number.
template <class Computed>
std::int64_t first_extreme(const std::vector<Number>& values, BinaryFunction beats) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const auto value = std::get<Computed>(values[i]);
    const auto held = std::get<Computed>(values[best]);
    if (held != held) break;
    if (value != value || apply(beats, value, held) != 0) best = i;
  }
  return static_cast<std::int64_t>(best);
}

Number position_of_extreme(BinaryFunction beats, DType type, const std::vector<Number>& values) {
  invariant(!values.empty(), "argmax and argmin need at least one value");
  return is_float(type) ? first_extreme<double>(values, beats) : first_extreme<std::int64_t>(values, beats);
}

/// All values of one reduction, in row-major order of the reduced labels, as one number.
Number reduce(Reducer reducer, DType type, const std::vector<Number>& values) {
  if (reducer == Reducer::argmax) return position_of_extreme(BinaryFunction::greater, type, values);
  if (reducer == Reducer::argmin) return position_of_extreme(BinaryFunction::less, type, values);
  if (reducer == Reducer::logsumexp) return logsumexp(values);
  invariant(!has(reducer, ReducerTrait::needs_one) || !values.empty(), "max and min need at least one value");
  const Kept kept = kept_by(reducer);
  if (kept == Kept::truth) return folded<WholeNumber>(reducer, values, is_true).value;
  if (kept == Kept::real || is_float(type)) {
    const double all = folded<double>(reducer, values, as_double);
    return reducer == Reducer::mean ? all / static_cast<double>(values.size()) : all;
  }
  return folded<WholeNumber>(reducer, values, [](Number value) { return std::get<std::int64_t>(value); }).value;
}

Tensor evaluate(const Vertex& vertex, const EinSum& einsum, const std::vector<Tensor>& operands,
                const ScalarBindings& scalars) {
  Tensor result(vertex.dtype, vertex.bound);
  Binding binding(einsum.labels.size(), 0);
  const auto value = [&] { return evaluate(einsum.body, LeafValues{einsum, operands, scalars, binding}); };
  std::int64_t offset = 0;
  for_each_binding(einsum.labels, einsum.output, binding, [&] {
    if (einsum.reducer) {
      std::vector<Number> values;
      for_each_binding(einsum.labels, einsum.reduced, binding, [&] { values.push_back(value()); });
      store(result, offset++, reduce(*einsum.reducer, einsum.body.type(), values));
    } else {
      store(result, offset++, value());
    }
  });
  return result;
}

/// The position along one dimension that groups several labels, the first one slowest.
std::int64_t group_position(const View& view, const std::vector<std::size_t>& group, const Binding& binding) {
  std::int64_t position = 0;
  for (const std::size_t label : group) position = position * view.labels[label].extent.value() + binding[label];
  return position;
}

std::int64_t element_offset(const View& view, const std::vector<std::vector<std::size_t>>& groups,
                            const Strides& strides, const Binding& binding) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < groups.size(); ++d) offset += group_position(view, groups[d], binding) * strides[d];
  return offset;
}

Tensor evaluate(const Vertex& vertex, const View& view, const std::vector<Tensor>& operands, const ScalarBindings&) {
  const Tensor& operand = operands.at(0);
  invariant(view.from.size() == operand.rank(), "a view names every dimension of its operand");
  Tensor result(vertex.dtype, vertex.bound);
  std::vector<std::size_t> every(view.labels.size());
  for (std::size_t label = 0; label < every.size(); ++label) every[label] = label;
  Binding binding(view.labels.size(), 0);
  const auto size = static_cast<std::int64_t>(size_of(vertex.dtype));
  for_each_binding(view.labels, every, binding, [&] {
    const std::int64_t from = element_offset(view, view.from, operand.strides(), binding);
    const std::int64_t to = element_offset(view, view.to, result.strides(), binding);
    std::memcpy(result.mutable_data() + to * size, operand.data() + from * size, static_cast<std::size_t>(size));
  });
  return result;
}

/// X^-1 by Gauss-Jordan elimination with the largest pivot of each column, in long double; nothing where a column has
/// none but zeros.
std::optional<std::vector<long double>> inverse_of(std::vector<long double> x, std::size_t n) {
  std::vector<long double> inverse(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) inverse[i * n + i] = 1;
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < n; ++row) {
      if (std::abs(x[row * n + column]) > std::abs(x[pivot * n + column])) pivot = row;
    }
    const long double value = x[pivot * n + column];
    if (value == 0) return std::nullopt;
    for (auto* const matrix : {&x, &inverse}) {
      std::swap_ranges(&(*matrix)[pivot * n], &(*matrix)[pivot * n] + n, &(*matrix)[column * n]);
      for (std::size_t k = 0; k < n; ++k) (*matrix)[column * n + k] /= value;
    }
    for (std::size_t row = 0; row < n; ++row) {
      const long double factor = x[row * n + column];
      if (row == column || factor == 0) continue;
      for (auto* const matrix : {&x, &inverse}) {
        for (std::size_t k = 0; k < n; ++k) (*matrix)[row * n + k] -= factor * (*matrix)[column * n + k];
      }
    }
  }
  return inverse;
}

/// H x for each column of x (`columns` of them in a row), where H = 1 - 2 v v^T / v^T v.
void reflect(const std::vector<long double>& v, std::vector<long double>& x, std::size_t columns) {
  long double square = 0;
  for (const long double each : v) square += each * each;
  if (square == 0) return;
  for (std::size_t j = 0; j < columns; ++j) {
    long double product = 0;
    for (std::size_t i = 0; i < v.size(); ++i) product += v[i] * x[i * columns + j];
    for (std::size_t i = 0; i < v.size(); ++i) x[i * columns + j] -= 2 * product / square * v[i];
  }
}

/// Q (rows x shorter) and R (shorter x columns) of x = Q R by Householder's reflections: each takes what is below the
/// diagonal of a column to the diagonal, with the other sign; where nothing is below, there is none.
std::array<std::vector<long double>, 2> qr_of(std::vector<long double> x, std::size_t rows, std::size_t columns) {
  const std::size_t shorter = std::min(rows, columns);
  std::vector<std::vector<long double>> reflections;
  for (std::size_t k = 0; k < shorter; ++k) {
    std::vector<long double> v(rows, 0);
    long double below = 0;
    for (std::size_t i = k; i < rows; ++i) {
      v[i] = x[i * columns + k];
      if (i > k) below += v[i] * v[i];
    }
    if (below == 0) {
      v.assign(rows, 0);
    } else {
      v[k] += (v[k] < 0 ? -1 : 1) * std::sqrt(v[k] * v[k] + below);
    }
    reflect(v, x, columns);
    for (std::size_t i = k + 1; i < rows; ++i) x[i * columns + k] = 0;
    reflections.push_back(std::move(v));
  }
  std::vector<long double> q(rows * shorter, 0);
  for (std::size_t k = 0; k < shorter; ++k) q[k * shorter + k] = 1;
  for (std::size_t k = shorter; k-- > 0;) reflect(reflections[k], q, shorter);
  x.resize(shorter * columns);
  return {std::move(q), std::move(x)};
}

Tensor evaluate(const Vertex& vertex, const Opaque& opaque, const std::vector<Tensor>& operands,
                const ScalarBindings&) {
  const Tensor& operand = operands.at(0);
  Tensor result(vertex.dtype, vertex.bound);
  std::vector<std::size_t> batch(batch_labels(opaque));
  std::iota(batch.begin(), batch.end(), std::size_t{0});
  const std::vector<std::size_t> matrix{batch.size(), batch.size() + 1};
  const auto rows = static_cast<std::size_t>(opaque.labels[matrix[0]].extent.value());
  const auto columns = static_cast<std::size_t>(opaque.labels[matrix[1]].extent.value());
  Access access;
  for (const std::size_t label : opaque.operand) access.indices.push_back({0, {{1, label}}});
  Binding binding(opaque.labels.size(), 0);
  std::int64_t done = 0;
  std::int64_t offset = 0;
  for_each_binding(opaque.labels, batch, binding, [&] {
    std::vector<long double> values;
    for_each_binding(opaque.labels, matrix, binding,
                     [&] { values.push_back(as_double(read(access, operand, binding))); });
    if (opaque.function == OpaqueFunction::qr) {
      const auto factors = qr_of(std::move(values), rows, columns);
      for (const long double value : factors[opaque.output]) store(result, offset++, static_cast<double>(value));
      return;
    }
    const auto inverse = inverse_of(std::move(values), rows);
    if (!inverse) throw UserError(singular_text(vertex, done));
    ++done;
    for (const long double value : *inverse) store(result, offset++, static_cast<double>(value));
  });
  return result;
}

Tensor evaluate(const Vertex&, const Input&, const std::vector<Tensor>&, const ScalarBindings&) {
  throw Bug("an input has nothing to evaluate");
}

}  // namespace

Tensor evaluate_reference(const Vertex& vertex, const std::vector<Tensor>& operands, const ScalarBindings& scalars) {
  return std::visit([&](const auto& op) { return evaluate(vertex, op, operands, scalars); }, vertex.op);
}

std::vector<Tensor> evaluate_reference(const EinGraph& graph, const TensorBindings& inputs,
                                       const ScalarBindings& scalars) {
  std::vector<Tensor> values;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) {
      const auto bound = inputs.find(vertex.name);
      invariant(bound != inputs.end(), "an input is not bound");
      values.push_back(bound->second);
    } else {
      std::vector<Tensor> operands;
      for (const VertexId input : vertex.inputs) operands.push_back(values[input.index]);
      values.push_back(evaluate_reference(vertex, operands, scalars));
    }
  }
  std::vector<Tensor> outputs;
  for (const VertexId output : graph.outputs) outputs.push_back(values[output.index]);
  return outputs;
}

}  // namespace einrel
