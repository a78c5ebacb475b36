#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "einsum/expr/scalar_expr.h"
#include "einsum/front/build/program.h"

namespace einrel {

/// Builds typed steps from an expression in postorder, by the language's rules (docs/language.md, "Types"):
/// NumPy's promotion among tensors; a bare number, label or scalar is "weak" and takes the type of what it
/// meets; alone, a number is f32 and a label i64. In the steps bf16 and f16 are f32, the logical dtype is kept here.
class TypedBuilder {
 public:
  explicit TypedBuilder(std::vector<Diagnostic>& errors) : errors_(errors) {}

  /// One value on the stack: the steps from `begin` up to the next value's begin.
  struct Value {
    enum class Kind : std::uint8_t { poison, strong, weak_integer, weak_float };
    Kind kind = Kind::poison;
    DType dtype = DType::f32;  ///< when strong
    std::size_t begin = 0;
    bool has_label = false;     ///< weak_integer: a label's value takes part
    bool may_be_whole = false;  ///< weak_float: made of scalars, which take integer types too if their values do
    bool is_rounded = false;    ///< strong: it is a number that `dtype` can hold, also where that is narrow
  };

  /// Of a tensor that is `stored` in this type, or in the type that values of it are computed in.
  void push_operand(std::size_t operand, DType dtype, DType stored);
  void push_number(const build::Number& number);
  void push_label(std::size_t label);
  void push_scalar(const std::string& name);
  /// A value that is wrong already: whatever meets it stays silent.
  void push_poison();
  void unary(UnaryFunction function, Span where);
  void binary(BinaryFunction function, Span where);
  void where(Span where);
  void cast(DType dtype, Span where);
  /// Of seed, position and iteration, which are the three on top.
  void random(ApplyRandom function, Span where);

  /// Of a value and its position, which are the two on top: whole numbers, and so is what it leaves.
  void in_range(CheckRange check, Span where);

  /// Gives the top value its own type if it is weak.
  void settle(Span where);
  /// Converts the settled top value to what `reducer` reduces over.
  void prepare_reduction(Reducer reducer);
  const Value& top() const { return stack_.back(); }
  /// Takes the top value off, with its steps.
  ScalarExpr pop();
  /// Scalars that are used as an integer type, by name.
  const std::map<std::string, DType>& integer_scalars() const { return integer_scalars_; }

 private:
  std::size_t end_of(std::size_t value) const;
  void push(Value::Kind kind, DType dtype, ScalarStep step, bool weak);
  void retag(std::size_t value, DType dtype, Span where);
  void retag_constant(Constant& constant, DType dtype, Span where);
  void convert(std::size_t value, DType dtype);
  bool make_whole(std::size_t values, const std::string& message, const std::string& help, Span where);
  void round(DType dtype);
  bool check_exponent(std::size_t base, std::size_t exponent, Span where);
  bool unify(std::size_t a, std::size_t b, bool arithmetic, Span where);
  void make(std::size_t value, DType dtype, Span where);
  void emit(ScalarStep step, bool weak);
  void merge(std::size_t values, Value result);
  bool any_poison(std::size_t values);

  std::vector<Diagnostic>& errors_;
  ScalarExpr expr_;
  std::vector<bool> weak_;  // per step: its type is still open
  std::vector<Value> stack_;
  std::map<std::string, DType> integer_scalars_;
};

}  // namespace einrel
