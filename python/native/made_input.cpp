#include "made_input.h"

#include <utility>

namespace einrel::python {
namespace {

namespace nb = nanobind;

/// Forgets the object, from whatever thread. Where Python has gone, so has the object.
struct Forget {
  void operator()(nb::object* object) const {
    if (!nb::is_alive()) return;
    const nb::gil_scoped_acquire lock;
    delete object;  // owned by the shared_ptr
  }
};

nb::tuple tuple_of(const std::vector<std::int64_t>& numbers) {
  nb::list list;
  for (const std::int64_t number : numbers) list.append(number);
  return nb::tuple(list);
}

}  // namespace

RaisedInCallback::RaisedInCallback(const nb::python_error& raised)
    : api::RunError(raised.what()), error(std::make_shared<nb::python_error>(raised)) {}

api::Input input_made_by(nb::object fill, api::DType dtype, const api::Shape& shape) {
  const std::shared_ptr<nb::object> function(new nb::object(std::move(fill)), Forget{});
  return api::Input::made(
      dtype, shape,
      [function](const std::vector<std::int64_t>& begin, const api::Shape& extents, std::span<std::byte> elements) {
        if (!nb::is_alive()) throw api::RunError("the interpreter has ended");
        const nb::gil_scoped_acquire lock;
        try {
          const nb::object memory = nb::steal(PyMemoryView_FromMemory(
              reinterpret_cast<char*>(elements.data()), static_cast<Py_ssize_t>(elements.size()), PyBUF_WRITE));
          (*function)(tuple_of(begin), tuple_of(extents), memory);
        } catch (const nb::python_error& raised) {
          throw RaisedInCallback(raised);
        }
      });
}

api::Tensor elements_of(const api::Input& input) {
  return raising([&] {
    const nb::gil_scoped_release release;
    return input.tensor();
  });
}

}  // namespace einrel::python
