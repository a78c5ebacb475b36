#include "export/torch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "export/device_module.h"
#include "export/python_names.h"
#include "export/torch_texts.h"

namespace einrel {
namespace {

std::string torch_helpers(const ModuleNeeds& needs) {
  std::string text = torch_mesh;
  if (!needs.lines.empty()) text += torch_collectives;
  if (needs.read) text += torch_read;
  if (needs.rounding) text += torch_rounding;
  if (needs.to_integer) text += torch_to_integer;
  if (needs.extremes) text += torch_extreme;
  if (needs.whole_power) text += torch_whole_power;
  if (needs.uniform || needs.normal) text += torch_philox;
  if (needs.uniform) text += torch_uniform;
  if (needs.normal) text += torch_normal;
  return text;
}

std::string_view torch_unary(UnaryFunction function) {
  switch (function) {
#define EINREL_UNARY(id, name, usage, meaning, traits, value, slope, sql, jax, torch) \
  case UnaryFunction::id: {                                                           \
    return torch;                                                                     \
  }
#include "einsum/expr/functions.def"
  }
  throw Bug("a function outside its enumeration");
}

std::string_view torch_reducer(Reducer reducer) {
  switch (reducer) {
#define EINREL_REDUCER(id, name, usage, meaning, result, traits, kept, start, each, fold, continues, slope, sql, jax, \
                       torch, ...)                                                                                    \
  case Reducer::id: {                                                                                                 \
    return torch;                                                                                                     \
  }
#include "einsum/expr/functions.def"
  }
  throw Bug("a reduction outside its enumeration");
}

/// A cast of f64 rounds to f32 first, so that it rounds twice.
std::string torch_rounded(const PythonText& x, DType from, DType to, ModuleNeeds& needs) {
  const std::string type = to == DType::bf16 ? "torch.bfloat16" : "torch.float16";
  if (from == DType::f32) return fmt::format("{}.to({}).to(torch.float32)", within(x, Binding::name), type);
  needs.rounding = true;
  return fmt::format("_rounded({}, {})", x.text, type);
}

std::string names_tuple(const std::vector<std::size_t>& axes) {
  return axes.size() == 1 ? fmt::format("({},)", axis_names(axes)) : fmt::format("({})", axis_names(axes));
}

/// (("m0",), (), ("m1", "m2")): for each dimension the axes that cut it.
std::string axes_of_dimensions(const Sharding& sharding) {
  std::vector<std::string> dimensions;
  for (const std::vector<std::size_t>& axes : sharding) dimensions.push_back(names_tuple(axes));
  return python_tuple(dimensions);
}

std::string torch_constants(const ModuleNeeds& needs) {
  std::vector<std::string> lines;
  for (const std::vector<std::size_t>& axes : needs.lines) lines.push_back(names_tuple(axes));
  std::string text = fmt::format("# Axes along which devices send to each other.\nLINES = {}\n", python_tuple(lines));
  if (needs.precision)
    text +=
        "# GPUs multiply f32 with 10 bits unless they are told not to.\n"
        "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False\n";
  return text;
}

ArrayLibrary torch_library() {
  return {
      .name = "PyTorch",
      .module = "torch",
      .boolean = "bool",
      .power = "pow",
      .axis = "dim",
      .takes_numbers = false,
      .einsum_widens = false,
      .casts_round = true,
      .keeps_named = true,
      .number = "torch.as_tensor({x}, dtype={type}, device=mesh.device)",
      .cast = "{x}.to({type})",
      .transpose = "{x}.permute{order}",
      .arange = "torch.arange({count}, device=mesh.device)",
      .positions = "mesh.positions({count}{and_names})",
      .einsum = "torch.einsum(\"{subscripts}\", {arrays})",
      .convolution =
          "torch.nn.functional.conv{dimensions}d(torch.nn.functional.pad({x}, {flat}), {filter}, "
          "stride={strides}, dilation={dilation})",
      .to_bits = "",
      .from_bits = "",
      .take_part = "{x}.narrow({dimension}, mesh.place({names}) * {extent}, {extent})",
      .all_to_all = "_all_to_all({x}, mesh.line({names}), {split}, {joined})",
      .permute = "_permute({x}, mesh.line({names}), [{pairs}])",
      .all_gather = "_all_gather({x}, mesh.line({names}), {dimension})",
      .reduce_scatter = "_reduce_scatter({x}, mesh.line({names}), {dimension})",
      .all_reduce = "_all_reduce({x}, mesh.line({names}), \"{how}\")",
      .all_extreme = "_extreme({x}, mesh.line({names}), \"{how}\")",
      .decorator = "",
      .parameters = ", mesh",
      .imports = torch_imports,
      .names = {"torch",           "dist",         "np",          "os",       "time",
                "inputs",          "states",       "mesh",        "MESH",     "INPUTS",
                "LINES",           "STATES",       "OUTPUTS",     "SCALARS",  "_to_integer",
                "_read",           "_whole_power", "_rounded",    "_uniform", "_normal",
                "_permute",        "_all_to_all",  "_all_gather", "_bytes",   "_exchange",
                "_reduce_scatter", "_all_reduce",  "_extreme"},
      .unary = torch_unary,
      .reducer = torch_reducer,
      .rounded = torch_rounded,
      .cut = axes_of_dimensions,
      .constants = torch_constants,
      .helpers = torch_helpers,
      .frame = torch_frame,
      .main = torch_main,
  };
}

}  // namespace

std::string torch_source(const Compiled& compiled, const PlanReport& report) {
  return module_source(compiled, report, torch_library());
}

}  // namespace einrel
