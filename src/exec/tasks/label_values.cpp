#include "exec/tasks/label_values.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

/// The label that an operand runs over the positions along.
std::optional<std::size_t> label_along(const Access& access) {
  if (access.pad || access.indices.size() != 1) return std::nullopt;
  return plain_label(access.indices.front());
}

/// Steps that read positions along a label become its value and where the positions begin, which `operand` gives.
ScalarExpr with_values(const ScalarExpr& body, std::size_t operand, std::size_t label) {
  return substitute(body, [&](const ScalarStep& step) {
    std::vector<ScalarStep> steps;
    if (operand_read(step) != operand) return steps;
    steps = {{DType::i64, LabelValue{label}},
             {DType::i64, OperandValue{operand}},
             {DType::i64, ApplyBinary{BinaryFunction::add}}};
    if (step.type != DType::i64) steps.push_back({step.type, Convert{}});
    return steps;
  });
}

void remove_operand(EinSum& einsum, std::vector<std::size_t>& reads, std::size_t operand) {
  einsum.operands.erase(einsum.operands.begin() + static_cast<std::ptrdiff_t>(operand));
  reads.erase(reads.begin() + static_cast<std::ptrdiff_t>(operand));
  map_operands(einsum.body, [&](std::size_t read) { return read > operand ? read - 1 : read; });
}

/// One step that reads `argument`; false where it reads it in another way than along a label.
bool take_positions(EinSum& einsum, std::vector<std::size_t>& reads, std::size_t argument, Extent extent) {
  for (std::size_t o = einsum.operands.size(); o-- > 0;) {
    if (reads[o] != argument) continue;
    const std::optional<std::size_t> label = label_along(einsum.operands[o]);
    if (label && measured_label(einsum, reads, o, 0)) einsum.labels[*label].extent = extent;
    if (!reads_operand(einsum.body, o)) {
      remove_operand(einsum, reads, o);
      continue;
    }
    if (!label) return false;
    einsum.body = with_values(einsum.body, o, *label);
    einsum.operands[o] = Access{};
  }
  return true;
}

}  // namespace

std::optional<Kernel> without_positions(const Kernel& kernel, std::size_t argument, Extent extent) {
  Kernel result = kernel;
  const std::size_t count = kernel.arguments.size();
  result.arguments.erase(result.arguments.begin() + static_cast<std::ptrdiff_t>(argument));
  result.arguments.push_back(DType::i64);
  for (KernelStep& step : result.steps) {
    EinSum* const einsum = einsum_of(step);
    const bool takes = std::find(step.reads.begin(), step.reads.end(), argument) != step.reads.end();
    if (takes && (einsum == nullptr || !take_positions(*einsum, step.reads, argument, extent))) return std::nullopt;
    for (std::size_t& read : step.reads) {
      if (read < count && read >= argument) read = read == argument ? count - 1 : read - 1;
    }
  }
  return result;
}

Kernel positions_kernel(Extent extent) {
  Kernel copy{"positions", {DType::i64}, {}};
  EinSum einsum;
  einsum.labels.push_back({"i", Extent::open()});
  einsum.output.push_back(0);
  einsum.operands.emplace_back().indices.push_back({0, {{1, 0}}});
  einsum.body.steps = {{DType::i64, OperandValue{0}}};
  copy.steps.push_back({std::move(einsum), DType::i64, {0}});
  std::optional<Kernel> kernel = without_positions(copy, 0, extent);
  invariant(kernel.has_value(), "a copy reads its argument along a label");
  return std::move(*kernel);
}

}  // namespace einrel
