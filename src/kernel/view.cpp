#include "kernel/view.h"

#include <optional>

#include "base/error.h"

namespace einrel {
namespace {

/// The operand with one dimension per label, in the order of the labels.
Tensor split(const View& view, const Tensor& operand) {
  invariant(view.from.size() == operand.rank(), "a view names every dimension of its operand");
  Shape shape;
  for (const Label& label : view.labels) shape.push_back(label.extent);
  Strides strides(view.labels.size(), 0);
  for (std::size_t d = 0; d < view.from.size(); ++d) {
    std::int64_t stride = operand.strides()[d];
    for (auto label = view.from[d].rbegin(); label != view.from[d].rend(); ++label) {
      strides[*label] = stride;
      stride *= view.labels[*label].extent.value();
    }
  }
  return operand.restrided(std::move(shape), std::move(strides));
}

/// The stride of a dimension that walks all labels of a group in row-major order; nullopt when none does.
std::optional<std::int64_t> merged_stride(const Tensor& labelled, const std::vector<std::size_t>& group) {
  std::optional<std::int64_t> stride;  // of the labels from the last one up to here, merged
  std::int64_t extent = 1;
  for (auto label = group.rbegin(); label != group.rend(); ++label) {
    if (labelled.shape()[*label] == Extent(1)) continue;
    if (stride && labelled.strides()[*label] != *stride * extent) return std::nullopt;
    if (!stride) stride = labelled.strides()[*label];
    extent *= labelled.shape()[*label].value();
  }
  return stride.value_or(1);
}

}  // namespace

Tensor evaluate_view(const Vertex& vertex, const View& view, const Tensor& operand) {
  if (operand.count() == 0) return Tensor(vertex.dtype, vertex.bound);
  const Tensor labelled = split(view, operand);
  Strides strides;
  for (const std::vector<std::size_t>& group : view.to) {
    const std::optional<std::int64_t> stride = merged_stride(labelled, group);
    if (!stride) break;
    strides.push_back(*stride);
  }
  if (strides.size() == view.to.size()) return labelled.restrided(vertex.bound, std::move(strides));

  std::vector<std::size_t> order;
  for (const std::vector<std::size_t>& group : view.to) order.insert(order.end(), group.begin(), group.end());
  const std::optional<Tensor> copy = labelled.permuted(order).row_major().reshaped(vertex.bound);
  invariant(copy.has_value(), "a row-major tensor takes any shape");
  return *copy;
}

}  // namespace einrel
