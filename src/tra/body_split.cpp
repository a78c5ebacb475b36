#include "tra/body_split.h"

#include <algorithm>
#include <set>

#include "tensor/convert.h"

namespace einrel::lowering {
namespace {

/// The arguments of the step at `root`, first one first.
std::vector<Subexpression> arguments_of(const ScalarExpr& body, const std::vector<std::size_t>& starts,
                                        std::size_t root) {
  std::vector<Subexpression> arguments;
  std::size_t end = root;
  for (std::size_t left = arity(body.steps[root]); left > 0; --left) {
    arguments.insert(arguments.begin(), Subexpression{starts[end - 1], end - 1});
    end = starts[end - 1];
  }
  return arguments;
}

}  // namespace

std::optional<Split> find_split(const ScalarExpr& body, const std::vector<std::size_t>& source_of) {
  const std::vector<std::size_t> starts = subexpression_starts(body);
  std::vector<std::set<std::size_t>> sources;  // that the subexpression ending at each step reads
  for (std::size_t i = 0; i < body.steps.size(); ++i) {
    std::set<std::size_t> read;
    if (const auto* value = std::get_if<OperandValue>(&body.steps[i].op)) read.insert(source_of[value->operand]);
    const std::vector<Subexpression> arguments = arguments_of(body, starts, i);
    for (const Subexpression& argument : arguments)
      read.insert(sources[argument.last].begin(), sources[argument.last].end());
    if (read.size() > 2) {  // the first step with more than two: each of its arguments reads two at most
      for (const Subexpression& argument : arguments) {
        if (sources[argument.last].size() == 2) return Split{argument, std::nullopt};
      }
      return Split{arguments[0], arguments[1]};  // three arguments with one relation each
    }
    sources.push_back(std::move(read));
  }
  return std::nullopt;
}

ScalarExpr steps_of(const ScalarExpr& body, Subexpression part) {
  const auto begin = body.steps.begin();
  return {{begin + static_cast<std::ptrdiff_t>(part.first), begin + static_cast<std::ptrdiff_t>(part.last) + 1}};
}

ScalarExpr with_replaced(const ScalarExpr& body, Subexpression part, const std::vector<ScalarStep>& steps) {
  const auto begin = body.steps.begin();
  ScalarExpr result{{begin, begin + static_cast<std::ptrdiff_t>(part.first)}};
  result.steps.insert(result.steps.end(), steps.begin(), steps.end());
  result.steps.insert(result.steps.end(), begin + static_cast<std::ptrdiff_t>(part.last) + 1, body.steps.end());
  return result;
}

ScalarStep operand_step(std::size_t operand, DType type) { return {type, OperandValue{operand}}; }

ScalarStep number_step(double value, DType type) {
  return with_stored_type(type, [&]<class Stored>() -> ScalarStep {
    return {type, Constant{widen(narrow<Stored>(value))}};
  });
}

}  // namespace einrel::lowering
