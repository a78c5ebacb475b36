#include "einsum/front/build/substitute.h"

#include <algorithm>
#include <vector>

#include "einsum/front/build/visit.h"

namespace einrel::build {
namespace {

/// Calls `visit` for each part of a formula after its arguments.
template <class Visit>
void in_postorder(const Formula& root, const Visit& visit) {
  std::set<Formula> seen;
  visit_after_arguments(
      root, [&](const Formula& part) { return seen.count(part) != 0; },
      [&](const Formula& part) {
        seen.insert(part);
        visit(part);
      });
}

}  // namespace

Index plus(const Index& a, const Index& b, std::int64_t factor) {
  Index sum = a;
  sum.offset += factor * b.offset;
  for (const IndexTerm& term : b.terms) {
    const auto known = std::find_if(sum.terms.begin(), sum.terms.end(),
                                    [&](const IndexTerm& each) { return each.label.text == term.label.text; });
    if (known == sum.terms.end()) {
      sum.terms.push_back({factor * term.coefficient, term.label});
    } else {
      known->coefficient += factor * term.coefficient;
    }
  }
  std::erase_if(sum.terms, [](const IndexTerm& term) { return term.coefficient == 0; });
  return sum;
}

Index with_labels(const Index& index, const LabelForms& forms) {
  Index result;
  result.offset = index.offset;
  for (const IndexTerm& term : index.terms) {
    const auto form = forms.find(term.label.text);
    result = plus(result, form == forms.end() ? build::index(term.label.text) : form->second, term.coefficient);
  }
  return result;
}

Formula value_of(const Index& index) {
  std::optional<Formula> sum;
  for (const IndexTerm& term : index.terms) {
    const std::int64_t size = std::abs(term.coefficient);
    const Formula label = name(term.label.text);
    const Formula part = size == 1 ? label : apply(BinaryFunction::multiply, whole_number(size), label);
    if (!sum) {
      sum = term.coefficient < 0 ? apply(UnaryFunction::negate, part) : part;
    } else {
      sum = apply(term.coefficient < 0 ? BinaryFunction::subtract : BinaryFunction::add, *sum, part);
    }
  }
  if (!sum) return whole_number(index.offset);
  if (index.offset == 0) return *sum;
  return index.offset < 0 ? apply(BinaryFunction::subtract, *sum, whole_number(-index.offset))
                          : apply(BinaryFunction::add, *sum, whole_number(index.offset));
}

Formula with_labels(const Formula& formula, const LabelForms& forms, const std::set<std::string>& padded) {
  std::map<Formula, Formula> made;
  in_postorder(formula, [&](const Formula& part) {
    Operation op = part.op();
    if (auto* const access = std::get_if<Access>(&op)) {
      const bool pads =
          std::any_of(padded.begin(), padded.end(), [&](const std::string& label) { return reads_at(*access, label); });
      for (Index& index : access->indices) index = with_labels(index, forms);
      if (pads && !access->pad) access->pad = 0;
    } else if (const auto* const use = std::get_if<NameUse>(&op); use != nullptr && forms.count(use->name) != 0) {
      made.insert({part, value_of(forms.at(use->name))});
      return;
    }
    std::vector<Formula> arguments;
    for (const Formula& argument : part.arguments()) arguments.push_back(made.at(argument));
    made.insert({part, Formula(std::move(op), std::move(arguments))});
  });
  return made.at(formula);
}

void for_each_part(const Formula& formula, const std::function<void(const Formula&)>& visit) {
  in_postorder(formula, visit);
}

std::set<std::string> names_in(const Formula& formula) {
  std::set<std::string> names;
  in_postorder(formula, [&](const Formula& part) {
    if (const auto* const use = std::get_if<NameUse>(&part.op())) names.insert(use->name);
    const auto* const access = std::get_if<Access>(&part.op());
    if (access == nullptr) return;
    for (const Index& index : access->indices) {
      for (const IndexTerm& term : index.terms) names.insert(term.label.text);
    }
  });
  return names;
}

bool reads_at(const Access& access, const std::string& label) {
  return std::any_of(access.indices.begin(), access.indices.end(), [&](const Index& index) {
    return std::any_of(index.terms.begin(), index.terms.end(),
                       [&](const IndexTerm& term) { return term.label.text == label; });
  });
}

}  // namespace einrel::build
