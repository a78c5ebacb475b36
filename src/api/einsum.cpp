#include <einrel/program.h>

#include "api/border.h"
#include "api/expression_data.h"
#include "api/plan_options.h"
#include "api/program_data.h"
#include "api/tensor_data.h"
#include "einsum/check/einsum_notation.h"
#include "einsum/front/build/formula.h"

namespace einrel::api {

namespace {

BoundInput operand_of(DType dtype, const Shape& shape, const std::string& name) {
  BoundInput operand{inside(dtype, shape), std::string(name_of(dtype)), {inside(dtype)}, "operand " + name};
  operand.is_complex = is_complex(dtype);
  return operand;
}

}  // namespace

Tensor einsum(std::string_view subscripts, const std::vector<Tensor>& operands, const EinsumOptions& options) {
  return at_border([&] {
    EinsumRequest request{std::string(subscripts), {}, options.join, options.reduce};
    Inputs inputs;
    for (const Tensor& operand : operands) {
      const std::string name = operand_name(request.operands.size(), operands.size());
      request.operands.push_back(operand_of(operand.dtype(), operand.shape(), name));
      inputs.insert({name, operand});
    }
    Version version(compile(request.subscripts, einsum_graph(request)));
    const SourceText source("<einsum>", request.subscripts);
    return run_version({version, source, inputs, {}}, {.threads = options.threads})[einsum_result];
  });
}

Variable einsum(const std::string& name, std::string_view subscripts, const std::vector<EinsumOperand>& operands,
                const std::optional<std::string>& join, const std::optional<std::string>& reduce) {
  return at_border([&] {
    EinsumRequest request{std::string(subscripts), {}, join, reduce};
    std::map<std::string, std::string> variables;  // by the operands' names
    for (const EinsumOperand& operand : operands) {
      const std::string own = operand_name(request.operands.size(), operands.size());
      request.operands.push_back(operand_of(operand.dtype, operand.shape, own));
      variables[own] = operand.variable.name();
    }
    build::Definition definition = einsum_definition(request);
    for (build::Node& node : definition.value.nodes) {
      if (auto* const read = std::get_if<build::Access>(&node.op)) read->tensor.text = variables.at(read->tensor.text);
    }
    ExpressionAccess::Data value{build::formula_of(definition.value), {}, {}};
    for (const EinsumOperand& operand : operands) value.reads.push_back(ExpressionAccess::statement(operand.variable));
    Labels labels;
    for (const build::Name& label : definition.labels) labels.emplace_back(label.text);
    return define(name, labels, ExpressionAccess::expression(std::move(value)));
  });
}

}  // namespace einrel::api
