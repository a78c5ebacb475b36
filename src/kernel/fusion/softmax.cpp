#include "kernel/fusion/softmax.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "einsum/graph/vertex_facts.h"
#include "kernel/elementwise/lanes.h"
#include "kernel/elementwise/softmax_rows.h"
#include "machine/processor.h"

namespace einrel {
namespace {

/// The labels of a vertex in the order of its operand's dimensions: all of them, or all but the last.
enum class Read : std::uint8_t { all, rows };

/// Whether operand o is read in place, and as a whole.
bool reads(const EinGraph& program, const Vertex& vertex, std::size_t o, Read read) {
  const auto& einsum = std::get<EinSum>(vertex.op);
  std::vector<std::size_t> labels = einsum.output;
  labels.insert(labels.end(), einsum.reduced.begin(), einsum.reduced.end());
  if (read == Read::rows) labels.pop_back();
  Access whole;
  Shape bound;
  for (const std::size_t label : labels) {
    whole.indices.push_back({0, {{1, label}}});
    bound.push_back(einsum.labels[label].extent);
  }
  return einsum.operands[o] == whole && program[vertex.inputs[o]].bound == bound;
}

/// Whether a vertex is this function of its inputs in this order, all of one type.
bool computes(const EinGraph& program, const Vertex& vertex, std::optional<Reducer> reducer, const ScalarExpr& body,
              const std::vector<Read>& inputs) {
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr || einsum->reducer != reducer || einsum->reduced.size() != (reducer ? 1 : 0)) return false;
  if (vertex.inputs.size() != inputs.size()) return false;
  if (einsum->body != body) return false;
  for (std::size_t o = 0; o < inputs.size(); ++o) {
    if (program[vertex.inputs[o]].dtype != vertex.dtype || !reads(program, vertex, o, inputs[o])) return false;
  }
  return true;
}

/// What the vertices of a softmax of a type compute.
struct Bodies {
  ScalarExpr value;
  ScalarExpr exponential;
  ScalarExpr quotient;
};

Bodies bodies_of(DType type, bool has_nothing) {
  const ScalarStep first{type, OperandValue{0}};
  const ScalarStep second{type, OperandValue{1}};
  const ScalarStep again{type, OperandValue{2}};  // the largest, which is read twice
  const ScalarStep nothing{type, Constant{0.0}};
  const ScalarStep equal = binary_step(DType::boolean, BinaryFunction::equal);
  const ScalarStep subtract = binary_step(type, BinaryFunction::subtract);
  const ScalarStep exponential{type, ApplyUnary{UnaryFunction::exp}};
  const ScalarStep divide = binary_step(type, BinaryFunction::divide);
  if (!has_nothing) return {{{first}}, {{first, second, subtract, exponential}}, {{first, second, divide}}};
  Bodies bodies{{{first}}, {{first, second}}, {{first, second, second, nothing, equal, {type, Convert{}}}}};
  if (type != DType::f64) bodies.exponential.steps.push_back({DType::f64, Convert{}});
  append(bodies.exponential, {{{DType::f64, Constant{-std::numeric_limits<double>::infinity()}},
                               equal,
                               nothing,
                               again,
                               {type, ApplyWhere{}},
                               subtract,
                               exponential}});
  append(bodies.quotient, {{binary_step(type, BinaryFunction::add), divide}});
  return bodies;
}

std::optional<Softmax> softmax_of(const EinGraph& program, std::size_t v, bool has_nothing) {
  const std::vector<Vertex>& all = program.vertices;
  const auto input = [&](std::size_t of, std::size_t o) { return all[of].inputs[o].index; };
  const DType type = all[v].dtype;
  if (type != DType::f32 && type != DType::f64) return std::nullopt;
  const Bodies bodies = bodies_of(type, has_nothing);
  Softmax found;
  found.quotient = v;
  found.has_nothing = has_nothing;
  if (!computes(program, all[v], {}, bodies.quotient, {Read::all, Read::rows})) return std::nullopt;
  found.exponentials = input(v, 0);
  found.sum = input(v, 1);
  if (!computes(program, all[found.sum], Reducer::sum, bodies.value, {Read::all}) ||
      input(found.sum, 0) != found.exponentials ||
      !computes(program, all[found.exponentials], {}, bodies.exponential,
                has_nothing ? std::vector{Read::all, Read::rows, Read::rows} : std::vector{Read::all, Read::rows}))
    return std::nullopt;
  found.from = input(found.exponentials, 0);
  found.largest = input(found.exponentials, 1);
  if (all[found.exponentials].inputs.back().index != found.largest) return std::nullopt;
  if (!computes(program, all[found.largest], Reducer::max, bodies.value, {Read::all}) ||
      input(found.largest, 0) != found.from)
    return std::nullopt;
  return found;
}

/// Whether only the softmax itself reads what lies inside of it.
bool is_closed(const EinGraph& program, const Softmax& softmax) {
  std::size_t readers = 0;
  const auto is_inside = [&](VertexId id) {
    return id.index == softmax.largest || id.index == softmax.exponentials || id.index == softmax.sum;
  };
  for (const Vertex& vertex : program.vertices) {
    readers += static_cast<std::size_t>(std::count_if(vertex.inputs.begin(), vertex.inputs.end(), is_inside));
  }
  const std::size_t own_readers = softmax.has_nothing ? 5 : 4;  // two of the exponentials; of the largest, two or one
  return readers == own_readers && std::none_of(program.outputs.begin(), program.outputs.end(), is_inside);
}

/// Rows that lie evenly, as often as the loops around them say.
struct SoftmaxCall {
  SoftmaxRows rows;
  std::vector<Loop> around;  ///< with the offsets of `from` and of `to`
};

template <class T>
void run_softmax(const SoftmaxCall& call, const Arrays& arrays, Workspace workspace) {
  Odometer around(call.around, {0, 0});
  for (std::int64_t position = 0; position < around.count(); ++position, around.advance()) {
    softmax_rows(call.rows, reinterpret_cast<const T*>(arrays.operands[0]) + around.quantities()[0],
                 reinterpret_cast<T*>(arrays.result) + around.quantities()[1], reinterpret_cast<T*>(workspace.own));
  }
}

SoftmaxCall call_for(const Softmax& softmax, const ArrayLayout& from, const ArrayLayout& to, bool streams) {
  SoftmaxCall call;
  call.rows.has_nothing = softmax.has_nothing;
  const std::int64_t length = to.shape.back().value();
  const Cut cut = cut_of({{length, false, {1, 1}}}, most_lanes_in_place);
  call.rows.length = static_cast<std::size_t>(length);
  call.rows.block = static_cast<std::size_t>(cut.inside * cut.range);
  call.rows.streams = streams;
  std::vector<Loop> loops;
  for (std::size_t d = 0; d + 1 < to.shape.size(); ++d) {
    const Loop inner{to.shape[d].value(), false, {from.strides[d], to.strides[d]}};
    if (inner.extent == 1) continue;
    const auto goes_on = [&](std::size_t q) { return loops.back().steps[q] == inner.steps[q] * inner.extent; };
    if (loops.empty() || !goes_on(0) || !goes_on(1)) {
      loops.push_back(inner);
    } else {
      loops.back() = {loops.back().extent * inner.extent, false, inner.steps};
    }
  }
  if (!loops.empty()) {
    call.rows.rows = static_cast<std::size_t>(loops.back().extent);
    call.rows.from_step = loops.back().steps[0];
    call.rows.to_step = loops.back().steps[1];
    loops.pop_back();
  }
  call.around = std::move(loops);
  return call;
}

}  // namespace

std::vector<Softmax> find_softmaxes(const EinGraph& program) {
  std::vector<Softmax> found;
  for (std::size_t v = 0; v < program.vertices.size(); ++v) {
    for (const bool has_nothing : {true, false}) {
      const std::optional<Softmax> softmax = softmax_of(program, v, has_nothing);
      if (softmax && is_closed(program, *softmax)) found.push_back(*softmax);
    }
  }
  return found;
}

std::optional<SoftmaxOffer> offer_softmax(const Softmax& softmax, const ArrayLayout& from, const ArrayLayout& to,
                                          bool streams) {
  constexpr std::int64_t most_bytes = nominal_processor.second_cache / 2;
  constexpr double seconds_per_byte = 1e-10;  // of the loops of softmax_rows
  const auto length = static_cast<std::size_t>(to.shape.back().value());
  const auto workspace = static_cast<std::int64_t>(softmax_workspace(length) * size_of(to.dtype));
  const bool in_rows = length == 1 || (from.strides.back() == 1 && to.strides.back() == 1);
  if (!in_rows || !from.aligned || !to.aligned || workspace > most_bytes) return std::nullopt;
  SoftmaxOffer offer;
  offer.seconds =
      seconds_per_byte * static_cast<double>(element_count(to.shape)) * static_cast<double>(size_of(to.dtype));
  const auto call = std::make_shared<const SoftmaxCall>(call_for(softmax, from, to, streams));
  const bool is_double = to.dtype == DType::f64;
  offer.kernel.own_bytes = workspace;
  offer.kernel.stages.push_back({1, [call, is_double](const Arrays& arrays, Workspace space, std::int64_t) {
                                   is_double ? run_softmax<double>(*call, arrays, space)
                                             : run_softmax<float>(*call, arrays, space);
                                 }});
  return offer;
}

}  // namespace einrel
