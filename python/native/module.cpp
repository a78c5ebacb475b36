#include <einrel/einrel.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "casters.h"
#include "compute.h"
#include "dlpack.h"
#include "elements.h"
#include "history.h"
#include "made_input.h"
#include "programs.h"
#include "user_line.h"

namespace einrel::python {
namespace {

namespace nb = nanobind;

nb::tuple tuple_of(const api::Shape& shape) {
  nb::list extents;
  for (const std::int64_t extent : shape) extents.append(extent);
  return nb::tuple(extents);
}

api::DType dtype_named(const std::string& name) {
  for (const api::DType dtype : {api::DType::f32, api::DType::f64, api::DType::bf16, api::DType::f16, api::DType::i32,
                                 api::DType::i64, api::DType::boolean, api::DType::c64, api::DType::c128}) {
    if (api::name_of(dtype) == name) return dtype;
  }
  throw api::UserError("there is no type '" + name + "'");
}

void bind_types(nb::module_& module) {
  nb::class_<Type>(module, "Type", nb::is_final())
      .def_prop_ro("dtype", [](const Type& type) { return std::string(api::name_of(type.dtype)); })
      .def_prop_ro("shape", [](const Type& type) { return tuple_of(type.shape); });
  nb::class_<Value>(module, "Elements", nb::type_slots(buffer_slots)).def_ro("is_writable", &Value::is_writable);
}

void bind_formulas(nb::module_& module) {
  nb::class_<Formula>(module, "Formula", nb::is_final())
      .def(nb::init<std::int64_t>())
      .def(nb::init<double>())
      .def_static("label", &Formula::label)
      .def_static("element", &Formula::element)
      .def_static("apply", &Formula::apply)
      .def_static("cast",
                  [](const std::string& dtype, const Formula& x) { return Formula::cast(dtype_named(dtype), x); });
}

void bind_definitions(nb::module_& module) {
  using Types = std::vector<TypePtr>;
  const auto made = [](const Types& operands, Meaning meaning) {
    try {
      return std::make_shared<const Definition>(operands, std::move(meaning));
    } catch (const std::out_of_range&) {
      throw nb::type_error("a label or an operand that there is not");
    }
  };
  nb::class_<Definition>(module, "Definition", nb::is_final())
      .def_static(
          "statement",
          [made](const Types& operands, const Formula& value, std::vector<std::int64_t> extents, std::size_t rank) {
            if (rank > extents.size()) throw nb::type_error("a result of more labels than there are");
            return made(operands, Statement{value, std::move(extents), rank});
          })
      .def_static("view",
                  [made](const TypePtr& operand, std::vector<std::vector<std::size_t>> to,
                         std::vector<std::vector<std::size_t>> from, std::vector<std::int64_t> extents) {
                    return made({operand}, View{std::move(to), std::move(from), std::move(extents)});
                  })
      .def_static(
          "einsum",
          [made](const Types& operands, std::string subscripts, std::optional<std::string> join,
                 std::optional<std::string> reduce) {
            return made(operands, Einsum{std::move(subscripts), std::move(join), std::move(reduce)});
          },
          nb::arg("operands"), nb::arg("subscripts"), nb::arg("join").none(), nb::arg("reduce").none())
      .def_static("gradient",
                  [made](const Types& operands, std::size_t which) { return made(operands, Gradient{which}); })
      .def_prop_ro("type", &Definition::type);
}

/// The node, which the user's code has just made.
NodePtr made_here(NodePtr node) {
  node->set_line(line_of_user());
  return node;
}

void bind_nodes(nb::module_& module) {
  nb::class_<Node>(module, "Node", nb::is_final())
      .def_static(
          "leaf",
          [](nb::handle object, bool are_bf16) {
            auto [type, value] = elements_of(object, are_bf16);
            return made_here(std::make_shared<Node>(std::move(type), std::move(value)));
          },
          nb::arg("buffer"), nb::arg("are_bf16") = false)
      .def_static(
          "from_file",
          [](const std::string& file) {
            api::outlive_cut_files();
            const api::Tensor tensor = api::Tensor::load(file);
            return made_here(std::make_shared<Node>(type_of(tensor.dtype(), tensor.shape()), Value{tensor, false}));
          })
      .def_static("made",
                  [](const std::string& dtype, const api::Shape& shape, nb::object fill) {
                    return made_here(std::make_shared<Node>(input_made_by(std::move(fill), dtype_named(dtype), shape)));
                  })
      .def_static("of",
                  [](const std::shared_ptr<const Definition>& definition, std::vector<NodePtr> operands) {
                    if (!std::equal(operands.begin(), operands.end(), definition->operands().begin(),
                                    definition->operands().end(),
                                    [](const NodePtr& node, const TypePtr& type) { return node->type() == type; }))
                      throw nb::type_error("operands of other types than those of the definition, or another number");
                    return made_here(std::make_shared<Node>(definition, std::move(operands)));
                  })
      .def_static(
          "argument",
          [](const TypePtr& type, std::string name) {
            NodePtr node = made_here(std::make_shared<Node>(type, std::nullopt));
            node->set_name(std::move(name));
            return node;
          },
          nb::arg("type"), nb::arg("name") = "")
      .def_static("argument_like",
                  [](const NodePtr& node) {
                    NodePtr made = std::make_shared<Node>(node->type(), std::nullopt);
                    made->set_origin(node);
                    return made;
                  })
      .def_prop_ro("type", &Node::type)
      .def_static(
          "made_of",
          [](NodePtr leaf, std::shared_ptr<const Definition> definition, std::vector<NodePtr> operands,
             std::string where) {
            leaf->was_made_by(std::move(definition), std::move(operands));
            if (leaf->value()) remember_later(leaf, std::move(where));
            return leaf;
          },
          nb::arg("leaf"), nb::arg("definition").none(), nb::arg("operands"), nb::arg("where"))
      .def_static("apart",
                  [](const NodePtr& node, const std::shared_ptr<const Definition>& identity) {
                    const auto made = node->value() ? std::make_shared<Node>(node->type(), node->value())
                                                    : std::make_shared<Node>(identity, std::vector{node});
                    made->was_made_by(identity, {node});
                    made->set_apart();
                    made->set_line(node->line());
                    return made;
                  })
      .def_prop_rw("name", &Node::name, &Node::set_name)
      .def_prop_ro("origin",
                   [](const Node& node) {
                     const std::optional<Node::Origin> origin = node.origin();
                     return origin ? std::optional(std::pair(origin->node, origin->times)) : std::nullopt;
                   })
      .def("stand_for", &Node::set_origin, nb::arg("node"))
      .def("be_gradient_by", &Node::set_gradient_by, nb::arg("node"))
      .def_prop_ro("line",
                   [](const Node& node) {
                     const UserLine& line = node.line();
                     return line.file == nullptr ? std::nullopt : std::optional(std::pair(*line.file, line.number));
                   })
      .def_prop_ro("is_leaf", &Node::is_leaf)
      .def_prop_ro("is_traced", &Node::is_traced)
      .def_prop_ro("is_computed", [](const Node& node) { return node.value().has_value(); })
      .def_prop_ro("is_in_memory",
                   [](const Node& node) { return node.value() && !api::is_mapped(node.value()->tensor); })
      .def_prop_ro("elements", [](Node& node) { return in_memory(node); });
}

}  // namespace
}  // namespace einrel::python

NB_MODULE(_native, module) {
  using namespace einrel::python;
  nanobind::set_leak_warnings(false);  // caches of Python's functions live as long as the interpreter
  bind_errors(module);
  bind_types(module);
  bind_formulas(module);
  bind_definitions(module);
  bind_nodes(module);
  module.def("exchange_bf16", &exchange_bf16);
  module.def("push_line_of", [](const Node& node) { push_line(node.line()); });
  module.def("pop_line", &pop_line);
  bind_programs(module);
}
