#include "kernel/view.h"

#include <optional>

#include "base/error.h"
#include "einsum/expr/scalar_expr.h"

namespace einrel {
namespace {

/// The strides of the operand with one dimension per label, in the order of the labels.
Strides label_strides(const View& view, const Strides& operand) {
  invariant(view.from.size() == operand.size(), "a view names every dimension of its operand");
  Strides strides(view.labels.size(), 0);
  for (std::size_t d = 0; d < view.from.size(); ++d) {
    std::int64_t stride = operand[d];
    for (auto label = view.from[d].rbegin(); label != view.from[d].rend(); ++label) {
      strides[*label] = stride;
      stride *= view.labels[*label].extent.value();
    }
  }
  return strides;
}

/// The stride of a dimension that walks all labels of a group in row-major order; nullopt when none does.
std::optional<std::int64_t> merged_stride(const View& view, const Strides& strides,
                                          const std::vector<std::size_t>& group) {
  std::optional<std::int64_t> stride;  // of the labels from the last one up to here, merged
  std::int64_t extent = 1;
  for (auto label = group.rbegin(); label != group.rend(); ++label) {
    if (view.labels[*label].extent == Extent(1)) continue;
    if (stride && strides[*label] != *stride * extent) return std::nullopt;
    if (!stride) stride = strides[*label];
    extent *= view.labels[*label].extent.value();
  }
  return stride.value_or(1);
}

}  // namespace

std::optional<Strides> view_strides(const View& view, const Strides& operand) {
  const Strides labelled = label_strides(view, operand);
  Strides strides;
  for (const std::vector<std::size_t>& group : view.to) {
    const std::optional<std::int64_t> stride = merged_stride(view, labelled, group);
    if (!stride) return std::nullopt;
    strides.push_back(*stride);
  }
  return strides;
}

KernelSpec view_copy(const View& view, const ArrayLayout& operand) {
  EinSum copy{view.labels, {}, {}, std::nullopt, {{}}, {{{compute_type(operand.dtype), OperandValue{0}}}}};
  Shape shape;
  for (std::size_t label = 0; label < view.labels.size(); ++label) {
    copy.operands[0].indices.push_back({0, {{1, label}}});
    shape.push_back(view.labels[label].extent);
  }
  Shape copied;
  for (const std::vector<std::size_t>& group : view.to) {
    for (const std::size_t label : group) {
      copy.output.push_back(label);
      copied.push_back(view.labels[label].extent);
    }
  }
  ArrayLayout labelled{operand.dtype, std::move(shape), label_strides(view, operand.strides), operand.aligned};
  return {std::move(copy), {std::move(labelled)}, row_major_layout(operand.dtype, copied), {}, false, false};
}

}  // namespace einrel
