#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "einsum/front/build/program.h"

/// Formulas and programs put together by C++ instead of by the parser:
///   reduce(Reducer::sum, {"j"}, apply(BinaryFunction::multiply, element("A", {index("i"), index("j")}), b))
namespace einrel::build {

/// An operation on other formulas. A value: a copy is cheap and is the same formula, which may stand in several places.
class Formula {
 public:
  explicit Formula(Operation op, std::vector<Formula> arguments = {});

  const Operation& op() const { return data_->op; }
  const std::vector<Formula>& arguments() const { return data_->arguments; }
  /// Whether they are one, not whether they are alike.
  auto operator<=>(const Formula&) const = default;

 private:
  struct Data {
    Operation op;
    std::vector<Formula> arguments;
    Data(Operation own_op, std::vector<Formula> own_arguments)
        : op(std::move(own_op)), arguments(std::move(own_arguments)) {}
    /// Loops where a long sum would go down one call for each of its terms.
    ~Data();
    Data(const Data&) = delete;
    Data& operator=(const Data&) = delete;
  };
  std::shared_ptr<Data> data_;
};

/// The index that is a label.
Index index(const std::string& label);
/// Whether an index is nothing but a label.
bool is_plain(const Index& index);
/// The index that a sum of labels with whole coefficients and whole numbers is; nothing for other formulas.
std::optional<Index> index_of(const Formula& formula);

/// Of a float type: 2.0 in the language.
Formula number(double value);
/// That takes the type of what it meets: 2 in the language.
Formula whole_number(std::int64_t value);
/// A scalar, or a label's value.
Formula name(const std::string& name);
Formula element(const std::string& tensor, std::vector<Index> indices, std::optional<double> pad = std::nullopt);
/// Read with labels alone: X[i,j].
Formula element(const std::string& tensor, const std::vector<std::string>& labels);
Formula apply(UnaryFunction function, const Formula& x);
Formula apply(BinaryFunction function, const Formula& a, const Formula& b);
Formula where(const Formula& condition, const Formula& a, const Formula& b);
Formula cast(DType type, const Formula& x);
Formula reduce(Reducer reducer, const std::vector<std::string>& labels, const Formula& x);
/// uniform(seed), or of normal.
Formula random(RandomFunction function, const Formula& seed);
Formula call(OpaqueResult result, const std::vector<std::string>& matrix, const Formula& x);
/// Of a macro: softmax[j](x).
Formula call(const std::string& macro, const std::vector<std::string>& labels, std::vector<Formula> arguments);

/// Names that stand in no text.
std::vector<Name> names(const std::vector<std::string>& texts);

/// How many operations a formula is, where what stands in several places counts as often. O(parts).
double operations_of(const Formula& formula);

/// In postorder; what stands in several places is there as often. O(nodes of the result).
Expr expr_of(const Formula& formula);

/// The formula that an expression is, without its places in a text. O(nodes).
Formula formula_of(const Expr& expr);

/// Z[i,k] = value, or what else a statement says of a value.
struct Equation {
  enum class Kind : std::uint8_t { definition, state, next, until };
  std::string name;  ///< of the state whose next value it is
  std::vector<std::string> labels;
  Formula value;
  Kind kind = Kind::definition;
};

/// The program of these statements, in which a formula that stands in several places is computed once: it becomes a
/// tensor of its own in front of the first equation that needs it, unless it is as cheap to compute it again. O(nodes).
/// Throws UserError where copies that cannot be shared make more than ten million nodes: a tensor needs extents, and
/// labels that only index windows have none.
Program program_of(const std::vector<std::variant<Statement, Equation>>& statements);

}  // namespace einrel::build
