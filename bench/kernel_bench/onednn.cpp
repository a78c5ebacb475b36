#include "onednn.h"

#include <dnnl.hpp>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "contraction.h"

static_assert(DNNL_VERSION_MAJOR == 2, "written for oneDNN 2; 3 makes its primitives by other calls");

namespace einrel::bench {
namespace {

using dnnl::memory;
using Dims = memory::dims;

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::data_type data_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return memory::data_type::f32;
    case DType::bf16: return memory::data_type::bf16;
    case DType::f16: return memory::data_type::f16;
    case DType::i32: return memory::data_type::s32;
    case DType::f64:
    case DType::i64:
    case DType::boolean: break;
  }
  throw UserError("oneDNN has no such dtype");
}

Dims dims_of(const Shape& shape) {
  Dims dims;
  for (const Extent extent : shape) dims.push_back(extent.value());
  return dims;
}

memory::desc row_major(DType dtype, const Shape& shape) {
  return {dims_of(shape), data_type(dtype), row_major_strides(shape)};
}
memory::desc row_major(const Tensor& tensor) { return row_major(tensor.dtype(), tensor.shape()); }

/// The same tensor in the layout that the primitive likes best.
memory::desc any_layout(DType dtype, const Dims& dims) { return {dims, data_type(dtype), memory::format_tag::any}; }

/// oneDNN takes inputs as pointers to what it could change, and does not.
memory bind(const memory::desc& desc, const Tensor& tensor) {
  return {desc, cpu(), const_cast<std::byte*>(tensor.data())};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

/// `desc`, unless oneDNN would do the work by its reference: a plain loop, up to a hundred times slower than its
/// kernels.
template <class Desc>
Desc no_reference(const Desc& desc) {
  const std::string implementation = desc.impl_info_str();
  if (implementation.starts_with("ref")) throw UserError("oneDNN has only its reference for this: " + implementation);
  return desc;
}

void execute(const dnnl::primitive& primitive, const std::unordered_map<int, memory>& arguments) {
  dnnl::stream stream(cpu());
  primitive.execute(stream, arguments);
  stream.wait();
}

/// A primitive from row-major inputs to a row-major result, without any copy. `inputs`: by argument number.
Compute in_place(const dnnl::primitive& primitive, const std::map<int, std::pair<memory::desc, Tensor>>& inputs,
                 DType dtype, const Shape& shape, const memory::desc& result_desc) {
  std::unordered_map<int, memory> arguments;
  for (const auto& [argument, input] : inputs) arguments[argument] = bind(input.first, input.second);
  return [=, kept = inputs]() mutable {
    Tensor result(dtype, shape);
    arguments[DNNL_ARG_DST] = memory(result_desc, cpu(), result.mutable_data());
    execute(primitive, arguments);
    return result;
  };
}

/// `memory` itself, or its copy in another layout.
memory in_layout(const memory& given, const memory::desc& wanted) {
  if (given.get_desc() == wanted) return given;
  memory copy(wanted, cpu());
  execute(dnnl::reorder(given, copy), {{DNNL_ARG_FROM, given}, {DNNL_ARG_TO, copy}});
  return copy;
}

Dims dims_at(const Json& spec, const char* key) { return spec.at(key).get<Dims>(); }

/// Copies into the layouts that oneDNN prefers and back are part of the call: the data lie in row-major order for all.
Compute convolution(const Json& spec, const Tensor& image, const Tensor& kernel) {
  const Dims stride = dims_at(spec, "stride");
  const Dims pad = dims_at(spec, "pad");
  const Dims in = dims_of(image.shape());
  const Dims window = dims_of(kernel.shape());
  Dims out{in[0], window[0]};
  for (std::size_t d = 0; d < 2; ++d) out.push_back((in[d + 2] + 2 * pad[d] - window[d + 2]) / stride[d] + 1);
  const DType dtype = image.dtype();
  const auto desc = no_reference(dnnl::convolution_forward::primitive_desc(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto, any_layout(dtype, in),
       any_layout(dtype, window), any_layout(dtype, out), stride, pad, pad},
      cpu()));
  return [=, primitive = dnnl::convolution_forward(desc)] {
    Tensor result(dtype, make_shape(out));
    const memory plain(row_major(result), cpu(), result.mutable_data());
    const memory blocked = desc.dst_desc() == plain.get_desc() ? plain : memory(desc.dst_desc(), cpu());
    execute(primitive, {{DNNL_ARG_SRC, in_layout(bind(row_major(image), image), desc.src_desc())},
                        {DNNL_ARG_WEIGHTS, in_layout(bind(row_major(kernel), kernel), desc.weights_desc())},
                        {DNNL_ARG_DST, blocked}});
    if (blocked != plain) {
      execute(dnnl::reorder(blocked, plain), {{DNNL_ARG_FROM, blocked}, {DNNL_ARG_TO, plain}});
    }
    return result;
  };
}

Compute softmax(const Json& spec, const Tensor& x) {
  const memory::desc desc = row_major(x);
  const dnnl::softmax_forward primitive(no_reference(
      dnnl::softmax_forward::primitive_desc({dnnl::prop_kind::forward_inference, desc, spec.at("axis")}, cpu())));
  return in_place(primitive, {{DNNL_ARG_SRC, {desc, x}}}, x.dtype(), x.shape(), desc);
}

/// Over the last dimension, with gain and bias.
Compute layer_norm(const Json& spec, const std::vector<Tensor>& inputs) {
  const memory::desc desc = row_major(inputs.at(0));
  const memory::desc vector = row_major(inputs.at(1));
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  const dnnl::layer_normalization_forward primitive(no_reference(dnnl::layer_normalization_forward::primitive_desc(
      {dnnl::prop_kind::forward_inference, desc, spec.at("epsilon").get<float>(), flags}, cpu())));
  return in_place(primitive,
                  {{DNNL_ARG_SRC, {desc, inputs[0]}},
                   {DNNL_ARG_SCALE, {vector, inputs.at(1)}},
                   {DNNL_ARG_SHIFT, {vector, inputs.at(2)}}},
                  inputs[0].dtype(), inputs[0].shape(), desc);
}

Compute pooling(const Json& spec, const Tensor& image) {
  const Dims window = dims_at(spec, "window");
  const Dims stride = dims_at(spec, "stride");
  const Dims none{0, 0};
  Dims out = dims_of(image.shape());
  for (std::size_t d = 0; d < 2; ++d) out[d + 2] = (out[d + 2] - window[d]) / stride[d] + 1;
  const Shape shape = make_shape(out);
  const auto kind =
      spec.at("kind") == "max" ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
  const memory::desc from = row_major(image);
  const memory::desc to = row_major(image.dtype(), shape);
  const dnnl::pooling_forward primitive(no_reference(dnnl::pooling_forward::primitive_desc(
      {dnnl::prop_kind::forward_inference, kind, from, to, stride, window, none, none}, cpu())));
  return in_place(primitive, {{DNNL_ARG_SRC, {from, image}}}, image.dtype(), shape, to);
}

/// The result lacks the dimensions in spec["axes"].
Compute reduction(const Json& spec, const Tensor& x) {
  const auto kind = spec.at("kind") == "max" ? dnnl::algorithm::reduction_max : dnnl::algorithm::reduction_sum;
  Shape reduced = x.shape();
  for (const std::size_t axis : spec.at("axes").get<std::vector<std::size_t>>()) reduced.at(axis) = Extent(1);
  Shape shape;
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (reduced[d] == x.shape()[d]) shape.push_back(reduced[d]);
  }
  const memory::desc from = row_major(x);
  const memory::desc to = row_major(x.dtype(), reduced);
  const dnnl::reduction primitive(no_reference(dnnl::reduction::primitive_desc({kind, from, to, 0, 0}, cpu())));
  return in_place(primitive, {{DNNL_ARG_SRC, {from, x}}}, x.dtype(), shape, to);
}

Compute eltwise(const Json& spec, const Tensor& x) {
  const auto kind =
      spec.at("kind") == "sigmoid" ? dnnl::algorithm::eltwise_logistic : dnnl::algorithm::eltwise_gelu_erf;
  const memory::desc desc = row_major(x);
  const dnnl::eltwise_forward primitive(
      no_reference(dnnl::eltwise_forward::primitive_desc({dnnl::prop_kind::forward_inference, kind, desc}, cpu())));
  return in_place(primitive, {{DNNL_ARG_SRC, {desc, x}}}, x.dtype(), x.shape(), desc);
}

/// Descriptors of the two sides of a permuting copy. oneDNN has no 8-byte types: such an element is two of 4 bytes.
std::pair<memory::desc, memory::desc> permutation_descs(const std::vector<std::size_t>& order, const Tensor& example) {
  Dims dims;
  Dims strides;
  for (const std::size_t d : order) {
    dims.push_back(example.shape()[d].value());
    strides.push_back(example.strides()[d]);
  }
  Dims result_strides = row_major_strides(make_shape(dims));
  memory::data_type type = memory::data_type::f32;
  if (size_of(example.dtype()) == 8) {
    for (std::int64_t& stride : strides) stride *= 2;
    for (std::int64_t& stride : result_strides) stride *= 2;
    dims.push_back(2);
    strides.push_back(1);
    result_strides.push_back(1);
  } else {
    type = data_type(example.dtype());
  }
  return {{dims, type, strides}, {dims, type, result_strides}};
}

}  // namespace

std::function<Tensor(const Tensor&)> onednn_permutation(const std::vector<std::size_t>& order, const Tensor& example) {
  const auto descs = permutation_descs(order, example);
  Shape shape;
  for (const std::size_t d : order) shape.push_back(example.shape()[d]);
  const dnnl::reorder primitive(dnnl::reorder::primitive_desc(cpu(), descs.first, cpu(), descs.second));
  return [=](const Tensor& tensor) {
    Tensor result(tensor.dtype(), shape);
    execute(primitive, {{DNNL_ARG_FROM, bind(descs.first, tensor)},
                        {DNNL_ARG_TO, memory(descs.second, cpu(), result.mutable_data())}});
    return result;
  };
}

Compute onednn_permute(const std::vector<std::size_t>& order, const Tensor& tensor) {
  return [permute = onednn_permutation(order, tensor), tensor] { return permute(tensor); };
}

Compute onednn_compute(const Json& spec, const std::vector<Tensor>& inputs) {
  const std::string op = spec.at("op");
  if (op == "convolution") return convolution(spec, inputs.at(0), inputs.at(1));
  if (op == "softmax") return softmax(spec, inputs.at(0));
  if (op == "layer_norm") return layer_norm(spec, inputs);
  if (op == "pooling") return pooling(spec, inputs.at(0));
  if (op == "reduction") return reduction(spec, inputs.at(0));
  if (op == "eltwise") return eltwise(spec, inputs.at(0));
  if (op == "permute") return onednn_permute(spec.at("order"), inputs.at(0));
  throw UserError("no operation of oneDNN is called " + op);
}

Compute onednn_product(const Product& p, const Tensor& first, const Tensor& second) {
  const auto desc = [&](const MatrixLayout& layout, std::int64_t rows, std::int64_t columns) -> memory::desc {
    Dims dims = p.batch;
    Dims strides = layout.batch;
    dims.insert(dims.end(), {rows, columns});
    strides.insert(strides.end(), {layout.row, layout.column});
    return {dims, data_type(first.dtype()), strides};
  };
  const memory::desc a = desc(p.a, p.m, p.k);
  const memory::desc b = desc(p.b, p.k, p.n);
  const memory::desc z = desc(p.z, p.m, p.n);
  const dnnl::matmul primitive(no_reference(dnnl::matmul::primitive_desc({a, b, z}, cpu())));
  return in_place(
      primitive, {{DNNL_ARG_SRC, {a, p.swapped ? second : first}}, {DNNL_ARG_WEIGHTS, {b, p.swapped ? first : second}}},
      first.dtype(), make_shape(p.shape), z);
}

}  // namespace einrel::bench
