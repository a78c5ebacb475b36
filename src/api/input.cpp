#include <einrel/error.h>
#include <einrel/input.h>
#include <fmt/format.h>

#include <algorithm>

#include "api/border.h"
#include "api/input_data.h"
#include "api/tensor_data.h"

namespace einrel::api {

namespace {

/// Gives the parts that are asked for of complex numbers, which are made whole.
einrel::InputMaker parts_of(einrel::InputMaker make, std::size_t element) {
  return [make = std::move(make), element](const std::vector<std::int64_t>& begin, const einrel::Shape& bound,
                                           std::byte* to) {
    const einrel::Shape extents(bound.begin(), bound.end() - 1);
    const std::int64_t count = element_count(extents);
    std::vector<std::byte> whole(static_cast<std::size_t>(count) * element);
    make({begin.begin(), begin.end() - 1}, extents, whole.data());
    const auto wanted = static_cast<std::size_t>(bound.back().value()) * element / 2;
    const std::byte* from = whole.data() + static_cast<std::size_t>(begin.back()) * element / 2;
    for (std::int64_t i = 0; i < count; ++i) to = std::copy_n(from + static_cast<std::size_t>(i) * element, wanted, to);
  };
}

}  // namespace

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
  if (is_complex(dtype)) return Input(std::make_shared<const Data>(Data{dtype, shape, parts_of(source, element)}));
  return Input(std::make_shared<const Data>(Data{dtype, shape, source}));
}

DType Input::dtype() const { return data_->dtype; }
const Shape& Input::shape() const { return data_->shape; }

Tensor Input::tensor() const {
  return at_border([&] {
    if (const auto* const there = std::get_if<einrel::Tensor>(&data_->source))
      return TensorAccess::outside(*there, is_complex(data_->dtype));
    einrel::Tensor all(inside(data_->dtype), inside(data_->dtype, data_->shape));
    std::get<einrel::InputMaker>(data_->source)(std::vector<std::int64_t>(all.shape().size(), 0), all.shape(),
                                                all.mutable_data());
    return TensorAccess::outside(all, is_complex(data_->dtype));
  });
}

}  // namespace einrel::api
