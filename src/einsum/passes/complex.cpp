#include "einsum/passes/complex.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/error.h"
#include "einsum/front/build/formula.h"
#include "einsum/front/build/formula_type.h"
#include "einsum/front/build/substitute.h"

namespace einrel {
namespace {

using build::Formula;

const std::string parts = parts_label(0);

/// Of a formula over the label of the parts, one of them.
Formula part_of(const Formula& by_part, std::int64_t part) {
  build::Index index;
  index.offset = part;
  return with_labels(by_part, {{parts, index}});
}

Formula sum(const Formula& a, const Formula& b) { return apply(BinaryFunction::add, a, b); }
Formula difference(const Formula& a, const Formula& b) { return apply(BinaryFunction::subtract, a, b); }
Formula product(const Formula& a, const Formula& b) { return apply(BinaryFunction::multiply, a, b); }
Formula quotient(const Formula& a, const Formula& b) { return apply(BinaryFunction::divide, a, b); }

/// A subexpression: a real formula, or a complex one as its two parts, or as one formula over the label of the parts,
/// which reads and computes both at once. Each is made of the other when it is wanted.
class Value {
 public:
  explicit Value(Formula real) { forms_->re = std::move(real); }
  static Value of_parts(Formula re, Formula im) {
    Value value(std::move(re));
    value.forms_->im = std::move(im);
    value.is_complex_ = true;
    return value;
  }
  static Value by(Formula by_part) {
    Value value;
    value.forms_->by_part = std::move(by_part);
    value.is_complex_ = true;
    value.is_by_part_ = true;
    return value;
  }

  bool is_complex() const { return is_complex_; }
  /// Whether it was made as one formula.
  bool is_by_part() const { return is_by_part_; }
  const Formula& re() const {
    if (!forms_->re) forms_->re = part_of(*forms_->by_part, 0);
    return *forms_->re;
  }
  /// Of what is real 0.
  const Formula& im() const {
    if (!forms_->im) forms_->im = is_complex_ ? part_of(*forms_->by_part, 1) : build::number(0);
    return *forms_->im;
  }
  const Formula& by_part() const {
    if (!forms_->by_part) {
      const Formula is_real = apply(BinaryFunction::equal, build::name(parts), build::whole_number(0));
      forms_->by_part = build::where(is_real, re(), im());
    }
    return *forms_->by_part;
  }

  /// The same part of its conjugate.
  Value conjugate() const {
    if (!is_complex_) return *this;
    Value value = conjugate_of_ ? *conjugate_of_ : of_parts(re(), apply(UnaryFunction::negate, im()));
    value.conjugate_of_ = conjugate_of_ ? nullptr : std::make_shared<Value>(*this);
    return value;
  }
  /// Of which it is the conjugate, if it was made so.
  const Value* conjugate_of() const { return conjugate_of_.get(); }

  /// That it is the product of; none if it is no product.
  std::span<const Value> factors() const {
    return factors_ == nullptr ? std::span<const Value>{} : std::span<const Value>(*factors_);
  }
  void be_product_of(const Value& a, const Value& b) {
    auto factors = std::make_shared<std::vector<Value>>();
    for (const Value* const factor : {&a, &b}) {
      const std::span<const Value> own = factor->factors();
      if (own.empty()) factors->push_back(*factor);
      factors->insert(factors->end(), own.begin(), own.end());
    }
    factors_ = std::move(factors);
  }

 private:
  Value() = default;
  struct Forms {
    std::optional<Formula> re;
    std::optional<Formula> im;
    std::optional<Formula> by_part;
  };
  std::shared_ptr<Forms> forms_ = std::make_shared<Forms>();
  std::shared_ptr<const Value> conjugate_of_;
  std::shared_ptr<const std::vector<Value>> factors_;
  bool is_complex_ = false;
  bool is_by_part_ = false;
};

Value times(const Value& a, const Value& b) {
  Value result = [&] {
    if (!a.is_complex() && !b.is_complex()) return Value(product(a.re(), b.re()));
    if (a.is_complex() && b.is_complex()) {
      return Value::of_parts(difference(product(a.re(), b.re()), product(a.im(), b.im())),
                             sum(product(a.re(), b.im()), product(a.im(), b.re())));
    }
    const Value& complex = a.is_complex() ? a : b;
    const Formula& real = a.is_complex() ? b.re() : a.re();
    if (complex.is_by_part()) return Value::by(product(complex.by_part(), real));
    return Value::of_parts(product(complex.re(), real), product(complex.im(), real));
  }();
  result.be_product_of(a, b);
  return result;
}

/// What is the same for both parts: f(re), f(im).
template <class Function>
Value on_parts(const std::vector<Value>& values, const Function& function) {
  const bool is_real =
      std::none_of(values.begin(), values.end(), [](const Value& value) { return value.is_complex(); });
  const bool are_by_part =
      std::all_of(values.begin(), values.end(), [](const Value& value) { return value.is_by_part(); });
  const auto of_each = [&](const Formula& (Value::*form)() const) {
    std::vector<Formula> formulas;
    for (const Value& value : values) formulas.push_back((value.*form)());
    return function(formulas);
  };
  if (is_real) return Value(of_each(&Value::re));
  if (are_by_part) return Value::by(of_each(&Value::by_part));
  return Value::of_parts(of_each(&Value::re), of_each(&Value::im));
}

class Pass {
 public:
  Pass(const build::Definition& definition, const ReadTensors& tensors, const ComplexConstants& constants,
       std::vector<Diagnostic>& errors)
      : definition_(definition),
        tensors_(tensors),
        constants_(constants),
        errors_(errors),
        types_([&](const std::string& name) {
          const std::optional<ReadTensor> tensor = tensors(name);
          return tensor ? tensor->dtype : DType::f32;
        }) {}

  std::optional<RealDefinitions> run() {
    for (const build::Node& node : definition_.value.nodes) {
      node_ = &node;
      const std::size_t count = build::arity(node);
      std::vector<Value> arguments(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
      stack_.erase(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
      std::optional<Value> value = std::visit([&](const auto& op) { return this->value_of(op, arguments); }, node.op);
      if (!value) return std::nullopt;
      stack_.push_back(*std::move(value));
    }
    return definitions(stack_.back());
  }

 private:
  using Values = std::vector<Value>;
  using MaybeValue = std::optional<Value>;

  MaybeValue refuse(std::string_view what, std::string help) {
    errors_.push_back({fmt::format("{} of complex numbers", what), {node_->span}, std::move(help)});
    return std::nullopt;
  }
  static bool has_complex_value(const Values& values) {
    return std::any_of(values.begin(), values.end(), [](const Value& value) { return value.is_complex(); });
  }
  static std::vector<Formula> real_parts(const Values& values) {
    std::vector<Formula> formulas;
    for (const Value& value : values) formulas.push_back(value.re());
    return formulas;
  }
  /// The same operation, of real arguments.
  template <class Op>
  MaybeValue real(const Op& op, const Values& arguments, std::string_view what) {
    if (!has_complex_value(arguments)) return Value(Formula(op, real_parts(arguments)));
    return refuse(what, "take real(x), imag(x) or abs(x) first");
  }

  MaybeValue value_of(const build::Number& number, const Values&) { return Value(Formula(number)); }
  MaybeValue value_of(const build::NameUse& use, const Values&) { return Value(Formula(use)); }

  MaybeValue value_of(const build::Access& access, const Values& arguments) {
    if (has_complex_value(arguments)) return refuse("there is no index", "an index is a whole number");
    const std::optional<ReadTensor> tensor = tensors_(access.tensor.text);
    if (!tensor || !tensor->is_complex) return Value(Formula(access, real_parts(arguments)));
    if (access.indices.size() != tensor->rank) {
      errors_.push_back(
          {fmt::format("'{}' has {} dimension{} but is read with {} ind{}", access.tensor.text, tensor->rank,
                       tensor->rank == 1 ? "" : "s", access.indices.size(), access.indices.size() == 1 ? "ex" : "ices"),
           {node_->span},
           "give one index per dimension"});
      return std::nullopt;
    }
    const auto read = [&](const build::Index& part, std::optional<double> pad) {
      build::Access with_part = access;
      with_part.indices.push_back(part);
      with_part.pad = pad;
      return Formula(with_part, real_parts(arguments));
    };
    if (access.pad.value_or(0) == 0) return Value::by(read(build::index(parts), access.pad));
    build::Index imaginary;
    imaginary.offset = 1;
    return Value::of_parts(read({}, access.pad), read(imaginary, 0));
  }

  MaybeValue value_of(const build::Unary& unary, const Values& arguments) {
    const Value& x = arguments[0];
    if (!x.is_complex()) return Value(apply(unary.function, x.re()));
    switch (unary.function) {
      case UnaryFunction::negate:
      case UnaryFunction::stop_gradient:
        return on_parts(arguments, [&](const std::vector<Formula>& part) { return apply(unary.function, part[0]); });
      case UnaryFunction::sq: return times(x, x);
      case UnaryFunction::abs: return Value(apply(UnaryFunction::sqrt, square_of(x)));
      case UnaryFunction::exp: {
        const Formula size = apply(UnaryFunction::exp, x.re());
        return Value::of_parts(product(size, apply(UnaryFunction::cos, x.im())),
                               product(size, apply(UnaryFunction::sin, x.im())));
      }
      default:
        return refuse(fmt::format("there is no {}", name_of(unary.function)), "take real(x), imag(x) or abs(x) first");
    }
  }

  static Formula square_of(const Value& x) {
    return sum(apply(UnaryFunction::sq, x.re()), apply(UnaryFunction::sq, x.im()));
  }

  MaybeValue value_of(const build::Binary& binary, const Values& arguments) {
    const Value& a = arguments[0];
    const Value& b = arguments[1];
    if (!has_complex_value(arguments) && binary.function != BinaryFunction::multiply)
      return Value(apply(binary.function, a.re(), b.re()));
    switch (binary.function) {
      case BinaryFunction::add:
      case BinaryFunction::subtract: return sum_or_difference(binary.function, a, b);
      case BinaryFunction::multiply: return times(a, b);
      case BinaryFunction::divide: return ratio(a, b);
      case BinaryFunction::equal:
      case BinaryFunction::not_equal: {
        const auto both = binary.function == BinaryFunction::equal ? BinaryFunction::minimum : BinaryFunction::maximum;
        return Value(apply(both, apply(binary.function, a.re(), b.re()), apply(binary.function, a.im(), b.im())));
      }
      case BinaryFunction::power: return refuse("there is no power", "write it as a product: Z[i] * Z[i]");
      default: return refuse(fmt::format("'{}' has no meaning", name_of(binary.function)), "compare abs(x) or real(x)");
    }
  }

  static Value sum_or_difference(BinaryFunction function, const Value& a, const Value& b) {
    const Formula re = apply(function, a.re(), b.re());
    if (!b.is_complex()) return Value::of_parts(re, a.im());
    if (!a.is_complex()) {
      const bool is_negative = function == BinaryFunction::subtract;
      return Value::of_parts(re, is_negative ? apply(UnaryFunction::negate, b.im()) : b.im());
    }
    return on_parts({a, b}, [&](const std::vector<Formula>& part) { return apply(function, part[0], part[1]); });
  }

  Value ratio(const Value& a, const Value& b) {
    if (!b.is_complex()) {
      return on_parts({a}, [&](const std::vector<Formula>& part) { return quotient(part[0], b.re()); });
    }
    const Formula size = square_of(b);
    return Value::of_parts(quotient(sum(product(a.re(), b.re()), product(a.im(), b.im())), size),
                           quotient(difference(product(a.im(), b.re()), product(a.re(), b.im())), size));
  }

  MaybeValue value_of(const build::Where&, const Values& arguments) {
    if (arguments[0].is_complex()) return refuse("there is no condition", "compare them: Z[i] == 0");
    const Formula& condition = arguments[0].re();
    return on_parts({arguments[1], arguments[2]},
                    [&](const std::vector<Formula>& part) { return build::where(condition, part[0], part[1]); });
  }

  MaybeValue value_of(const build::Cast& cast, const Values& arguments) {
    const Value& x = arguments[0];
    const auto to_type = [&](const std::vector<Formula>& part) { return build::cast(cast.type, part[0]); };
    if (!cast.is_complex && x.is_complex())
      return refuse(fmt::format("there is no {}", name_of(cast.type)), "take real(x), imag(x) or abs(x)");
    if (!cast.is_complex || x.is_complex()) return on_parts(arguments, to_type);
    return Value::of_parts(build::cast(cast.type, x.re()), build::cast(cast.type, build::number(0)));
  }

  MaybeValue value_of(const build::ComplexCall& call, const Values& arguments) {
    const Value& x = arguments[0];
    switch (call.function) {
      case ComplexFunction::complex:
        if (has_complex_value(arguments)) return refuse("there is no complex number", "both parts are real");
        return Value::of_parts(floating(x.re()), floating(arguments[1].re()));
      case ComplexFunction::real: return Value(x.re());
      case ComplexFunction::imag:
        if (x.is_complex()) return Value(x.im());
        errors_.push_back({"imag of real numbers is 0", {node_->span}, "it is taken of complex numbers: imag(Z[i])"});
        return std::nullopt;
      case ComplexFunction::conj: return x.conjugate();
    }
    throw Bug("a function of complex numbers outside its enumeration");
  }

  /// Parts are of a float type.
  Formula floating(const Formula& x) {
    const std::optional<DType> type = types_(x);
    if (!type) return product(build::number(1), x);
    return is_float(*type) ? x : build::cast(DType::f64, x);
  }

  MaybeValue value_of(const build::Reduce& reduce, const Values& arguments) {
    const Value& x = arguments[0];
    const auto reduced = [&](const std::vector<Formula>& part) { return Formula(reduce, {part[0]}); };
    if (!x.is_complex()) return Value(reduced({x.re()}));
    if (reduce.reducer != Reducer::sum && reduce.reducer != Reducer::mean)
      return refuse(fmt::format("there is no {}", name_of(reduce.reducer)), "take real(x), imag(x) or abs(x) first");
    const auto complex_factors =
        std::count_if(x.factors().begin(), x.factors().end(), [](const Value& factor) { return factor.is_complex(); });
    if (reduce.reducer == Reducer::sum && complex_factors > 1) return contraction(reduce, x.factors());
    return Value::by(Formula(reduce, {x.by_part()}));
  }

  /// sum[j] A[i,j] * B[j,k] = sum[j,a,b] A[i,j,a] * B[j,k,b] * P[a,b,c]
  Value contraction(const build::Reduce& reduce, std::span<const Value> factors) {
    std::optional<Formula> all;
    const auto multiply = [&](const Formula& factor) { all = all ? product(*all, factor) : factor; };
    build::Reduce contracted = reduce;
    std::optional<std::string> before;  // the part of the product of the complex factors so far
    std::size_t left = static_cast<std::size_t>(
        std::count_if(factors.begin(), factors.end(), [](const Value& factor) { return factor.is_complex(); }));
    std::vector<Formula> units;
    for (const Value& factor : factors) {
      if (!factor.is_complex()) {
        multiply(factor.re());
        continue;
      }
      --left;
      const std::string own = reduced_parts(contracted);
      const Value* const conjugated = factor.conjugate_of();
      multiply(with_labels((conjugated != nullptr ? *conjugated : factor).by_part(), {{parts, build::index(own)}}));
      if (conjugated != nullptr) units.push_back(build::element(constants_.signs, {own}));
      if (before) {
        const std::string both = left == 0 ? parts : reduced_parts(contracted);
        units.push_back(build::element(constants_.product, {*before, own, both}));
        before = both;
      } else {
        before = own;
      }
    }
    for (const Formula& unit : units) multiply(unit);
    return Value::by(Formula(contracted, {*all}));
  }

  std::string reduced_parts(build::Reduce& reduce) {
    std::string label = parts_label(labels_++);
    reduce.labels.push_back({label, node_->span});
    return label;
  }

  MaybeValue value_of(const build::Random& random, const Values& arguments) {
    return real(random, arguments, "there is no seed");
  }
  MaybeValue value_of(const build::InRange& range, const Values& arguments) {
    return real(range, arguments, "there is no position");
  }
  MaybeValue value_of(const build::OpaqueCall& call, const Values& arguments) {
    return real(call, arguments, fmt::format("there is no {}", name_of(call.result)));
  }
  MaybeValue value_of(const build::MacroCall&, const Values&) { throw Bug("macros have been expanded"); }

  RealDefinitions definitions(const Value& value) {
    RealDefinitions result;
    result.is_complex = value.is_complex();
    result.labels = labels_;
    build::Equation equation{definition_.name.text, {}, result.is_complex ? value.by_part() : value.re()};
    for (const build::Name& label : definition_.labels) equation.labels.push_back(label.text);
    if (result.is_complex) equation.labels.push_back(parts);
    build::Dims dims;
    for (std::size_t l = 0; l < labels_; ++l) dims.dims.push_back({{parts_label(l), {}}, 2});
    const build::Program program = build::program_of({build::Statement{{}, dims}, equation});
    for (const build::Statement& statement : program.statements) {
      const auto* const made = std::get_if<build::Definition>(&statement.what);
      if (made != nullptr) result.before.push_back(*made);
    }
    for (build::Definition& made : result.before) {
      for (build::Node& node : made.value.nodes) node.span = definition_.value.nodes.back().span;
    }
    result.definition = std::move(result.before.back());
    result.before.pop_back();
    result.definition.name = definition_.name;
    std::copy(definition_.labels.begin(), definition_.labels.end(), result.definition.labels.begin());
    return result;
  }

  const build::Definition& definition_;
  const ReadTensors& tensors_;
  const ComplexConstants& constants_;
  std::vector<Diagnostic>& errors_;
  build::FormulaTypes types_;
  std::vector<Value> stack_;
  const build::Node* node_ = nullptr;
  std::size_t labels_ = 1;
};

}  // namespace

std::string parts_label(std::size_t number) { return fmt::format("parts''{}", number); }

bool is_parts_label(const std::string& label) { return label.find("''") != std::string::npos; }

bool has_complex(const build::Expr& expr) {
  return std::any_of(expr.nodes.begin(), expr.nodes.end(), [](const build::Node& node) {
    const auto* const cast = std::get_if<build::Cast>(&node.op);
    return std::holds_alternative<build::ComplexCall>(node.op) || (cast != nullptr && cast->is_complex);
  });
}

std::optional<RealDefinitions> without_complex(const build::Definition& definition, const ReadTensors& tensors,
                                               const ComplexConstants& constants, std::vector<Diagnostic>& errors) {
  return Pass(definition, tensors, constants, errors).run();
}

std::vector<build::Definition> definitions_of(const ComplexConstants& constants) {
  const std::vector<std::string> labels{parts_label(1), parts_label(2), parts_label(0)};
  const auto label = [&](std::size_t l) { return build::name(labels[l]); };
  const auto one_where = [](const Formula& a, const Formula& b) {
    return build::cast(DType::f32, apply(BinaryFunction::equal, a, b));
  };
  const Formula both = sum(label(0), label(1));
  const Formula product = difference(one_where(both, label(2)), one_where(both, sum(label(2), build::whole_number(2))));
  const Formula sign =
      difference(one_where(label(0), build::whole_number(0)), one_where(label(0), build::whole_number(1)));
  return {{{constants.product, {}}, build::names(labels), build::expr_of(product)},
          {{constants.signs, {}}, build::names({labels[0]}), build::expr_of(sign)}};
}

}  // namespace einrel
