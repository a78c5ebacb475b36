#include "einsum/check/check_pick.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "einsum/check/typing.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel::checking {
namespace {

/// expr * factor + term, of whole numbers.
void append_times_plus(ScalarExpr& expr, std::int64_t factor, const ScalarExpr& term) {
  expr.steps.push_back(whole_step(factor));
  expr.steps.push_back(binary_step(DType::i64, BinaryFunction::multiply));
  append(expr, term);
  expr.steps.push_back(binary_step(DType::i64, BinaryFunction::add));
}

/// While data is missing, an extent that nobody looks at.
std::int64_t known(Extent extent) { return extent.is_open() ? 1 : extent.value(); }

ScalarExpr value_of(const Index& index) {
  ScalarExpr value;
  for (const IndexTerm& term : index.terms) {
    value.steps.push_back({DType::i64, LabelValue{term.label}});
    if (term.coefficient != 1) {
      value.steps.push_back(whole_step(term.coefficient));
      value.steps.push_back(binary_step(DType::i64, BinaryFunction::multiply));
    }
    if (&term != &index.terms.front()) value.steps.push_back(binary_step(DType::i64, BinaryFunction::add));
  }
  if (index.terms.empty() || index.offset != 0) value.steps.push_back(whole_step(index.offset));
  if (!index.terms.empty() && index.offset != 0) value.steps.push_back(binary_step(DType::i64, BinaryFunction::add));
  return value;
}

/// Where an access reads a tensor of this shape, in row-major order.
ScalarExpr row_major_position(const Access& access, const Shape& shape) {
  if (shape.empty()) return {{whole_step(0)}};
  ScalarExpr position = value_of(access.indices.front());
  for (std::size_t d = 1; d < shape.size(); ++d)
    append_times_plus(position, shape[d].value(), value_of(access.indices[d]));
  return position;
}

/// where(position >= 0, where(position < extent, value, -1), -1)
ScalarExpr only_in_range(const ScalarExpr& position, std::int64_t extent, const ScalarExpr& value) {
  ScalarExpr result = position;
  result.steps.push_back(whole_step(0));
  result.steps.push_back(binary_step(DType::boolean, BinaryFunction::greater_equal));
  append(result, position);
  result.steps.push_back(whole_step(extent));
  result.steps.push_back(binary_step(DType::boolean, BinaryFunction::less));
  append(result, value);
  for (int condition = 0; condition < 2; ++condition) {
    result.steps.push_back(whole_step(-1));
    result.steps.push_back({DType::i64, ApplyWhere{}});
  }
  return result;
}

/// Finds the position that computed indices pick from the dimensions of a tensor as one.
class Position {
 public:
  Position(VertexMaker& maker, const PooledAccess& tensor)
      : maker_(maker),
        name_(maker.graph()[tensor.vertex].name),
        bound_(maker.graph()[tensor.vertex].bound),
        pad_(tensor.access.pad.has_value()) {}

  /// An operand of i64 in the pool.
  std::size_t run(const std::vector<ComputedIndex>& indices) {
    std::vector<ScalarExpr> positions;
    for (const ComputedIndex& index : indices) positions.push_back(checked(index));
    ScalarExpr all = positions.front();
    for (std::size_t i = 1; i < indices.size(); ++i) append_times_plus(all, extent(indices[i]), positions[i]);
    for (std::size_t i = indices.size(); pad_ && indices.size() > 1 && i-- > 0;)
      all = only_in_range(positions[i], extent(indices[i]), all);
    const auto* const value = std::get_if<OperandValue>(&all.steps.front().op);
    const bool is_operand = all.steps.size() == 1 && value != nullptr;
    return is_operand ? value->operand : maker_.add_tensor(all, DType::i64, "_index");
  }

 private:
  std::int64_t extent(const ComputedIndex& index) const { return known(bound_[index.dimension]); }

  /// The position as an i64; what is outside of its dimension ends the run, unless it is padded.
  ScalarExpr checked(const ComputedIndex& index) {
    const std::size_t operand = operand_of(index);
    ScalarExpr position{{{index.dtype, OperandValue{operand}}}};
    if (index.dtype != DType::i64) position.steps.push_back({DType::i64, Convert{}});
    if (pad_) return position;
    const Vertex& tensor = maker_.graph()[maker_[operand].vertex];
    CheckRange check{tensor.name, {}, name_, extent(index)};
    for (const Extent each : tensor.bound) check.shape.emplace_back(known(each));
    append(position, row_major_position(maker_[operand].access, check.shape));
    position.steps.push_back({DType::i64, std::move(check)});
    return position;
  }

  /// An element of a tensor, which errors can name: what is computed becomes one.
  std::size_t operand_of(const ComputedIndex& index) {
    const auto* const value = std::get_if<OperandValue>(&index.position.steps.front().op);
    const bool is_element = index.position.steps.size() == 1 && value != nullptr && !maker_[value->operand].access.pad;
    return is_element ? value->operand : maker_.add_tensor(index.position, index.dtype, "_index");
  }

  VertexMaker& maker_;
  std::string name_;
  Shape bound_;
  bool pad_;
};

/// X[a,b,c,...] with the dimensions of computed indices as one, in the place of the first: view X[(a b),c,...].
Vertex with_merged_dimensions(VertexId tensor, const Vertex& of, const std::vector<ComputedIndex>& indices) {
  View view;
  Vertex vertex{of.name, of.dtype, {}, {tensor}, Input{}, of.where};
  std::vector<std::size_t> merged;
  std::optional<std::int64_t> extent = 1;
  for (const ComputedIndex& index : indices) {
    merged.push_back(index.dimension);
    const Extent each = of.bound[index.dimension];
    extent = each.is_open() || !extent ? std::nullopt : std::optional(checked_multiply(*extent, each.value()));
  }
  for (std::size_t d = 0; d < of.bound.size(); ++d) {
    view.labels.push_back({fmt::format("d{}", d + 1), of.bound[d]});
    view.from.push_back({d});
    const bool is_merged = std::find(merged.begin(), merged.end(), d) != merged.end();
    if (is_merged && d != merged.front()) continue;
    view.to.push_back(is_merged ? merged : std::vector{d});
    vertex.bound.push_back(is_merged ? extent_or_open(extent) : of.bound[d]);
  }
  vertex.op = std::move(view);
  return vertex;
}

void merge_dimensions(VertexMaker& maker, LabelScope& scope, PooledAccess& tensor,
                      const std::vector<ComputedIndex>& indices) {
  tensor.vertex =
      maker.find_or_add(with_merged_dimensions(tensor.vertex, maker.graph()[tensor.vertex], indices), "_merged");
  const std::size_t first = indices.front().dimension;
  const Extent extent = maker.graph()[tensor.vertex].bound[first];
  const std::size_t label = scope.add_positions("v", extent.is_open() ? std::nullopt : std::optional(extent.value()));
  for (std::size_t i = indices.size(); i-- > 1;)
    tensor.access.indices.erase(tensor.access.indices.begin() + static_cast<std::ptrdiff_t>(indices[i].dimension));
  tensor.access.indices[first] = {0, {{1, label}}};
}

void add_labels(const Index& index, std::vector<std::size_t>& labels) {
  for (const IndexTerm& term : index.terms) {
    if (std::find(labels.begin(), labels.end(), term.label) == labels.end()) labels.push_back(term.label);
  }
}

bool reads_whole_dimensions(const Access& access, const LabelScope& scope, const Shape& bound) {
  for (std::size_t d = 0; d < bound.size(); ++d) {
    const std::optional<std::size_t> label = plain_label(access.indices[d]);
    if (!label || extent_or_open(scope.extent(*label)) != bound[d]) return false;
  }
  return true;
}

}  // namespace

bool may_be_picked(CheckState& state, const build::Access& access, const PooledAccess& tensor,
                   const std::vector<ComputedIndex>& indices, Span span) {
  if (state.arrays_give_extents) {
    state.error("a kernel reads its arrays by labels, not by elements of other arrays", {span},
                "select by a comparison: sum[v] where(v == T[s], E[v,d], 0)");
    return false;
  }
  if (access.pad.value_or(0) != 0) {
    state.error("what an element of a tensor picks is padded with 0 only", {span},
                "pad(E[T[s],d], 0), with where(...) around it");
    return false;
  }
  const Shape& bound = state.builder.graph()[tensor.vertex].bound;
  for (const ComputedIndex& index : indices) {
    if (access.pad || bound[index.dimension] != Extent(0)) continue;
    state.error(fmt::format("dimension {} of '{}' has extent 0, so that it has no position to read",
                            index.dimension + 1, access.tensor.text),
                {span}, "give it a positive extent, or read 0 there: pad(...[...], 0)");
    return false;
  }
  return true;
}

Pick pick_element(VertexMaker& maker, LabelScope& scope, PooledAccess tensor,
                  const std::vector<ComputedIndex>& indices) {
  const Shape bound = maker.graph()[tensor.vertex].bound;
  const std::size_t position = Position(maker, tensor).run(indices);
  if (tensor.access.pad && reads_whole_dimensions(tensor.access, scope, bound)) tensor.access.pad.reset();
  if (indices.size() > 1) merge_dimensions(maker, scope, tensor, indices);
  Pick pick;
  pick.label = tensor.access.indices[indices.front().dimension].terms.front().label;
  for (const Index& index : tensor.access.indices) {
    if (plain_label(index) == pick.label) {
      for (const Index& each : maker[position].access.indices) add_labels(each, pick.output);
    } else {
      add_labels(index, pick.output);
    }
  }
  const DType type = compute_type(tensor.dtype);
  const std::size_t element = maker.add(std::move(tensor));
  pick.body.steps = {{DType::i64, LabelValue{pick.label}},
                     {DType::i64, OperandValue{position}},
                     binary_step(DType::boolean, BinaryFunction::equal),
                     {type, OperandValue{element}}};
  if (type == DType::boolean) {
    pick.reducer = Reducer::any;
    pick.body.steps.push_back(binary_step(type, BinaryFunction::minimum));
  } else {
    append(pick.body, {{whole_step(0, type), {type, ApplyWhere{}}}});
  }
  return pick;
}

}  // namespace einrel::checking
