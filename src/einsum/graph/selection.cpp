#include "einsum/graph/selection.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/error.h"

namespace einrel {
namespace {

constexpr std::size_t most_steps = 256;
constexpr std::int64_t most_positions_of_i32 = std::int64_t{1} << 31;

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
    add_term(a.elements, term, factor,
             [&](const ElementTerm& each) { return each.operand == term.operand && each.computed == term.computed; });
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
  bool wraps = false;  ///< it holds modulo 2^32
};

/// What a step leaves on the stack: `value` where all equations hold, else 0.
struct Part {
  ScalarExpr steps;  ///< as they stand in the body
  std::vector<Equation> equations;
  ScalarExpr value;
  bool is_one = false;                ///< the value is 1
  std::optional<SelectingForm> form;  ///< of a whole number
  bool wraps = false;                 ///< an i32 that is the form modulo 2^32
  /// Of an i64 that is a converted i32, the form that this had, modulo 2^32.
  std::optional<SelectingForm> converted;
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
    if (may_add(step.type)) set_form(part, sum_of({}, *taken_[0].form, -1), step.type);
    part.equations = taken_[0].equations;
    part.value = joined({&taken_[0].value}, step);
  }
  void read(const Convert&, const ScalarStep& step, Part& part) const {
    const Part& x = taken_[0];
    if (x.form && is_whole(step.type) && is_whole(x.steps.type())) convert(x, step.type, part);
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
        if (may_add(step.type))
          set_form(part, sum_of(*a.form, *b.form, op.function == BinaryFunction::add ? 1 : -1), step.type);
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

  /// What is computed in i32 wraps where it leaves that type: sums of elements could, whatever they are.
  void set_form(Part& part, SelectingForm form, DType type) const {
    const bool wrapped = std::any_of(taken_.begin(), taken_.end(), [](const Part& each) { return each.wraps; });
    part.wraps = type == DType::i32 && (wrapped || !form.elements.empty() || !fits_i32(form.labels));
    part.form = std::move(form);
  }
  /// Conversions of labels to i32 change nothing, since a dimension that i32 indexes has no more positions; others may.
  void convert(const Part& x, DType type, Part& part) const {
    const bool fits = x.form->elements.empty() && fits_i32(x.form->labels);
    const bool narrows = type == DType::i32 && x.steps.type() == DType::i64;
    const bool is_computed = narrows ? !fits && !is_label(*x.form) && !is_begin(*x.form) : x.wraps;
    if (type == DType::i64 && x.steps.type() == DType::i32) part.converted = x.form;
    if (is_computed && type == x.steps.type()) {  // nothing changes
      part.form = x.form;
      part.wraps = x.wraps;
    } else if (is_computed) {
      part.form = SelectingForm{{}, {{1, 0, narrows ? part.steps : x.steps}}};
    } else {
      part.form = x.form;
    }
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
  bool may_add(DType type) const {
    return is_whole(type) &&
           std::all_of(taken_.begin(), taken_.end(), [&](const Part& part) { return part.form.has_value(); });
  }
  /// A position in the whole tensor, in a kernel of a chunk: label + where the chunk begins.
  bool is_begin(const SelectingForm& form) const {
    const bool has_both = form.elements.size() == 1 && form.elements.front().coefficient == 1;
    return has_both && einsum_.operands[form.elements.front().operand].indices.empty() && is_label({form.labels, {}});
  }

  /// The form of a number that i32 can hold, modulo 2^32.
  std::optional<SelectingForm> form_in_i32(const Part& part) const {
    if (part.steps.type() == DType::i32 || (part.form->elements.empty() && fits_i32(part.form->labels)))
      return part.form;
    return part.converted;
  }
  static bool is_computed(const Part& part) {
    return part.wraps || std::any_of(part.form->elements.begin(), part.form->elements.end(),
                                     [](const ElementTerm& term) { return term.computed.has_value(); });
  }

  void read_equation(Part& part) const {
    const Part& a = taken_[0];
    const Part& b = taken_[1];
    if (!a.form || !b.form) return;
    Equation equation{sum_of(*a.form, *b.form, -1), part.steps, a.wraps || b.wraps};
    const std::optional<SelectingForm> narrow_a = form_in_i32(a);
    const std::optional<SelectingForm> narrow_b = form_in_i32(b);
    if ((is_computed(a) || is_computed(b)) && narrow_a && narrow_b) {
      equation.form = sum_of(*narrow_a, *narrow_b, -1);
      equation.wraps = true;
    }
    if (equation.form.labels.terms.empty()) return;
    part.equations.push_back(std::move(equation));
    part.is_one = true;
    part.value = {{whole_step(1, DType::boolean)}};
  }

  void read_product(const ScalarStep& step, Part& part) const {
    const Part& a = taken_[0];
    const Part& b = taken_[1];
    if (may_add(step.type)) {
      const auto scale = [&](const Part& number, const Part& of) {
        const SelectingForm& form = *number.form;
        if (form.labels.terms.empty() && form.elements.empty())
          set_form(part, sum_of({}, *of.form, form.labels.offset), step.type);
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
      const std::optional<std::size_t> label = decided_by(equation);
      if (label) {
        solve(*label, equation, left);
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
  std::optional<std::size_t> decided_by(const Equation& equation) const {
    std::optional<std::size_t> best;
    const auto positions = [&](std::size_t label) {
      const Extent extent = einsum_.labels[label].extent;
      return extent.is_open() ? std::numeric_limits<std::int64_t>::max() : extent.value();
    };
    const auto rank = [&](std::size_t label) { return std::pair(positions(label), is_reduced(label)); };
    for (const IndexTerm& term : equation.form.labels.terms) {
      if ((term.coefficient != 1 && term.coefficient != -1) || is_read_by_elements(term.label)) continue;
      if (equation.wraps && positions(term.label) > most_positions_of_i32) continue;
      if (!best || rank(*best) < rank(term.label)) best = term.label;
    }
    return best;
  }

  bool is_read_by_elements(std::size_t label) const {
    const auto is_read = [&](const SelectingForm& form) {
      return std::any_of(form.elements.begin(), form.elements.end(),
                         [&](const ElementTerm& term) { return reads(term, label); });
    };
    return std::any_of(part_.equations.begin(), part_.equations.end(),
                       [&](const Equation& equation) { return is_read(equation.form); }) ||
           std::any_of(selections_.begin(), selections_.end(),
                       [&](const Selection& selection) { return is_read(selection.position); });
  }
  bool reads(const ElementTerm& term, std::size_t label) const {
    if (!term.computed) return einrel::reads(einsum_.operands[term.operand], label);
    return std::any_of(term.computed->steps.begin(), term.computed->steps.end(), [&](const ScalarStep& step) {
      const std::optional<std::size_t> element = operand_read(step);
      return label_read(step) == label || (element && einrel::reads(einsum_.operands[*element], label));
    });
  }

  /// 0 = form = c * label + rest, so label = -c * rest, where c is 1 or -1.
  void solve(std::size_t label, const Equation& solved, std::vector<Equation>& equations) {
    const SelectingForm form = solved.form;
    const std::int64_t c = coefficient_of(form, label);
    const SelectingForm itself{{0, {{1, label}}}, {}};
    SelectingForm position = sum_of({}, sum_of(form, itself, -c), -c);
    if (solved.wraps && !is_i32(position)) position = {{}, {{1, 0, in_i32(position)}}};
    const auto substitute = [&](SelectingForm& other) {
      const std::int64_t factor = coefficient_of(other, label);
      other = sum_of(sum_of(other, itself, -factor), position, factor);
    };
    for (Equation& equation : equations) substitute(equation.form);
    for (Selection& selection : selections_) substitute(selection.position);
    selections_.push_back({label, position});
  }

  /// Whether a form is one number of that type.
  bool is_i32(const SelectingForm& form) const {
    const bool is_element = form.elements.size() == 1 && form.elements.front().coefficient == 1;
    return is_element && form.labels.terms.empty() && form.labels.offset == 0 &&
           type_of(form.elements.front()) == DType::i32;
  }
  DType type_of(const ElementTerm& term) const {
    if (term.computed) return term.computed->type();
    const std::vector<ScalarStep>& steps = einsum_.body.steps;
    return std::find_if(steps.begin(), steps.end(),
                        [&](const ScalarStep& step) {
                          const auto* const value = std::get_if<OperandValue>(&step.op);
                          return value != nullptr && value->operand == term.operand;
                        })
        ->type;
  }

  /// A form modulo 2^32, as it is computed.
  ScalarExpr in_i32(const SelectingForm& form) const {
    const auto wrapped = [](std::int64_t number) { return whole_step(static_cast<std::int32_t>(number), DType::i32); };
    ScalarExpr sum{{wrapped(form.labels.offset)}};
    const auto add = [&](const ScalarExpr& value, std::int64_t coefficient) {
      append(sum, value);
      if (value.type() != DType::i32) sum.steps.push_back({DType::i32, Convert{}});
      append(sum, {{wrapped(coefficient), binary_step(DType::i32, BinaryFunction::multiply),
                    binary_step(DType::i32, BinaryFunction::add)}});
    };
    for (const IndexTerm& term : form.labels.terms) add({{{DType::i64, LabelValue{term.label}}}}, term.coefficient);
    for (const ElementTerm& term : form.elements)
      add(term.computed ? *term.computed : ScalarExpr{{{type_of(term), OperandValue{term.operand}}}}, term.coefficient);
    return sum;
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
      if (term.computed) return "a computed i32 selects";
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
