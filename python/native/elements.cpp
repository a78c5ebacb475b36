#include "elements.h"

#include <einrel/error.h>
#include <einrel/mapped_files.h>

#include <array>
#include <complex>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace einrel::python {
namespace {

namespace nb = nanobind;

struct Format {
  api::DType dtype;
  const char* letter;  ///< of the buffer protocol
};
constexpr std::array formats{
    Format{api::DType::f32, "f"},     Format{api::DType::f64, "d"},  Format{api::DType::bf16, "H"},
    Format{api::DType::f16, "e"},     Format{api::DType::i32, "i"},  Format{api::DType::i64, "l"},
    Format{api::DType::boolean, "?"}, Format{api::DType::c64, "Zf"}, Format{api::DType::c128, "Zd"}};

const char* letter_of(api::DType dtype) {
  for (const Format& format : formats) {
    if (format.dtype == dtype) return format.letter;
  }
  throw nb::buffer_error("no letter for this type");
}

api::DType dtype_of(std::string_view letter, bool is_bf16) {
  if (letter == "q") letter = "l";  // long long, which is as long
  for (const Format& format : formats) {
    if (format.letter == letter && (format.dtype == api::DType::bf16) == is_bf16) return format.dtype;
  }
  throw nb::buffer_error("elements of a type that Einrel does not compute with");
}

template <class T>
api::Tensor borrowed(const Py_buffer& buffer, api::Shape shape, std::shared_ptr<const void> owner) {
  const auto count = static_cast<std::size_t>(buffer.len) / sizeof(T);
  const std::span<const T> elements(static_cast<const T*>(buffer.buf), count);
  return api::Tensor::borrow(std::move(shape), elements, std::move(owner));
}

api::Tensor borrowed(api::DType dtype, const Py_buffer& buffer, api::Shape shape, std::shared_ptr<const void> owner) {
  switch (dtype) {
    case api::DType::f32: return borrowed<float>(buffer, std::move(shape), std::move(owner));
    case api::DType::f64: return borrowed<double>(buffer, std::move(shape), std::move(owner));
    case api::DType::bf16: return borrowed<api::BFloat16>(buffer, std::move(shape), std::move(owner));
    case api::DType::f16: return borrowed<api::Float16>(buffer, std::move(shape), std::move(owner));
    case api::DType::i32: return borrowed<std::int32_t>(buffer, std::move(shape), std::move(owner));
    case api::DType::i64: return borrowed<std::int64_t>(buffer, std::move(shape), std::move(owner));
    case api::DType::boolean: return borrowed<bool>(buffer, std::move(shape), std::move(owner));
    case api::DType::c64: return borrowed<std::complex<float>>(buffer, std::move(shape), std::move(owner));
    case api::DType::c128: return borrowed<std::complex<double>>(buffer, std::move(shape), std::move(owner));
  }
  throw nb::buffer_error("elements of a type that there is not");
}

template <class T>
api::Tensor copy_of(const api::Tensor& tensor) {
  return api::Tensor::copy(tensor.shape(), tensor.values<T>());
}

api::Tensor copy_of(const api::Tensor& tensor) {
  switch (tensor.dtype()) {
    case api::DType::f32: return copy_of<float>(tensor);
    case api::DType::f64: return copy_of<double>(tensor);
    case api::DType::bf16: return copy_of<api::BFloat16>(tensor);
    case api::DType::f16: return copy_of<api::Float16>(tensor);
    case api::DType::i32: return copy_of<std::int32_t>(tensor);
    case api::DType::i64: return copy_of<std::int64_t>(tensor);
    case api::DType::boolean: return copy_of<bool>(tensor);
    case api::DType::c64: return copy_of<std::complex<float>>(tensor);
    case api::DType::c128: return copy_of<std::complex<double>>(tensor);
  }
  throw api::Bug("an element type outside its enumeration");
}

/// Gives the object back, from whatever thread. Where Python has gone, so has the object.
struct Release {
  void operator()(Py_buffer* buffer) const {
    if (!nb::is_alive()) return;
    const nb::gil_scoped_acquire lock;
    PyBuffer_Release(buffer);
    delete buffer;  // owned by the shared_ptr
  }
};

/// Extents and strides as the protocol wants them.
struct Layout {
  std::vector<Py_ssize_t> extents;
  std::vector<Py_ssize_t> strides;

  explicit Layout(const api::Tensor& tensor) : extents(tensor.shape().begin(), tensor.shape().end()), strides(extents) {
    auto step = static_cast<Py_ssize_t>(api::size_of(tensor.dtype()));
    for (std::size_t d = strides.size(); d-- > 0;) {
      strides[d] = step;
      step *= extents[d];
    }
  }
};

int get_buffer(PyObject* object, Py_buffer* view, int flags) {
  if (!nb::inst_ready(object)) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_TypeError, "these elements have not been made");
    return -1;
  }
  const Value& value = *nb::inst_ptr<Value>(object);
  if ((flags & PyBUF_WRITABLE) != 0 && !value.is_writable) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, "these elements are read-only");
    return -1;
  }
  auto layout = std::make_unique<Layout>(value.tensor);
  const std::span<const std::byte> bytes = value.tensor.bytes();
  view->buf = const_cast<std::byte*>(bytes.data());  // an output is this program's, and so is what the flag says
  view->obj = Py_NewRef(object);
  view->len = static_cast<Py_ssize_t>(bytes.size());
  view->itemsize = static_cast<Py_ssize_t>(api::size_of(value.tensor.dtype()));
  view->readonly = value.is_writable ? 0 : 1;
  view->ndim = static_cast<int>(layout->extents.size());
  view->format = const_cast<char*>(letter_of(value.tensor.dtype()));  // the protocol's type; nobody writes there
  view->shape = layout->extents.data();
  view->strides = layout->strides.data();
  view->suboffsets = nullptr;
  view->internal = layout.release();
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Layout*>(view->internal); }

}  // namespace

PyType_Slot buffer_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                              {0, nullptr}};

std::pair<TypePtr, Value> elements_of(nb::handle object, bool are_bf16) {
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), buffer.get(), PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  const std::shared_ptr<Py_buffer> owner(buffer.release(), Release{});
  const api::DType dtype = dtype_of(owner->format, are_bf16);
  const bool is_complex = dtype == api::DType::c64 || dtype == api::DType::c128;
  if (reinterpret_cast<std::uintptr_t>(owner->buf) % (api::size_of(dtype) / (is_complex ? 2 : 1)) != 0)
    throw nb::buffer_error("elements that are not aligned");
  api::Tensor tensor = borrowed(dtype, *owner, {owner->shape, owner->shape + owner->ndim}, owner);
  TypePtr type = type_of(dtype, tensor.shape());
  return {std::move(type), {std::move(tensor), owner->readonly == 0}};
}

Value in_memory(Node& node) {
  const Value value = node.value().value();
  constexpr std::size_t most = std::size_t{1} << 30U;
  if (!api::is_mapped(value.tensor)) return value;
  const api::WholeFiles files({{"", value.tensor}});
  if (value.tensor.bytes().size() > most) return value;
  std::optional<api::Tensor> copy;
  {
    const nb::gil_scoped_release release;
    copy = copy_of(value.tensor);
  }
  files.check();
  node.hold({*copy, value.is_writable});
  return *node.value();
}

}  // namespace einrel::python
