#include "export/array_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "export/python_names.h"

namespace einrel {

std::string within(const PythonText& text, Binding least) {
  return text.binding < least ? fmt::format("({})", text.text) : text.text;
}

PythonText cast_text(const PythonText& array, std::string_view type, const ArrayLibrary& library) {
  return {fmt::format(fmt::runtime(library.cast), fmt::arg("x", within(array, Binding::name)), fmt::arg("type", type))};
}

std::string python_type(const ArrayLibrary& library, DType type) {
  const auto name = [&]() -> std::string_view {
    switch (type) {
      case DType::f32: return "float32";
      case DType::f64: return "float64";
      case DType::bf16: return "bfloat16";
      case DType::f16: return "float16";
      case DType::i32: return "int32";
      case DType::i64: return "int64";
      default: return library.boolean;
    }
  };
  return fmt::format("{}.{}", library.module, name());
}

std::string axis_names(const std::vector<std::size_t>& axes) {
  std::vector<std::string> names;
  for (const std::size_t axis : axes) names.push_back(fmt::format("\"m{}\"", axis));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string axes_tuple(const std::vector<std::size_t>& axes) {
  return axes.size() == 1 ? axis_names(axes) : fmt::format("({})", axis_names(axes));
}

std::string reshaped(const std::string& array, const std::vector<std::int64_t>& shape) {
  return fmt::format("{}.reshape({})", array, shape.empty() ? "()" : fmt::format("{}", fmt::join(shape, ", ")));
}

std::string transposed(const std::string& array, const std::vector<std::size_t>& order, const ArrayLibrary& library) {
  return fmt::format(fmt::runtime(library.transpose), fmt::arg("x", array), fmt::arg("order", numbers_tuple(order)));
}

}  // namespace einrel
