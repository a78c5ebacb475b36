/// @file
/// Programs written as C++ expressions: the language of docs/language.md, operator by operator.
///
///     const Label i("i", 300), j("j", 200), k("k", 100);
///     const Variable a = input("A", {i, j});
///     const Variable b = input("B", {j, k});
///     const Variable c = define("C", {i, k}, relu(sum({j}, a(i, j) * b(j, k))));
///     const Program program = Program::build({c});
///
/// An expression stands for a formula; nothing is computed before the program runs. It means what docs/language.md says
/// of the text that one would have written, which `Program::text` shows. Its mistakes are reported by Program::build,
/// with the line of that text that they are in. The functions here throw UserError for what could not be written: a
/// name that is none, NaN as a number, an index that is no formula of whole numbers.
///
/// An expression that is used twice is computed once, where that takes less than to compute it again.
///
/// All of these are values: copies are cheap and mean the same.
#pragma once

#include <einrel/tensor.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace einrel::api {

/// An index name. Labels of one name are one label, so a program gives a name one extent.
class Label {
 public:
  /// Without an extent it is taken from what the label indexes, or from the data. `name` is an identifier that is no
  /// word of the language. Throws UserError for another, and for a negative extent.
  explicit Label(std::string name, std::optional<std::int64_t> extent = std::nullopt);

  /// As given.
  const std::string& name() const { return name_; }
  /// As given.
  std::optional<std::int64_t> extent() const { return extent_; }

 private:
  std::string name_;
  std::optional<std::int64_t> extent_;
};

/// Labels in order, as in {i, j}.
using Labels = std::vector<Label>;

/// A formula: what stands on the right side of a definition, or part of it. Numbers and labels are formulas, too; a
/// label's value is its index, 0, 1, 2, ...
class Expression {
 public:
  /// A whole number. It takes the type of what it meets.
  template <std::integral T>
  requires(!std::same_as<T, bool>)
      Expression(T value)  // NOLINT(google-explicit-constructor): `2 * a(i)` is meant to be written
      : Expression(of_integer(whole(value))) {}
  /// A number, infinity included. It takes the float type of what it meets; alone it is f32. Throws UserError for NaN.
  Expression(double value);  // NOLINT(google-explicit-constructor)
  /// The value of a label: `where(t <= s, x(s, t), 0)`. As an index of a variable, the label itself.
  Expression(const Label& label);  // NOLINT(google-explicit-constructor)
  /// The same formula.
  Expression(const Expression&) = default;
  /// The same formula.
  Expression& operator=(const Expression&) = default;

 private:
  friend struct ExpressionAccess;
  struct Data;
  explicit Expression(std::shared_ptr<const Data> data);
  static Expression of_integer(std::int64_t value);
  template <class T>
  static std::int64_t whole(T value) {
    if (!std::in_range<std::int64_t>(value)) too_large();
    return static_cast<std::int64_t>(value);
  }
  [[noreturn]] static void too_large();

  std::shared_ptr<const Data> data_;
};

/// A named tensor of a program: an input, or one that is defined by a formula.
class Variable {
 public:
  /// The same variable.
  Variable(const Variable&) = default;
  /// The same variable.
  Variable& operator=(const Variable&) = default;

  /// Its name.
  const std::string& name() const;

  /// One element of it, with one index per dimension: a label, a number, a sum of labels with whole coefficients and a
  /// number, as in `x(n, 2 * y + dy - 1)`, or a whole number made of elements of other variables, as in `e(t(s), d)`.
  template <std::convertible_to<Expression>... Index>
  Expression operator()(const Index&... indices) const {
    return element({Expression(indices)...});
  }
  /// The same, of as many indices as there are in the vector.
  Expression element(const std::vector<Expression>& indices) const;

 private:
  friend class Expression;
  friend struct ExpressionAccess;
  struct Statement;
  explicit Variable(std::shared_ptr<Statement> statement);

  std::shared_ptr<Statement> statement_;
};

/// A tensor from outside. `name` and labels as in `input A[i,j] : f32`. Throws UserError for a name that is none.
Variable input(const std::string& name, const Labels& labels, DType dtype = DType::f32);
/// A number from outside, bound by RunOptions::scalars without planning again; with `value`, it may be left out there.
Expression scalar(const std::string& name, std::optional<double> value = std::nullopt);
/// `C[i,k] = value`, for every i and k.
Variable define(const std::string& name, const Labels& labels, const Expression& value);

/// One dimension of a view: a label, or several as in {h, d}, the first one slowest; {} is a dimension of extent 1.
class LabelGroup {
 public:
  /// A dimension of one label.
  LabelGroup(const Label& label) : labels_{label} {}  // NOLINT(google-explicit-constructor): {b, s, {h, d}}
  /// A dimension that several labels make up.
  LabelGroup(std::initializer_list<Label> labels) : labels_(labels) {}
  /// The same.
  explicit LabelGroup(Labels labels) : labels_(std::move(labels)) {}

  /// In order.
  const Labels& labels() const { return labels_; }

 private:
  Labels labels_;
};

/// The same elements under other dimensions: `view("H", {b, s, h, d}, x, {b, s, {h, d}})` is
/// `H[b,s,h,d] = view X[b,s,(h d)]`. Every label stands once on each side; one extent of a group may be left open.
Variable view(const std::string& name, const std::vector<LabelGroup>& to, const Variable& source,
              const std::vector<LabelGroup>& from);

/// A variable that an einsum takes, with what is known of it.
struct EinsumOperand {
  Variable variable;  ///< to read
  DType dtype;        ///< of its elements
  Shape shape;        ///< in full
};

/// The einsum of program.h as a part of a program: `C[i,k] = sum[j] A[i,j] * B[j,k]` is
/// `einsum("C", "ij,jk->ik", {{a, DType::f32, {2, 3}}, {b, DType::f32, {3, 4}}})`, with a join and a reduction as
/// there. Its labels are the letters of the subscripts, and e0, e1, ... for "...". Throws UserError that points into
/// the subscripts or the join.
Variable einsum(const std::string& name, std::string_view subscripts, const std::vector<EinsumOperand>& operands,
                const std::optional<std::string>& join = std::nullopt,
                const std::optional<std::string>& reduce = std::nullopt);

/// How `of` changes with each element of each of `by`: `gradient NAMES = of wrt BY`. They have the labels and the types
/// of `by`, and are variables like others. `of` is one number; or of any shape, and `given` of the same shape is what
/// flows back into it. Gradients of one number are best taken at once: what they share is computed once. Throws
/// UserError unless there is one name for each of `by`; Program::build says what cannot be differentiated.
std::vector<Variable> gradient(const std::vector<std::string>& names, const Variable& of,
                               const std::vector<Variable>& by, const std::optional<Variable>& given = std::nullopt);

/// A tensor that goes on from step to step, and its value before the first one: `state NAME[labels] = value`. Read, it
/// is the value before the step. Programs with state run in steps (Steps, RunOptions::steps).
Variable state(const std::string& name, const Labels& labels, const Expression& value);
/// The value of a state in the next step, `next NAME[labels] = value`: a variable `next_NAME`. It has the shape and the
/// type of the state.
Variable next(const Variable& state, const Labels& labels, const Expression& value);
/// How many steps were done before this one, in a program with state: it takes the type of what it meets.
Expression iteration();

/// A way to make a number small, as in `minimize loss over W by adam(0.001)`; formulas and defaults are PyTorch's.
struct Optimiser {
  std::string name;                   ///< in the language
  std::vector<Expression> arguments;  ///< numbers and scalars, in order
};
/// @name Optimisers
/// `eta` is the rate: a number, a scalar, or what is computed of those and of iteration().
/// @{
Optimiser sgd(const Expression& eta);                                   ///< W - eta G
Optimiser momentum(const Expression& eta, const Expression& mu = 0.9);  ///< W - eta V, V = mu V + G
Optimiser nesterov(const Expression& eta, const Expression& mu = 0.9);  ///< W - eta (G + mu V)
/// Steps as long as eta, about, whatever the size of gradients.
Optimiser adam(const Expression& eta, const Expression& b1 = 0.9, const Expression& b2 = 0.999,
               const Expression& eps = 1e-8);
/// The same, of weights that decay by themselves.
Optimiser adamw(const Expression& eta, const Expression& decay = 0.01, const Expression& b1 = 0.9,
                const Expression& b2 = 0.999, const Expression& eps = 1e-8);
/// @}

/// `minimize loss over STATES by OPTIMISER`.
struct Minimize {
  Variable loss;               ///< one number
  std::vector<Variable> over;  ///< states
  Optimiser by;                ///< how
};

/// What makes a program a step of many.
struct Steps {
  std::vector<Minimize> minimize = {};   ///< what changes states, too
  std::vector<Variable> next = {};       ///< next values of states
  std::optional<Expression> until = {};  ///< a condition: the last step is the first after which it holds
};

/// @name Arithmetic
/// Division of integers is an error: cast first.
/// @{
Expression operator+(const Expression& a, const Expression& b);  ///< a + b
Expression operator-(const Expression& a, const Expression& b);  ///< a - b
Expression operator*(const Expression& a, const Expression& b);  ///< a * b
Expression operator/(const Expression& a, const Expression& b);  ///< a / b
Expression operator-(const Expression& a);                       ///< -a
Expression pow(const Expression& a, const Expression& b);        ///< a ** b
/// @}

/// @name Comparisons
/// They give bool, which counts as 0 and 1.
/// @{
Expression operator<(const Expression& a, const Expression& b);   ///< a < b
Expression operator<=(const Expression& a, const Expression& b);  ///< a <= b
Expression operator>(const Expression& a, const Expression& b);   ///< a > b
Expression operator>=(const Expression& a, const Expression& b);  ///< a >= b
Expression operator==(const Expression& a, const Expression& b);  ///< a == b
Expression operator!=(const Expression& a, const Expression& b);  ///< a != b
/// @}

/// The functions of expressions. einrel.h brings all of them into `einrel`.
inline namespace functions {

/// @name Functions of one value
/// @{
Expression abs(const Expression& x);            ///< the absolute value
Expression exp(const Expression& x);            ///< e to the x
Expression log(const Expression& x);            ///< the natural logarithm
Expression log1p(const Expression& x);          ///< log(1 + x), exact near 0
Expression expm1(const Expression& x);          ///< exp(x) - 1, exact near 0
Expression sqrt(const Expression& x);           ///< the square root
Expression rsqrt(const Expression& x);          ///< 1 / sqrt(x)
Expression sq(const Expression& x);             ///< x * x
Expression tanh(const Expression& x);           ///< the hyperbolic tangent
Expression sigmoid(const Expression& x);        ///< 1 / (1 + exp(-x))
Expression relu(const Expression& x);           ///< the larger of x and 0
Expression step(const Expression& x);           ///< 1 where x > 0, else 0
Expression gelu(const Expression& x);           ///< x times the share of a normal distribution below x
Expression silu(const Expression& x);           ///< x * sigmoid(x)
Expression erf(const Expression& x);            ///< the error function
Expression erfc(const Expression& x);           ///< 1 - erf(x), exact for large x
Expression sin(const Expression& x);            ///< the sine
Expression cos(const Expression& x);            ///< the cosine
Expression floor(const Expression& x);          ///< the largest whole number up to x
Expression stop_gradient(const Expression& x);  ///< x, which gradients take for a constant
/// A random number from 0 up to, but not including, 1: of the seed, a whole number, of the variable's name, and of the
/// element's position. The same in every run, however it is computed. In no reduction.
Expression uniform(const Expression& seed);
/// A random number of mean 0 and deviation 1, of the same.
Expression normal(const Expression& seed);
/// Another type: towards zero and saturating from floats to integers; NaN becomes 0.
Expression cast(DType dtype, const Expression& x);
/// @}

/// @name Functions of several values
/// The larger and the smaller of two values are named as in NumPy; `max` and `min` reduce.
/// @{
Expression maximum(const Expression& a, const Expression& b);  ///< the larger one; NaN if either is
Expression minimum(const Expression& a, const Expression& b);  ///< the smaller one; NaN if either is
/// a where the condition holds, else b.
Expression where(const Expression& condition, const Expression& a, const Expression& b);
/// An element of a variable, and the number `value` where its indices lie outside: `pad(x(y + dy - 1), 0)`. Without,
/// such an index is an error.
Expression pad(const Expression& element, const Expression& value);
/// @}

/// @name Complex numbers
/// Of variables of type c64 and c128, and of what is computed of them with + - * / == != sum mean abs exp sq where.
/// @{
Expression complex(const Expression& re, const Expression& im);  ///< re + im i, of two real formulas
Expression conj(const Expression& z);                            ///< the complex conjugate
Expression real(const Expression& z);                            ///< the real part
Expression imag(const Expression& z);                            ///< the imaginary part
/// @}

/// @name Reductions
/// Over all values of some labels. Every label of a formula that the variable being defined has not got must be
/// reduced.
/// @{
Expression sum(const Labels& over, const Expression& x);    ///< of nothing 0
Expression sumsq(const Labels& over, const Expression& x);  ///< of the squares; of nothing 0
Expression prod(const Labels& over, const Expression& x);   ///< of nothing 1
Expression max(const Labels& over, const Expression& x);    ///< NaN if any is
Expression min(const Labels& over, const Expression& x);    ///< NaN if any is
Expression mean(const Labels& over, const Expression& x);   ///< of integers f64
Expression any(const Labels& over, const Expression& x);    ///< whether one is not 0
Expression all(const Labels& over, const Expression& x);    ///< whether none is 0
/// The position of the largest, the first among equals, in row-major order of the labels: i64.
Expression argmax(const Labels& over, const Expression& x);
/// The position of the smallest, the first among equals, in row-major order of the labels: i64.
Expression argmin(const Labels& over, const Expression& x);
/// log(sum({...}, exp(x))), without overflow.
Expression logsumexp(const Labels& over, const Expression& x);
/// @}

/// @name Linear algebra
/// Of whole matrices: `matrix` are the labels of their rows and columns, and of `qr_q` and `qr_r` the one between the
/// factors; all others are batches, as in `inverse({i, j}, a(b, i, j))`. They throw UserError for more or fewer labels.
/// @{
Expression inverse(const Labels& matrix, const Expression& x);  ///< a run throws UserError for a matrix that has none
/// At {i, k} of `qr_q({i, j, k}, a(i, j))`: Q of A = Q R, whose columns are orthonormal. k is as long as the shorter of
/// i and j. Both factors of one matrix are computed at once.
Expression qr_q(const Labels& matrix, const Expression& x);
/// At {k, j} of `qr_r({i, j, k}, a(i, j))`: R of A = Q R, which is upper triangular. Signs are LAPACK's.
Expression qr_r(const Labels& matrix, const Expression& x);
/// @}

/// @name Macros of the language
/// The labels stay: `softmax({j}, a(i, j))` has a value for every i and j. Of one's own, write functions.
/// @{
Expression softmax(const Labels& over, const Expression& x);     ///< exp(x) / sum exp(x), without overflow
Expression logsoftmax(const Labels& over, const Expression& x);  ///< its logarithm
Expression norm(const Labels& over, const Expression& x);        ///< sqrt(sum sq(x)); reduces the labels
Expression variance(const Labels& over, const Expression& x);    ///< mean of sq(x - mean x); reduces the labels
/// (x - mean x) / sqrt(variance x + eps)
Expression layernorm(const Labels& over, const Expression& x, const Expression& eps);
/// x / sqrt(mean sq(x) + eps)
Expression rmsnorm(const Labels& over, const Expression& x, const Expression& eps);
/// @}

}  // namespace functions

/// A function of one value and its name in the language, for bindings to other languages.
struct NamedFunction {
  std::string name;                         ///< such as "exp"
  Expression (*call)(const Expression& x);  ///< that function
};
/// A reduction and its name in the language.
struct NamedReduction {
  std::string name;                                             ///< such as "sum"
  Expression (*call)(const Labels& over, const Expression& x);  ///< that reduction
};
std::vector<NamedFunction> named_functions();    ///< all functions of one value
std::vector<NamedReduction> named_reductions();  ///< all reductions

}  // namespace einrel::api
