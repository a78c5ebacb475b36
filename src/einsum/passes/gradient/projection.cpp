#include "einsum/passes/gradient/projection.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "einsum/front/build/fresh_name.h"
#include "einsum/front/build/substitute.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/passes/gradient/arithmetic.h"

namespace einrel::gradient {

using build::Formula;

namespace {

/// Whether `value` is 0 wherever a read of a label that lies outside of its tensor is taken for 0, and reads that label
/// nowhere else.
bool vanishes_outside(const Formula& value, const std::string& label) {
  std::size_t reads = 0;
  build::for_each_part(value, [&](const Formula& part) {
    const auto* const access = std::get_if<build::Access>(&part.op());
    const auto* const use = std::get_if<build::NameUse>(&part.op());
    if (access != nullptr && reads_at(*access, label)) ++reads;
    if (use != nullptr && use->name == label) reads += 2;
  });
  if (reads != 1) return false;
  // Down the factors to that read.
  std::vector<Formula> factors{value};
  while (!factors.empty()) {
    const Formula factor = factors.back();
    factors.pop_back();
    if (const auto* const access = std::get_if<build::Access>(&factor.op())) {
      const auto is_label = [&](const build::Index& index) {
        return is_plain(index) && index.terms[0].label.text == label;
      };
      if (!access->pad && std::any_of(access->indices.begin(), access->indices.end(), is_label)) return true;
    }
    const auto* const binary = std::get_if<build::Binary>(&factor.op());
    const auto* const unary = std::get_if<build::Unary>(&factor.op());
    const bool multiplies = binary != nullptr && binary->function == BinaryFunction::multiply;
    const bool divides = binary != nullptr && binary->function == BinaryFunction::divide;
    const bool negates = unary != nullptr && unary->function == UnaryFunction::negate;
    if (multiplies || divides || negates) factors.push_back(factor.arguments().front());
    if (multiplies) factors.push_back(factor.arguments().back());
  }
  return false;
}

/// Finds for labels of a vertex what they are where a position of the operand is read.
class Projection {
 public:
  Projection(const OverLabels& from, const std::vector<Index>& indices, const Shape& bound,
             const std::vector<std::string>& dimensions)
      : from_(from), indices_(indices), bound_(bound), dimensions_(dimensions), solved_(from.labels.size()) {}

  /// Names for the labels where they are left, beside others.
  void rename(std::map<std::string, Extent>& extents, std::set<std::string> taken) {
    taken.insert(dimensions_.begin(), dimensions_.end());
    for (std::size_t l = 0; l < from_.names.size(); ++l) {
      const Extent extent = from_.labels[l].extent;
      std::string name = build::fresh_name(from_.names[l], [&](const std::string& each) {
        const auto known = extents.find(each);
        return (known == extents.end() || known->second == extent) && taken.insert(each).second;
      });
      extents.insert({name, extent});
      renamed_.push_back(std::move(name));
    }
  }

  Formula run() {
    for (const bool plain : {true, false}) {
      for (std::size_t d = 0; d < indices_.size(); ++d) {
        if (plain_label(indices_[d]).has_value() == plain) solve(d);
      }
    }
    Formula value = substituted();
    for (const auto& [position, form] : equal_) {
      value = only_where(apply(BinaryFunction::equal, value_of(position), value_of(form)), value);
    }
    for (const Formula& condition : in_range_) value = only_where(condition, value);
    if (number_of(from_.value) && !number_of(value)) value = build::cast(from_.computed, value);
    return summed(value);
  }

 private:
  /// What an index is in terms of dimensions and of labels that are not solved.
  build::Index form_of(const Index& index) const {
    build::Index form;
    form.offset = index.offset;
    for (const IndexTerm& term : index.terms) {
      const build::Index label = solved_[term.label] ? *solved_[term.label] : build::index(renamed_[term.label]);
      form = build::plus(form, label, term.coefficient);
    }
    return form;
  }

  /// The label that the position along a dimension decides, once the others are known: that of most positions, so that
  /// few are left to add up. Nothing where that one has a stride: then the equation selects a position (selection.h).
  std::optional<std::size_t> decided_by(const Index& index) const {
    const auto most = std::max_element(index.terms.begin(), index.terms.end(), [&](const auto& a, const auto& b) {
      return positions_left(a.label) < positions_left(b.label);
    });
    const bool is_decided =
        most != index.terms.end() && positions_left(most->label) >= 0 && std::abs(most->coefficient) == 1;
    return is_decided ? std::optional(most->label) : std::nullopt;
  }

  /// -1 for a label that is solved.
  std::int64_t positions_left(std::size_t label) const {
    return solved_[label] ? -1 : from_.labels[label].extent.value();
  }

  void solve(std::size_t d) {
    const build::Index position = build::index(dimensions_[d]);
    const build::Index form = form_of(indices_[d]);
    const std::optional<std::size_t> label = decided_by(indices_[d]);
    if (!label) {
      equal_.emplace_back(position, form);
      return;
    }
    const auto term = std::find_if(form.terms.begin(), form.terms.end(),
                                   [&](const build::IndexTerm& each) { return each.label.text == renamed_[*label]; });
    if (term == form.terms.end() || std::abs(term->coefficient) != 1) {  // others that were solved have it, too
      equal_.emplace_back(position, form);
      return;
    }
    // position = rest + c * label, so label = c * (position - rest), where c is 1 or -1.
    const std::int64_t c = term->coefficient;
    const build::Index rest = build::plus(form, build::index(renamed_[*label]), -c);
    const build::Index found = build::plus(build::plus({}, position, c), rest, -c);
    for (std::optional<build::Index>& other : solved_) {
      if (other) other = with_labels(*other, {{renamed_[*label], found}});
    }
    for (auto& [there, other] : equal_) other = with_labels(other, {{renamed_[*label], found}});
    solved_[*label] = found;
    const bool is_whole = plain_label(indices_[d]) && from_.labels[*label].extent == bound_[d];
    if (!is_whole) partial_.push_back(*label);
  }

  /// The value in terms of dimensions and of the labels that are left; 0 where a label would be out of range.
  Formula substituted() {
    build::LabelForms forms;
    for (std::size_t l = 0; l < solved_.size(); ++l)
      forms[from_.names[l]] = solved_[l] ? *solved_[l] : build::index(renamed_[l]);
    std::set<std::string> padded;
    for (const std::size_t label : partial_) {
      padded.insert(from_.names[label]);
      if (vanishes_outside(from_.value, from_.names[label])) continue;
      const Formula at = value_of(*solved_[label]);
      const Formula extent = build::whole_number(from_.labels[label].extent.value());
      in_range_.push_back(apply(BinaryFunction::greater_equal, at, build::whole_number(0)));
      in_range_.push_back(apply(BinaryFunction::less, at, extent));
    }
    return with_labels(from_.value, forms, padded);
  }

  /// Over the labels that are left.
  Formula summed(Formula value) const {
    const std::set<std::string> used = names_in(value);
    std::vector<std::string> labels;
    double times = 1;
    for (std::size_t l = 0; l < solved_.size(); ++l) {
      if (solved_[l]) continue;
      if (used.count(renamed_[l]) != 0) {
        labels.push_back(renamed_[l]);
      } else {
        times *= static_cast<double>(from_.labels[l].extent.value());
      }
    }
    value = product(build::number(times), value);
    if (labels.empty()) return value;
    if (const std::optional<Formula> positive = negated(value))
      return negative(reduce(Reducer::sum, labels, *positive));
    return reduce(Reducer::sum, labels, value);
  }

  const OverLabels& from_;
  const std::vector<Index>& indices_;
  const Shape& bound_;
  const std::vector<std::string>& dimensions_;
  std::vector<std::string> renamed_;                          ///< labels, where they are left
  std::vector<std::optional<build::Index>> solved_;           ///< per label
  std::vector<std::size_t> partial_;                          ///< solved labels that may be out of range
  std::vector<std::pair<build::Index, build::Index>> equal_;  ///< positions, and what they have to be
  std::vector<Formula> in_range_;                             ///< labels that the positions decide
};

}  // namespace

Formula projected(const OverLabels& from, const std::vector<Index>& indices, const Shape& bound,
                  const std::vector<std::string>& dimensions, std::map<std::string, Extent>& extents,
                  const std::set<std::string>& reserved) {
  Projection projection(from, indices, bound, dimensions);
  projection.rename(extents, reserved);
  return projection.run();
}

}  // namespace einrel::gradient
