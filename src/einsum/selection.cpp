#include "einsum/selection.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/error.h"

namespace einrel {
namespace {

constexpr std::size_t most_steps = 256;

std::int64_t times(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// Adds factor * coefficient to the term that `is_same` finds, or makes it.
template <class Term, class IsSame>
void add_term(std::vector<Term>& terms, Term term, std::int64_t factor, const IsSame& is_same) {
  const auto known = std::find_if(terms.begin(), terms.end(), is_same);
  term.coefficient = times(factor, term.coefficient);
  if (known == terms.end()) {
    terms.push_back(term);
  } else {
    known->coefficient = plus(known->coefficient, term.coefficient);
  }
  std::erase_if(terms, [](const Term& each) { return each.coefficient == 0; });
}

/// a + factor * b
SelectingForm sum_of(SelectingForm a, const SelectingForm& b, std::int64_t factor) {
  a.labels.offset = plus(a.labels.offset, times(factor, b.labels.offset));
  for (const IndexTerm& term : b.labels.terms)
    add_term(a.labels.terms, term, factor, [&](const IndexTerm& each) { return each.label == term.label; });
  for (const ElementTerm& term : b.elements)
    add_term(a.elements, term, factor, [&](const ElementTerm& each) { return each.operand == term.operand; });
  return a;
}

std::int64_t coefficient_of(const SelectingForm& form, std::size_t label) {
  for (const IndexTerm& term : form.labels.terms) {
    if (term.label == label) return term.coefficient;
  }
  return 0;
}

bool reads(const Access& access, std::size_t label) {
  return std::any_of(access.indices.begin(), access.indices.end(), [&](const Index& index) {
    return std::any_of(index.terms.begin(), index.terms.end(),
                       [&](const IndexTerm& term) { return term.label == label; });
  });
}

/// form == 0, and the steps that say so.
struct Equation {
  SelectingForm form;
  ScalarExpr steps;
};

/// What a step leaves on the stack: `value` where all equations hold, else 0.
struct Part {
  ScalarExpr steps;  ///< as they stand in the body
  std::vector<Equation> equations;
  ScalarExpr value;
  bool is_one = false;                ///< the value is 1
  std::optional<SelectingForm> form;  ///< of a whole number
};

/// 0, of whatever type it was made.
bool is_zero(const ScalarExpr& expr) {
  const auto* const constant = std::get_if<Constant>(&expr.steps.front().op);
  const auto converts = [](const ScalarStep& step) { return std::holds_alternative<Convert>(step.op); };
  return constant != nullptr && std::all_of(expr.steps.begin() + 1, expr.steps.end(), converts) &&
         std::visit([&](auto number) { return number == 0; }, constant->value);
}

ScalarExpr joined(std::initializer_list<const ScalarExpr*> parts, const ScalarStep& last) {
  ScalarExpr all;
  for (const ScalarExpr* const part : parts) all.steps.insert(all.steps.end(), part->steps.begin(), part->steps.end());
  all.steps.push_back(last);
  return all;
}

std::vector<Equation> united(std::vector<Equation> a, const std::vector<Equation>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Goes over the steps of a body and keeps what their stack would hold.
class Reader {
 public:
  explicit Reader(const EinSum& einsum) : einsum_(einsum) {}

  Part run(const ScalarExpr& body) {
    for (const ScalarStep& step : body.steps) {
      taken_.assign(stack_.end() - static_cast<std::ptrdiff_t>(arity(step)), stack_.end());
      stack_.resize(stack_.size() - taken_.size());
      Part part;
      for (const Part& each : taken_)
        part.steps.steps.insert(part.steps.steps.end(), each.steps.steps.begin(), each.steps.steps.end());
      part.steps.steps.push_back(step);
      part.value = part.steps;
      std::visit([&](const auto& op) { read(op, step, part); }, step.op);
      stack_.push_back(std::move(part));
    }
    return std::move(stack_.back());
  }

 private:
  static bool is_label(const SelectingForm& form) {
    const std::vector<IndexTerm>& terms = form.labels.terms;
    return form.elements.empty() && form.labels.offset == 0 && terms.size() == 1 && terms.front().coefficient == 1;
  }
  static bool is_whole(DType type) { return type == DType::i64 || type == DType::i32; }

  static void read(const OperandValue& op, const ScalarStep& step, Part& part) {
    if (is_whole(step.type)) part.form = SelectingForm{{}, {{1, op.operand}}};
  }
  static void read(const LabelValue& op, const ScalarStep& step, Part& part) {
    if (is_whole(step.type)) part.form = SelectingForm{{0, {{1, op.label}}}, {}};
  }
  static void read(const Constant& op, const ScalarStep& step, Part& part) {
    if (is_whole(step.type)) part.form = SelectingForm{{std::get<std::int64_t>(op.value), {}}, {}};
    part.is_one = std::visit([](auto number) { return number == 1; }, op.value);
  }
  void read(const ApplyUnary& op, const ScalarStep& step, Part& part) const {
    if (op.function != UnaryFunction::negate) return;
    if (may_add(step.type)) add(part, {}, *taken_[0].form, -1, step.type);
    part.equations = taken_[0].equations;
    part.value = joined({&taken_[0].value}, step);
  }
  /// Conversions of labels to i32 change nothing, since a dimension that i32 indexes has no more positions; those of
  /// what is computed of labels may.
  void read(const Convert&, const ScalarStep& step, Part& part) const {
    const Part& x = taken_[0];
    const bool stays = x.form && (step.type == DType::i64 || is_label(*x.form) || is_begin(*x.form));
    if (is_whole(step.type) && is_whole(x.steps.type()) && stays) part.form = x.form;
    part.equations = x.equations;
    part.value = joined({&x.value}, step);
    part.is_one = x.is_one;
    if (part.is_one) part.value = {{whole_step(1, step.type)}};
  }
  void read(const Round&, const ScalarStep& step, Part& part) const {
    part.equations = taken_[0].equations;
    part.value = joined({&taken_[0].value}, step);
  }
  void read(const ApplyBinary& op, const ScalarStep& step, Part& part) const {
    const Part& a = taken_[0];
    const Part& b = taken_[1];
    switch (op.function) {
      case BinaryFunction::add:
      case BinaryFunction::subtract:
        if (may_add(step.type)) add(part, *a.form, *b.form, op.function == BinaryFunction::add ? 1 : -1, step.type);
        return;
      case BinaryFunction::equal: return read_equation(part);
      case BinaryFunction::multiply: return read_product(step, part);
      case BinaryFunction::minimum:
        if (step.type == DType::boolean) read_product({step.type, ApplyBinary{op.function}}, part);
        return;
      case BinaryFunction::divide:
        if (!b.equations.empty()) return;
        part.equations = a.equations;
        part.value = joined({&a.value, &b.value}, step);
        return;
      default: return;
    }
  }
  void read(const ApplyWhere&, const ScalarStep& step, Part& part) const {
    const auto& [condition, value, other] = std::tie(taken_[0], taken_[1], taken_[2]);
    if (!is_zero(other.steps)) return;
    part.equations = united(condition.equations, value.equations);
    part.is_one = condition.is_one && value.is_one;
    part.value = condition.is_one ? value.value : joined({&condition.value, &value.value, &other.value}, step);
  }
  template <class Other>
  static void read(const Other&, const ScalarStep&, Part&) {}

  /// a + factor * b, unless it could leave the type, where it would wrap.
  void add(Part& part, const SelectingForm& a, const SelectingForm& b, std::int64_t factor, DType type) const {
    SelectingForm form = sum_of(a, b, factor);
    if (type == DType::i64 || fits_i32(form.labels)) part.form = std::move(form);
  }
  bool fits_i32(const Index& index) const {
    double low = static_cast<double>(index.offset);
    double high = low;
    for (const IndexTerm& term : index.terms) {
      const Extent extent = einsum_.labels[term.label].extent;
      if (extent.is_open()) return false;
      (term.coefficient < 0 ? low : high) +=
          static_cast<double>(term.coefficient) * static_cast<double>(extent.value() - 1);
    }
    return low >= std::numeric_limits<std::int32_t>::min() && high <= std::numeric_limits<std::int32_t>::max();
  }
  /// Sums of elements in i32 could leave it whatever they are.
  bool may_add(DType type) const {
    return is_whole(type) && std::all_of(taken_.begin(), taken_.end(), [&](const Part& part) {
             return part.form && (type == DType::i64 || part.form->elements.empty());
           });
  }
  /// A position in the whole tensor, in a kernel of a chunk: label + where the chunk begins.
  bool is_begin(const SelectingForm& form) const {
    const bool has_both = form.elements.size() == 1 && form.elements.front().coefficient == 1;
    return has_both && einsum_.operands[form.elements.front().operand].indices.empty() && is_label({form.labels, {}});
  }

  void read_equation(Part& part) const {
    if (!taken_[0].form || !taken_[1].form) return;
    SelectingForm form = sum_of(*taken_[0].form, *taken_[1].form, -1);
    if (form.labels.terms.empty()) return;
    part.equations.push_back({std::move(form), part.steps});
    part.is_one = true;
    part.value = {{whole_step(1, DType::boolean)}};
  }

  void read_product(const ScalarStep& step, Part& part) const {
    const Part& a = taken_[0];
    const Part& b = taken_[1];
    if (a.form && b.form && step.type == DType::i64) {
      const auto scale = [&](const Part& number, const Part& of) {
        const SelectingForm& form = *number.form;
        if (form.labels.terms.empty() && form.elements.empty()) part.form = sum_of({}, *of.form, form.labels.offset);
      };
      scale(a, b);
      scale(b, a);
    }
    part.equations = united(a.equations, b.equations);
    if (part.equations.empty()) return;
    part.is_one = a.is_one && b.is_one;
    part.value = a.is_one ? b.value : b.is_one ? a.value : joined({&a.value, &b.value}, step);
  }

  std::vector<Part> stack_;
  std::vector<Part> taken_;
  const EinSum& einsum_;
};

/// Finds a label for each equation.
class Solver {
 public:
  Solver(const EinSum& einsum, Part part) : einsum_(einsum), part_(std::move(part)) {}

  std::optional<Selected> run() {
    std::vector<Equation> left = part_.equations;
    for (Equation& equation : left) {
      const std::optional<std::size_t> label = decided_by(equation.form);
      if (label) {
        solve(*label, equation.form, left);
      } else {
        unsolved_.push_back(equation.steps);
      }
    }
    if (selections_.empty()) return std::nullopt;
    for (const ScalarExpr& condition : unsolved_) part_.value = only_where(condition, part_.value);
    return Selected{std::move(selections_), std::move(part_.value)};
  }

 private:
  bool is_reduced(std::size_t label) const {
    return std::find(einsum_.reduced.begin(), einsum_.reduced.end(), label) != einsum_.reduced.end();
  }

  /// The label of most positions, so that fewest are left, and rather one that is reduced.
  std::optional<std::size_t> decided_by(const SelectingForm& form) const {
    std::optional<std::size_t> best;
    const auto rank = [&](std::size_t label) {
      const Extent extent = einsum_.labels[label].extent;
      return std::pair(extent.is_open() ? std::numeric_limits<std::int64_t>::max() : extent.value(), is_reduced(label));
    };
    for (const IndexTerm& term : form.labels.terms) {
      if ((term.coefficient != 1 && term.coefficient != -1) || is_read_by_elements(term.label)) continue;
      if (!best || rank(*best) < rank(term.label)) best = term.label;
    }
    return best;
  }

  bool is_read_by_elements(std::size_t label) const {
    return std::any_of(part_.equations.begin(), part_.equations.end(), [&](const Equation& equation) {
      return std::any_of(equation.form.elements.begin(), equation.form.elements.end(),
                         [&](const ElementTerm& term) { return reads(einsum_.operands[term.operand], label); });
    });
  }

  /// 0 = form = c * label + rest, so label = -c * rest, where c is 1 or -1.
  void solve(std::size_t label, const SelectingForm& form, std::vector<Equation>& equations) {
    const std::int64_t c = coefficient_of(form, label);
    const SelectingForm itself{{0, {{1, label}}}, {}};
    const SelectingForm position = sum_of({}, sum_of(form, itself, -c), -c);
    const auto substitute = [&](SelectingForm& other) {
      const std::int64_t factor = coefficient_of(other, label);
      other = sum_of(sum_of(other, itself, -factor), position, factor);
    };
    for (Equation& equation : equations) substitute(equation.form);
    for (Selection& selection : selections_) substitute(selection.position);
    selections_.push_back({label, position});
  }

  const EinSum& einsum_;
  Part part_;
  std::vector<Selection> selections_;
  std::vector<ScalarExpr> unsolved_;
};

bool begins_with_zero(const EinSum& einsum) { return einsum.reducer == Reducer::sum || einsum.reducer == Reducer::any; }

bool compares(const ScalarStep& step) {
  const auto* const binary = std::get_if<ApplyBinary>(&step.op);
  return binary != nullptr && binary->function == BinaryFunction::equal;
}

/// Where every element of the result is one of the source, or nothing.
bool adds_nothing_up(const EinSum& einsum, const Selected& found) {
  const auto is_selected = [&](std::size_t label) {
    return std::any_of(found.selections.begin(), found.selections.end(),
                       [&](const Selection& selection) { return selection.label == label; });
  };
  return std::all_of(einsum.reduced.begin(), einsum.reduced.end(), is_selected) &&
         std::none_of(einsum.output.begin(), einsum.output.end(), is_selected);
}

std::string not_a_source(const EinSum& einsum, const ScalarStep& value, const std::vector<DType>& dtypes,
                         DType result) {
  if (const auto* const element = std::get_if<OperandValue>(&value.op)) {
    const DType type = dtypes[element->operand];
    if (type != result && !(is_narrow(type) && result == DType::f32)) return "it changes the dtype";
    const bool is_other = einsum.operands[element->operand].pad.value_or(0) != 0;
    return is_other ? "what is selected is padded with another number than 0" : "";
  }
  const auto* const constant = std::get_if<Constant>(&value.op);
  const bool is_scalar = is_float(result) && std::holds_alternative<ScalarValue>(value.op);
  return is_scalar || (constant != nullptr && is_addend(*constant)) ? "" : "what is selected is computed";
}

}  // namespace

bool is_addend(const Constant& number) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  const auto* const whole = std::get_if<std::int64_t>(&number.value);
  return whole == nullptr || (*whole >= -most && *whole <= most);
}

std::string not_selected_as_it_is(const EinSum& einsum, const Selected& found, const std::vector<DType>& dtypes,
                                  DType result) {
  if (found.value.steps.size() != 1) return "what is selected is computed";
  if (std::string reason = not_a_source(einsum, found.value.steps.front(), dtypes, result); !reason.empty())
    return reason;
  for (const Selection& selection : found.selections) {
    for (const ElementTerm& term : selection.position.elements) {
      if (einsum.operands[term.operand].pad) return "an element that is padded selects";
    }
  }
  const bool has_one = adds_nothing_up(einsum, found);
  if (!has_one && is_narrow(result)) return "it adds up in a narrow type";
  return !has_one && result == DType::boolean ? "it adds up bools" : "";
}

std::optional<Selected> selected(const EinSum& einsum) {
  const std::vector<ScalarStep>& steps = einsum.body.steps;
  if (steps.size() > most_steps || !begins_with_zero(einsum) || std::none_of(steps.begin(), steps.end(), compares))
    return std::nullopt;
  Part part = Reader(einsum).run(einsum.body);
  if (part.equations.empty()) return std::nullopt;
  return Solver(einsum, std::move(part)).run();
}

}  // namespace einrel
