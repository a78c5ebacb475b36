#include "kernel/view.h"

#include <optional>

#include "base/error.h"

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

Shape label_extents(const View& view) {
  Shape shape;
  for (const Label& label : view.labels) shape.push_back(label.extent);
  return shape;
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

Tensor evaluate_view(const Vertex& vertex, const View& view, const Tensor& operand) {
  if (operand.count() == 0) return Tensor(vertex.dtype, vertex.bound);
  if (auto strides = view_strides(view, operand.strides())) return operand.restrided(vertex.bound, std::move(*strides));
  const Tensor labelled = operand.restrided(label_extents(view), label_strides(view, operand.strides()));

  std::vector<std::size_t> order;
  for (const std::vector<std::size_t>& group : view.to) order.insert(order.end(), group.begin(), group.end());
  const std::optional<Tensor> copy = labelled.permuted(order).row_major().reshaped(vertex.bound);
  invariant(copy.has_value(), "a row-major tensor takes any shape");
  return *copy;
}

}  // namespace einrel
