#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/extent.h"
#include "einsum/expr/functions.h"
#include "tensor/dtype.h"

namespace einrel {

/// The value of operand `operand` of the vertex, at the current binding of the labels.
struct OperandValue {
  std::size_t operand = 0;
  bool operator==(const OperandValue&) const = default;
};
/// A number; an int64 where the node's type is an integer or bool, else a double.
struct Constant {
  std::variant<std::int64_t, double> value;
  bool operator==(const Constant&) const = default;
};
/// The current value of label `label` of the vertex, as a number.
struct LabelValue {
  std::size_t label = 0;
  bool operator==(const LabelValue&) const = default;
};
/// A named scalar of the program, bound at run time.
struct ScalarValue {
  std::string name;
  bool operator==(const ScalarValue&) const = default;
};
/// Pops one value, pushes f(value).
struct ApplyUnary {
  UnaryFunction function{};
  bool operator==(const ApplyUnary&) const = default;
};
/// Pops b, then a; pushes f(a, b). Both were converted to `operands` before.
struct ApplyBinary {
  BinaryFunction function{};
  bool operator==(const ApplyBinary&) const = default;
};
/// Pops b, a, c; pushes c != 0 ? a : b.
struct ApplyWhere {
  bool operator==(const ApplyWhere&) const = default;
};
/// Pops one value, pushes it converted to the node's type: floats round to nearest, float to integer
/// truncates and saturates (NaN gives 0), i64 to i32 wraps, anything but 0 is true.
struct Convert {
  bool operator==(const Convert&) const = default;
};
/// Pops one value of any type, pushes it as f32, rounded once to what `to`, bf16 or f16, can hold.
struct Round {
  DType to = DType::bf16;
  bool operator==(const Round&) const = default;
};

/// Pops an iteration, a position and a seed, all i64; pushes the random number that stands there (random_number.h), as
/// f32 or f64.
struct ApplyRandom {
  RandomFunction function{};
  std::uint32_t stream = 0;
  bool operator==(const ApplyRandom&) const = default;
};

/// Pops a position, then a value, both i64; pushes the value. One below 0 or not below `extent` ends the run with an
/// error that says which element of `tensor` it is: the one at this position, in row-major order of `shape`; and that
/// it indexes a dimension of `indexed`.
struct CheckRange {
  std::string tensor;
  Shape shape;
  std::string indexed;
  std::int64_t extent = 0;
  bool operator==(const CheckRange&) const = default;
};

/// One step of a scalar expression, and the type of the value it leaves on the stack.
/// bf16 and f16 are no types of steps: operands of those types arrive as f32, and casts to them leave f32.
struct ScalarStep {
  DType type = DType::f32;
  std::variant<OperandValue, Constant, LabelValue, ScalarValue, ApplyUnary, ApplyBinary, ApplyWhere, Convert, Round,
               ApplyRandom, CheckRange>
      op;
  bool operator==(const ScalarStep&) const = default;
};

/// The scalar function of an EinSum (the paper's (x), EinDecomp section 3) as steps of a stack machine, in
/// postorder: evaluating is one loop, and every subexpression is a contiguous range ending at its root.
/// All conversions are explicit: the arguments of a step have the type that the step computes in.
struct ScalarExpr {
  std::vector<ScalarStep> steps;
  DType type() const { return steps.back().type; }
  bool operator==(const ScalarExpr&) const = default;
};

/// The type that values of `dtype` are computed in: f32 for bf16 and f16.
DType compute_type(DType dtype);

/// A whole number that `type` can hold.
ScalarStep whole_step(std::int64_t value, DType type = DType::i64);
ScalarStep binary_step(DType type, BinaryFunction function);
void append(ScalarExpr& expr, const ScalarExpr& more);
/// where(condition, value, 0)
ScalarExpr only_where(ScalarExpr condition, const ScalarExpr& value);

/// For each step, the steps that compute what it pops. O(steps).
std::vector<std::vector<std::size_t>> arguments_of_steps(const ScalarExpr& expr);
/// How many values a step pops.
std::size_t arity(const ScalarStep& step);
/// For each step, the first step of the subexpression that ends there. O(steps).
std::vector<std::size_t> subexpression_starts(const ScalarExpr& expr);

/// The operand, or the label, whose value a step is.
std::optional<std::size_t> operand_read(const ScalarStep& step);
std::optional<std::size_t> label_read(const ScalarStep& step);
bool reads_operand(const ScalarExpr& expr, std::size_t operand);
bool reads_label(const ScalarExpr& expr, std::size_t label);
/// Whether it checks an index: computing it may end the run with an error, also where its value is not chosen.
bool may_throw(const ScalarExpr& expr);

/// Another number for each.
using Renumbering = std::function<std::size_t(std::size_t)>;
/// Reads other operands, or labels: `to` is asked step by step, in order.
void map_operands(ScalarExpr& expr, const Renumbering& to);
void map_labels(ScalarExpr& expr, const Renumbering& to);
/// The steps that `replacement` gives in the place of each step; the step itself where these are none.
ScalarExpr substitute(const ScalarExpr& expr,
                      const std::function<std::vector<ScalarStep>(const ScalarStep&)>& replacement);

}  // namespace einrel
