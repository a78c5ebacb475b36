#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "einsum/expr/functions.h"
#include "plan/collectives.h"
#include "tensor/dtype.h"

namespace einrel {

/// How tightly the outermost operator of a text binds: Python's order, of those that formulas have.
enum class Binding : std::uint8_t { comparison, sum, product, sign, power, name };

struct PythonText {
  std::string text;
  Binding binding = Binding::name;
};

/// In parentheses where the text binds less than that.
std::string within(const PythonText& text, Binding least);

/// What the formulas and the steps of a module need beside themselves: helpers, and lines of devices along axes.
struct ModuleNeeds {
  bool positions = false;
  bool read = false;
  bool precision = false;
  bool rounding = false;
  bool uniform = false;
  bool normal = false;
  bool to_integer = false;
  bool extremes = false;  ///< the largest or least float of several devices
  bool whole_power = false;
  std::set<std::vector<std::size_t>> lines;  ///< sets of axes along which devices send to each other
};

/// How a Python library for arrays on many devices says what exported modules need. Texts are templates: the words in
/// braces stand for what is filled in.
struct ArrayLibrary {
  std::string_view name;     ///< "JAX"
  std::string_view module;   ///< "jnp": where its functions and types are
  std::string_view boolean;  ///< its type of truth values
  std::string_view power;    ///< a function's name
  std::string_view axis;     ///< the argument that says which dimensions are reduced
  /// Whether functions and `where` take numbers of Python.
  bool takes_numbers = false;
  /// Whether an einsum of bf16 or f16 can give f32.
  bool einsum_widens = false;
  /// Whether a cast to bf16 or f16 rounds once from f32, also where a cast back follows.
  bool casts_round = false;
  /// Whether an array lives as long as a variable names it; compilers see when it is read last.
  bool keeps_named = false;

  std::string_view number;     ///< the number {x} as an array of {type}
  std::string_view cast;       ///< the array {x} as one of {type}
  std::string_view transpose;  ///< {x} with its dimensions in {order}
  std::string_view arange;     ///< 0, 1, ... below {count}
  std::string_view positions;  ///< where {count} of a label are in the whole tensor; {and_axes}, {and_names}
  std::string_view einsum;     ///< of {subscripts} and {arrays}, {and_type}
  /// Of {x}, with batches and channels first, and {filter}, with features and channels first: by {strides} and
  /// {dilation}, with zeros (below 0: less) at both ends of {dimensions} dimensions, as {pairs}, or the last first, as
  /// {flat}.
  std::string_view convolution;
  std::string_view to_bits;  ///< {x} as what bf16 is sent as; "" where that is nothing else
  std::string_view from_bits;

  // Of {x}, along the axes of the mesh {axes}, a tuple, or {names}, arguments.
  std::string_view take_part;       ///< of {dimension}, {extent} long
  std::string_view all_to_all;      ///< cut along {split}, put together along {joined}
  std::string_view permute;         ///< by {pairs}
  std::string_view all_gather;      ///< along {dimension}
  std::string_view reduce_scatter;  ///< along {dimension}
  std::string_view all_reduce;      ///< by {how}: sum, max or min
  std::string_view
      all_extreme;  ///< of floats, by {how}, max or min: NaN where one is, which max and min of collectives may drop

  std::string_view decorator;   ///< of functions that are called several times; "" where there is none
  std::string_view parameters;  ///< of the function of a device, after the dicts of arrays
  std::string_view imports;
  std::set<std::string> names;  ///< that no variable may have

  std::string_view (*unary)(UnaryFunction) = nullptr;  ///< functions.def
  std::string_view (*reducer)(Reducer) = nullptr;
  /// {x}, an f32 or f64, as the nearest that `to`, bf16 or f16, can hold, in its own type.
  std::string (*rounded)(const PythonText& x, DType from, DType to, ModuleNeeds& needs) = nullptr;
  std::string (*cut)(const Sharding&) = nullptr;           ///< of a tensor, in the tables
  std::string (*constants)(const ModuleNeeds&) = nullptr;  ///< after the tables
  std::string (*helpers)(const ModuleNeeds&) = nullptr;    ///< the functions that formulas and steps call
  std::string_view frame;                                  ///< make_mesh, place, step, initial_states
  std::string_view main;                                   ///< what runs where the module is the program
};

/// "jnp.float32"
std::string python_type(const ArrayLibrary& library, DType type);

/// An array as one of another type.
PythonText cast_text(const PythonText& array, std::string_view type, const ArrayLibrary& library);

/// `"m0", "m1"`: axes of a mesh as arguments.
std::string axis_names(const std::vector<std::size_t>& axes);
/// `"m0"`, `("m0", "m1")`: as one argument, a name or a tuple of them.
std::string axes_tuple(const std::vector<std::size_t>& axes);

/// An array in another shape.
std::string reshaped(const std::string& array, const std::vector<std::int64_t>& shape);
/// An array with its dimensions in this order.
std::string transposed(const std::string& array, const std::vector<std::size_t>& order, const ArrayLibrary& library);

/// A call along axes of the mesh, by one of the templates that have {axes} and {names}.
template <class... More>
std::string along(std::string_view call, const std::string& array, const std::vector<std::size_t>& axes,
                  const More&... more) {
  return fmt::format(fmt::runtime(call), fmt::arg("x", array), fmt::arg("axes", axes_tuple(axes)),
                     fmt::arg("names", axis_names(axes)), more...);
}

}  // namespace einrel
