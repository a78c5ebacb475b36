#include "exec/tasks/label_ranges.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "einsum/graph/vertex_facts.h"
#include "tra/partial_reduction.h"

namespace einrel {
namespace {

/// The positions of a dimension that an index runs over; those inside it where it is padded.
Positions positions_of(const Index& index, const std::vector<Label>& labels, Extent bound) {
  Positions all{index.offset, index.offset};
  for (const IndexTerm& term : index.terms) {
    const std::int64_t last = term.coefficient * (labels[term.label].extent.value() - 1);
    (last < 0 ? all.first : all.last) += last;
  }
  const std::int64_t end = bound.value() - 1;
  return {std::clamp<std::int64_t>(all.first, 0, end), std::clamp<std::int64_t>(all.last, 0, end)};
}

/// How far the first and the last of them are apart, and one more, whether they are inside or not.
std::int64_t positions_run_over(const Index& index, const std::vector<Label>& labels) {
  std::int64_t count = 1;
  for (const IndexTerm& term : index.terms)
    count += std::abs(term.coefficient) * (labels[term.label].extent.value() - 1);
  return count;
}

bool has_label(const Index& index, std::size_t label) {
  return std::any_of(index.terms.begin(), index.terms.end(),
                     [&](const IndexTerm& term) { return term.label == label; });
}

/// Whether ranges of a label read parts of a dimension: the label walks through it, or another, not through all of it.
bool is_narrowed(const Access& access, std::size_t d, const std::vector<Label>& labels, std::size_t label,
                 Extent bound) {
  const Index& index = access.indices[d];
  if (has_label(index, label)) return true;
  return !access.pad && plain_label(index) && positions_of(index, labels, bound).last + 1 < bound.value();
}

/// Makes an access count from the first positions that it reads of every dimension that is narrowed.
ConstantPositions narrow(Access& access, const std::vector<Label>& labels, std::size_t label, std::int64_t first,
                         const Shape& bound) {
  ConstantPositions positions(bound.size());
  for (std::size_t d = 0; d < bound.size(); ++d) {
    Index& index = access.indices[d];
    for (const IndexTerm& term : index.terms) index.offset += term.label == label ? term.coefficient * first : 0;
    if (!is_narrowed(access, d, labels, label, bound[d])) continue;
    positions[d] = positions_of(index, labels, bound[d]);
    index.offset -= positions[d]->first;
  }
  return positions;
}

/// Values of a label become those in the range and where it begins, which `first` gives.
ScalarExpr with_first(const ScalarExpr& body, std::size_t label, std::size_t first) {
  return substitute(body, [&](const ScalarStep& step) -> std::vector<ScalarStep> {
    if (label_read(step) != label) return {};
    return {step, {step.type, OperandValue{first}}, {step.type, ApplyBinary{BinaryFunction::add}}};
  });
}

/// Whether plans can cut a label: it walks through whole dimensions, one of each operand at most. They let parts be
/// computed side by side, where ranges follow each other.
bool is_cut_by_plans(const EinSum& einsum, const KernelStep& step, const std::vector<Shape>& bounds,
                     std::size_t label) {
  for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
    const std::vector<Index>& indices = einsum.operands[o].indices;
    if (std::count_if(indices.begin(), indices.end(), [&](const Index& i) { return has_label(i, label); }) > 1)
      return false;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      if (!has_label(indices[d], label)) continue;
      if (!plain_label(indices[d]) || bounds[step.reads[o]][d] != einsum.labels[label].extent) return false;
    }
  }
  return true;
}

PartialReduction partial_of(const EinSum& einsum) {
  return partial_reduction(*einsum.reducer, einsum.body, einsum.output.size());
}

/// The operands of a step by what they read: numbers stay behind arrays.
std::vector<std::size_t> by_argument(const KernelStep& step) {
  std::vector<std::size_t> operands(step.reads.size());
  std::iota(operands.begin(), operands.end(), std::size_t{0});
  std::stable_sort(operands.begin(), operands.end(),
                   [&](std::size_t a, std::size_t b) { return step.reads[a] < step.reads[b]; });
  return operands;
}

/// What a kernel is on a range but for its reducer.
struct VertexOnRange {
  Vertex vertex;
  std::vector<RangeRead> reads;            // by argument
  std::vector<DType> arguments;            // the types
  std::vector<std::size_t> operand_reads;  // by operand, the argument
};

VertexOnRange vertex_on_range(const Kernel& kernel, const std::vector<Shape>& bounds, std::size_t label,
                              Positions range) {
  const KernelStep& step = kernel.steps.front();
  VertexOnRange on{vertices_of(kernel, bounds).front(), {}, {}, std::vector<std::size_t>(step.reads.size())};
  EinSum& einsum = std::get<EinSum>(on.vertex.op);
  einsum.labels[label].extent = Extent(range.last - range.first + 1);
  for (const std::size_t o : by_argument(step)) {
    const std::size_t read = step.reads[o];
    on.operand_reads[o] = on.arguments.size();
    on.arguments.push_back(kernel.arguments[read]);
    on.reads.push_back({read, narrow(einsum.operands[o], einsum.labels, label, range.first, bounds[read])});
  }
  return on;
}

}  // namespace

std::vector<ReducedLabel> labels_in_ranges(const Kernel& kernel, const std::vector<Shape>& bounds) {
  std::vector<ReducedLabel> found;
  const EinSum* const einsum = kernel.steps.size() == 1 ? einsum_of(kernel.steps.front()) : nullptr;
  if (einsum == nullptr || !einsum->reducer) return found;
  const auto is_empty = [](const Shape& bound) { return element_count(bound) == 0; };
  if (std::any_of(bounds.begin(), bounds.end(), is_empty)) return found;
  const Vertex vertex = vertices_of(kernel, bounds).front();
  const auto& measured = std::get<EinSum>(vertex.op);
  for (const std::size_t label : measured.reduced) {
    const std::int64_t extent = measured.labels[label].extent.value();
    if (extent > 1 && !is_cut_by_plans(measured, kernel.steps.front(), bounds, label)) found.push_back({label, extent});
  }
  return found;
}

std::optional<ExtremeKernels> extreme_kernels(const Kernel& kernel, const std::vector<Shape>& bounds,
                                              std::size_t arrays) {
  const Vertex vertex = vertices_of(kernel, bounds).front();
  const auto& einsum = std::get<EinSum>(vertex.op);
  if (!finds_position(einsum.reducer)) return std::nullopt;
  const DType type = einsum.body.type();
  const std::vector<std::size_t>& reads = kernel.steps.front().reads;
  Vertex extreme = vertex;
  extreme.dtype = type;
  std::get<EinSum>(extreme.op).reducer = einsum.reducer == Reducer::argmax ? Reducer::max : Reducer::min;

  Vertex position = vertex;
  auto& least = std::get<EinSum>(position.op);
  const ScalarStep operand{type, OperandValue{least.operands.size()}};
  least.reducer = Reducer::min;
  least.body = position_where_equal(einsum.body, operand, einsum.reduced, einsum.labels);
  Access& access = least.operands.emplace_back();
  for (const std::size_t label : einsum.output) access.indices.push_back({0, {{1, label}}});
  std::vector<DType> arguments = kernel.arguments;
  arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(arrays), type);
  std::vector<std::size_t> reads_behind = reads;
  for (std::size_t& read : reads_behind) read += read >= arrays ? 1 : 0;
  reads_behind.push_back(arrays);
  return ExtremeKernels{kernel_of(kernel.name + "_extreme", extreme, kernel.arguments, reads),
                        kernel_of(kernel.name + "_position", position, arguments, reads_behind)};
}

std::vector<PartRead> most_read(const Kernel& kernel, const std::vector<Shape>& bounds, std::size_t label,
                                std::int64_t length) {
  const Vertex vertex = vertices_of(kernel, bounds).front();
  const auto& einsum = std::get<EinSum>(vertex.op);
  std::vector<Label> on_range = einsum.labels;
  on_range[label].extent = Extent(length);
  const KernelStep& step = kernel.steps.front();
  std::vector<PartRead> parts;
  for (const std::size_t o : by_argument(step)) {
    const Access& access = einsum.operands[o];
    Shape part = bounds[step.reads[o]];
    for (std::size_t d = 0; d < part.size(); ++d) {
      if (!is_narrowed(access, d, einsum.labels, label, part[d])) continue;
      const Positions all = positions_of(access.indices[d], einsum.labels, part[d]);
      part[d] = Extent(std::min(all.last - all.first + 1, positions_run_over(access.indices[d], on_range)));
    }
    parts.push_back({step.reads[o], std::move(part)});
  }
  return parts;
}

KernelOnRange on_range(const Kernel& kernel, const std::vector<Shape>& bounds, std::size_t label, Positions range) {
  VertexOnRange on = vertex_on_range(kernel, bounds, label, range);
  EinSum& einsum = std::get<EinSum>(on.vertex.op);
  PartialReduction partial = partial_of(einsum);
  einsum.reducer = partial.each;
  einsum.body = std::move(partial.body);
  on.vertex.dtype = partial.dtype;
  KernelOnRange result;
  if (reads_label(einsum.body, label)) {
    einsum.body = with_first(einsum.body, label, einsum.operands.size());
    einsum.operands.emplace_back();
    on.operand_reads.push_back(on.arguments.size());
    on.arguments.push_back(DType::i64);
    result.numbers.push_back(range.first);
  }
  result.kernel = kernel_of(kernel.name, on.vertex, on.arguments, on.operand_reads);
  result.reads = std::move(on.reads);
  return result;
}

RangesTogether ranges_together(const Kernel& kernel, const std::vector<Shape>& bounds) {
  const Vertex vertex = vertices_of(kernel, bounds).front();
  const auto& einsum = std::get<EinSum>(vertex.op);
  PartialReduction partial = partial_of(einsum);
  RangesTogether result{std::move(partial.fold), identity_kernel(partial.dtype)};
  auto finish_body = finished_reduction(*einsum.reducer, partial.dtype, vertex.dtype, einsum.reduced, einsum.labels);
  if (!finish_body) return result;
  Vertex finish{kernel.name + "_finished", vertex.dtype, vertex.bound, {}, Input{}, {}};
  EinSum& finished = finish.op.emplace<EinSum>();
  finished.body = std::move(*finish_body);
  finished.operands.emplace_back();
  for (const std::size_t label : einsum.output) {
    finished.operands.front().indices.push_back({0, {{1, finished.labels.size()}}});
    finished.output.push_back(finished.labels.size());
    finished.labels.push_back(einsum.labels[label]);
  }
  result.finish = kernel_of(finish.name, finish, {partial.dtype}, {0});
  return result;
}

}  // namespace einrel
