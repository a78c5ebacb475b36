#include <einrel/error.h>
#include <einrel/input.h>
#include <fmt/format.h>

#include <algorithm>

#include "api/border.h"
#include "api/input_data.h"
#include "api/tensor_data.h"

namespace einrel::api {

Input::Input(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Input::Input(Tensor tensor)
    : data_(std::make_shared<const Data>(Data{tensor.dtype(), tensor.shape(), TensorAccess::inside(tensor)})) {}

Input Input::made(DType dtype, const Shape& shape, InputMaker make) {
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent < 0; }))
    throw UserError(fmt::format("an input of shape {}: an extent is 0 or more", shape_text(shape)));
  const std::size_t element = size_of(dtype);
  const auto source = [make = std::move(make), element](const std::vector<std::int64_t>& begin,
                                                        const einrel::Shape& bound, std::byte* to) {
    Shape extents;
    for (const Extent extent : bound) extents.push_back(extent.value());
    make(begin, extents, {to, static_cast<std::size_t>(element_count(bound)) * element});
  };
  return Input(std::make_shared<const Data>(Data{dtype, shape, source}));
}

DType Input::dtype() const { return data_->dtype; }
const Shape& Input::shape() const { return data_->shape; }

Tensor Input::tensor() const {
  return at_border([&] {
    if (const auto* const there = std::get_if<einrel::Tensor>(&data_->source)) return TensorAccess::outside(*there);
    einrel::Tensor all(inside(data_->dtype), make_shape(data_->shape));
    std::get<einrel::InputMaker>(data_->source)(std::vector<std::int64_t>(data_->shape.size(), 0), all.shape(),
                                                all.mutable_data());
    return TensorAccess::outside(all);
  });
}

}  // namespace einrel::api
