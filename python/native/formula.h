#pragma once

#include <einrel/expression.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace einrel::python {

/// A function of the language over formulas: f(arguments), or sum[labels](arguments).
struct Function {
  std::string name;
  std::size_t arity;  ///< arguments
  bool has_labels;
  std::function<api::Expression(const api::Labels& labels, const std::vector<api::Expression>& arguments)> call;
};

/// All functions of the language, and its operators as "add", "less", ... Throws UserError for a name that is none.
const Function& function_named(const std::string& name);

/// The right side of a statement whose operands and labels have numbers instead of names. In postfix, so that no depth
/// of nesting can exhaust the stack. Python makes it of a formula of its own.
class Formula {
 public:
  /// A number; takes the type of what it meets.
  explicit Formula(std::int64_t value) : steps_{Whole{value}} {}
  explicit Formula(double value) : steps_{Number{value}} {}
  /// The value of a label; as an index of an element, the label itself.
  static Formula label(std::size_t label);
  /// One element of an operand, with one index per dimension.
  static Formula element(std::size_t operand, const std::vector<Formula>& indices);
  /// Throws UserError for another number of arguments than the function has.
  static Formula apply(const std::string& function, const std::vector<Formula>& arguments,
                       std::vector<std::size_t> labels);
  static Formula cast(api::DType dtype, const Formula& value);

  /// The formula of these operands, with names for labels.
  api::Expression of(const std::vector<api::Variable>& operands, const api::Labels& labels) const;

 private:
  struct Number {
    double value;
  };
  struct Whole {
    std::int64_t value;
  };
  struct LabelValue {
    std::size_t label;
  };
  struct Element {
    std::size_t operand;
    std::size_t rank;
  };
  struct Call {
    const Function* function;
    std::vector<std::size_t> labels;
  };
  struct Cast {
    api::DType dtype;
  };
  using Step = std::variant<Number, Whole, LabelValue, Element, Call, Cast>;
  struct Evaluation;

  Formula() = default;
  void append(const Formula& other);

  std::vector<Step> steps_;
};

}  // namespace einrel::python
