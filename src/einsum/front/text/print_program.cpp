#include "einsum/front/text/print_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <variant>
#include <vector>

#include "einsum/expr/precedence.h"

namespace einrel {
namespace {

Precedence precedence_of(const build::Node& node) {
  if (const auto* const binary = std::get_if<build::Binary>(&node.op)) return precedence_of(binary->function);
  if (const auto* const unary = std::get_if<build::Unary>(&node.op))
    return unary->function == UnaryFunction::negate ? Precedence::sign : Precedence::primary;
  if (const auto* const number = std::get_if<build::Number>(&node.op))
    return std::signbit(number->value) ? Precedence::sign : Precedence::primary;
  return std::holds_alternative<build::Reduce>(node.op) ? Precedence::reduction : Precedence::primary;
}

/// A number keeps its kind: one of a float type has a point, an exponent or a word.
std::string text_of(const build::Number& number) {
  if (number.integer) return std::to_string(*number.integer);
  std::string text = number_text(number.value);
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

class ProgramPrinter {
 public:
  std::string run(build::Program& program) {
    for (build::Statement& statement : program.statements) {
      statement.span.begin = text_.size();
      std::visit([&](auto& what) { print(what); }, statement.what);
      statement.span.end = text_.size();
      text_ += "\n";
    }
    return std::move(text_);
  }

 private:
  void print(build::Dims& dims) {
    text_ += "dims";
    for (build::Dim& dim : dims.dims) {
      text_ += " ";
      print(dim.label);
      text_ += fmt::format("={}", dim.extent);
    }
  }
  void print(build::Inputs& inputs) {
    text_ += "input ";
    list(inputs.inputs, ", ", [&](build::InputDecl& input) {
      print(input.name);
      labels(input.labels);
      text_ += fmt::format(" : {}", input.is_complex ? name_of_complex(input.dtype) : name_of(input.dtype));
    });
  }
  void print(build::Scalars& scalars) {
    text_ += "scalar ";
    list(scalars.scalars, ", ", [&](build::ScalarDecl& scalar) {
      print(scalar.name);
      if (scalar.value) text_ += " = " + text_of(*scalar.value);
    });
  }
  void print(build::MacroDef& macro) {
    text_ += "def ";
    print(macro.name);
    if (!macro.labels.empty()) labels(macro.labels);
    text_ += "(";
    list(macro.parameters, ", ", [&](build::Name& name) { print(name); });
    text_ += ") = ";
    print(macro.body);
  }
  void print(build::Definition& definition) {
    print(definition.name);
    labels(definition.labels);
    text_ += " = ";
    print(definition.value);
  }
  void print(build::State& state) {
    text_ += "state ";
    print(state.initial);
  }
  void print(build::Next& next) {
    text_ += "next ";
    print(next.value);
  }
  void print(build::Minimize& minimize) {
    text_ += "minimize ";
    print(minimize.loss);
    text_ += " over ";
    list(minimize.over, ", ", [&](build::Name& name) { print(name); });
    text_ += " by ";
    print(minimize.optimiser);
    text_ += "(";
    list(minimize.arguments, ", ", [&](build::Expr& argument) { print(argument); });
    text_ += ")";
  }
  void print(build::Until& until) {
    text_ += "until ";
    print(until.condition);
  }
  void print(build::ViewDefinition& view) {
    print(view.name);
    groups(view.to);
    text_ += " = view ";
    print(view.source);
    groups(view.from);
  }
  void print(build::Gradient& gradient) {
    text_ += "gradient ";
    list(gradient.results, ", ", [&](build::Name& name) { print(name); });
    text_ += " = ";
    print(gradient.loss);
    text_ += " wrt ";
    list(gradient.variables, ", ", [&](build::Name& name) { print(name); });
    if (!gradient.seed) return;
    text_ += " given ";
    print(*gradient.seed);
  }
  void print(build::Outputs& outputs) {
    text_ += "output ";
    list(outputs.names, ", ", [&](build::Name& name) { print(name); });
  }
  void print(build::Name& name) {
    name.span = {text_.size(), text_.size() + name.text.size()};
    text_ += name.text;
  }
  void print(build::Index& index) {
    index.span.begin = text_.size();
    for (build::IndexTerm& term : index.terms) {
      const bool is_first = text_.size() == index.span.begin;
      text_ += term.coefficient < 0 ? "-" : is_first ? "" : "+";
      if (std::abs(term.coefficient) != 1) text_ += fmt::format("{}*", std::abs(term.coefficient));
      print(term.label);
    }
    if (index.terms.empty()) text_ += std::to_string(index.offset);
    if (!index.terms.empty() && index.offset != 0) text_ += fmt::format("{:+}", index.offset);
    index.span.end = text_.size();
  }

  /// What is left to write of an expression: text, an index, or a subexpression in a place that asks for this much.
  struct Rest {
    std::variant<std::string, std::size_t, build::Index*> what;
    Precedence place = Precedence::comparison;
  };
  /// Where the subexpression that ends in a node ends in the text.
  struct End {
    std::size_t node;
  };

  void print(build::Expr& expr) {
    const std::vector<std::size_t> starts = subexpression_starts(expr);
    std::vector<std::variant<Rest, End>> rest{Rest{expr.nodes.size() - 1}};
    while (!rest.empty()) {
      const auto next = std::move(rest.back());
      rest.pop_back();
      if (const auto* const end = std::get_if<End>(&next)) {
        expr.nodes[end->node].span.end = text_.size();
        continue;
      }
      const auto& [what, place] = std::get<Rest>(next);
      if (const auto* const text = std::get_if<std::string>(&what)) {
        text_ += *text;
        continue;
      }
      if (auto* const* const index = std::get_if<build::Index*>(&what)) {
        print(**index);
        continue;
      }
      const std::size_t n = std::get<std::size_t>(what);
      build::Node& node = expr.nodes[n];
      const bool is_wrapped = precedence_of(node) < place;
      if (is_wrapped) text_ += "(";
      node.span.begin = text_.size();
      if (is_wrapped) rest.emplace_back(Rest{")"});
      rest.emplace_back(End{n});
      std::vector<std::size_t> arguments(arity(node));
      std::size_t last = n;
      for (auto argument = arguments.rbegin(); argument != arguments.rend(); ++argument) {
        *argument = last - 1;
        last = starts[*argument];
      }
      std::vector<Rest> parts = std::visit([&](auto& op) { return parts_of(op, arguments, expr); }, node.op);
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) rest.emplace_back(std::move(*part));
    }
  }

  using Arguments = std::vector<std::size_t>;
  std::vector<Rest> parts_of(const build::Number& number, const Arguments&, const build::Expr&) {
    text_ += text_of(number);
    return {};
  }
  std::vector<Rest> parts_of(const build::NameUse& use, const Arguments&, const build::Expr&) {
    text_ += use.name;
    return {};
  }
  std::vector<Rest> parts_of(build::Access& access, const Arguments& arguments, const build::Expr&) {
    if (access.pad) text_ += "pad(";
    print(access.tensor);
    std::vector<Rest> parts;
    std::size_t computed = 0;
    for (build::Index& index : access.indices) {
      parts.push_back({&index == &access.indices.front() ? "[" : ","});
      if (index.is_computed) {
        parts.push_back({arguments[computed++], Precedence::sum});
      } else {
        parts.push_back({&index});
      }
    }
    parts.push_back({access.indices.empty() ? "[]" : "]"});
    if (access.pad) parts.push_back({fmt::format(", {})", number_text(*access.pad))});
    return parts;
  }
  std::vector<Rest> parts_of(const build::Unary& unary, const Arguments& arguments, const build::Expr&) {
    if (unary.function != UnaryFunction::negate) return call(std::string(name_of(unary.function)), arguments);
    return {{"-"}, {arguments[0], Precedence::power}};
  }
  std::vector<Rest> parts_of(const build::Binary& binary, const Arguments& arguments, const build::Expr&) {
    const Precedence own = precedence_of(binary.function);
    const std::string sign = fmt::format(" {} ", name_of(binary.function));
    const auto infix = [&](Precedence left, Precedence right) {
      return std::vector<Rest>{{arguments[0], left}, {sign}, {arguments[1], right}};
    };
    switch (own) {
      case Precedence::comparison: return infix(Precedence::sum, Precedence::sum);
      case Precedence::sum: return infix(Precedence::sum, Precedence::product);
      case Precedence::product: return infix(Precedence::product, Precedence::power);
      case Precedence::power: return infix(Precedence::primary, Precedence::primary);
      default: return call(std::string(name_of(binary.function)), arguments);
    }
  }
  std::vector<Rest> parts_of(const build::Where&, const Arguments& arguments, const build::Expr&) {
    return call("where", arguments);
  }
  std::vector<Rest> parts_of(const build::ComplexCall& complex, const Arguments& arguments, const build::Expr&) {
    return call(std::string(name_of(complex.function)), arguments);
  }
  std::vector<Rest> parts_of(const build::Cast& cast, const Arguments& arguments, const build::Expr&) {
    return call(std::string(cast.is_complex ? name_of_complex(cast.type) : name_of(cast.type)), arguments);
  }
  /// A reduction takes the whole product behind it; a sign in front of that would be read as well, but is hard to see.
  std::vector<Rest> parts_of(build::Reduce& reduce, const Arguments& arguments, const build::Expr& expr) {
    text_ += name_of(reduce.reducer);
    labels(reduce.labels);
    text_ += " ";
    const bool is_product = precedence_of(expr.nodes[arguments[0]]) == Precedence::product;
    return {{arguments[0], is_product ? Precedence::product : Precedence::power}};
  }
  std::vector<Rest> parts_of(const build::Random& random, const Arguments& arguments, const build::Expr&) {
    const std::string name(name_of(random.function));
    if (!random.stream) return call(name, arguments);
    std::vector<Rest> parts = call(name + "_at", arguments);
    parts.back() = {fmt::format(", {})", *random.stream)};
    return parts;
  }
  std::vector<Rest> parts_of(const build::InRange& range, const Arguments& arguments, const build::Expr&) {
    std::vector<Rest> parts = call("in_range_at", arguments);
    parts.back() = {
        fmt::format(", {}[{}], {}[{}])", range.tensor, fmt::join(range.shape, ","), range.indexed, range.extent)};
    return parts;
  }
  std::vector<Rest> parts_of(build::OpaqueCall& opaque, const Arguments& arguments, const build::Expr&) {
    text_ += name_of(opaque.result);
    labels(opaque.matrix);
    return call("", arguments);
  }
  std::vector<Rest> parts_of(build::MacroCall& macro, const Arguments& arguments, const build::Expr&) {
    print(macro.macro);
    if (!macro.labels.empty()) labels(macro.labels);
    return call("", arguments);
  }
  static std::vector<Rest> call(const std::string& function, const Arguments& arguments) {
    std::vector<Rest> parts{{function + "("}};
    for (const std::size_t argument : arguments) {
      if (parts.size() > 1) parts.push_back({", "});
      parts.push_back({argument});
    }
    parts.push_back({")"});
    return parts;
  }

  template <class Items, class Print>
  void list(Items& items, const char* between, Print print_one) {
    bool is_first = true;
    for (auto& item : items) {
      if (!is_first) text_ += between;
      is_first = false;
      print_one(item);
    }
  }
  void labels(std::vector<build::Name>& names) {
    text_ += "[";
    list(names, ",", [&](build::Name& name) { print(name); });
    text_ += "]";
  }
  void groups(std::vector<build::Group>& all) {
    text_ += "[";
    list(all, ",", [&](build::Group& group) {
      if (group.empty()) text_ += "1";
      if (group.size() > 1) text_ += "(";
      list(group, " ", [&](build::Name& name) { print(name); });
      if (group.size() > 1) text_ += ")";
    });
    text_ += "]";
  }

  std::string text_;
};

}  // namespace

std::string print(build::Program& program) { return ProgramPrinter().run(program); }

}  // namespace einrel
