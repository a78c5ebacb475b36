#include "einsum/passes/gradient/shared_parts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "einsum/front/build/visit.h"
#include "einsum/passes/gradient/adjoint.h"

namespace einrel::gradient {

using build::Formula;

namespace {

/// Where in formulas: inside of which sides. 0 is anywhere.
using Place = std::size_t;

/// Where a part is true, or is not.
struct OnSide {
  std::size_t condition = 0;
  bool holds = true;
  auto operator<=>(const OnSide&) const = default;
};
struct InEither {
  Place a = 0;
  Place b = 0;
  auto operator<=>(const InEither&) const = default;
};
using Where = std::variant<OnSide, InEither>;

/// Inside of another place.
struct Inner {
  Place around = 0;
  Where where;
  std::size_t depth = 0;
  std::size_t behind = 0;  ///< all parts that its conditions are come before this one
};

class SharedParts {
 public:
  explicit SharedParts(const Cutting& cutting) : cutting_(cutting) {}

  std::vector<Formula> run(const std::vector<Formula>& formulas) {
    for (const Formula& condition : conditions_in(formulas)) add(condition);
    for (const Formula& formula : formulas) {
      add(formula);
      ++parts_[index_.at(formula)].uses;
    }
    choose(formulas);
    if (std::none_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.is_cut; })) return formulas;
    find_places(formulas);
    for (std::size_t p = 0; p < parts_.size(); ++p) rewrite(p);
    std::vector<Formula> result;
    for (const Formula& formula : formulas) result.push_back(*parts_[index_.at(formula)].rewritten);
    return result;
  }

 private:
  struct Part {
    Formula formula;
    std::vector<std::size_t> arguments;
    std::size_t uses = 0;
    double size = 1;  ///< operations, those of what is cut out of it aside
    bool reads = false;
    bool is_cut = false;
    std::optional<Place> place = std::nullopt;  ///< what all places where it stands lie in
    std::optional<Formula> rewritten = std::nullopt;
  };

  void add(const Formula& formula) {
    const auto known = [&](const Formula& part) { return index_.count(part) != 0; };
    visit_after_arguments(formula, known, [&](const Formula& each) {
      Part part{each, {}};
      part.reads = std::holds_alternative<build::Access>(each.op());
      for (const Formula& argument : each.arguments()) {
        const std::size_t a = index_.at(argument);
        ++parts_[a].uses;
        part.reads = part.reads || parts_[a].reads;
        part.arguments.push_back(a);
      }
      index_.insert({each, parts_.size()});
      parts_.push_back(std::move(part));
    });
  }

  /// The conditions that decide sides, those first that stand on the fewest sides themselves: so they come before all
  /// that stands on theirs.
  static std::vector<Formula> conditions_in(const std::vector<Formula>& formulas) {
    std::map<Formula, std::size_t> depths;
    std::vector<Formula> parts;
    const auto known = [&](const Formula& part) { return depths.count(part) != 0; };
    for (const Formula& formula : formulas) {
      visit_after_arguments(formula, known, [&](const Formula& part) {
        depths[part] = std::numeric_limits<std::size_t>::max();
        parts.push_back(part);
      });
    }
    for (const Formula& formula : formulas) depths[formula] = 0;
    std::vector<std::pair<std::size_t, Formula>> found;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const bool is_where = std::holds_alternative<build::Where>(part->op());
      const std::size_t depth = depths[*part];
      for (std::size_t a = 0; a < part->arguments().size(); ++a) {
        std::size_t& inner = depths[part->arguments()[a]];
        inner = std::min(inner, depth + (is_where && a > 0 ? 1 : 0));
      }
      if (is_where) found.emplace_back(depth, part->arguments()[0]);
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Formula> conditions;
    for (const auto& [depth, condition] : found) conditions.push_back(condition);
    return conditions;
  }

  /// Sizes of all parts where those that are cut count as one operation. What is shared and larger is cut.
  double measure(const std::vector<Formula>& formulas, std::optional<double> most) {
    for (Part& part : parts_) {
      part.size = 1;
      for (const std::size_t argument : part.arguments)
        part.size += parts_[argument].is_cut ? 1 : parts_[argument].size;
      part.is_cut = most && part.uses > 1 && part.reads && part.size > *most && cutting_.type_of(part.formula);
    }
    double all = 0;
    for (const Formula& formula : formulas) all += parts_[index_.at(formula)].size;
    return all;
  }

  /// Short formulas are computed again where they are needed, in as few passes over tensors as possible; long ones,
  /// which hold each other's, share all but a few operations.
  void choose(const std::vector<Formula>& formulas) {
    constexpr double most_of_all = 512;
    constexpr double most_of_short = 64;
    constexpr double most_of_long = 4;
    const double all = measure(formulas, std::nullopt);
    if (all > most_of_short) measure(formulas, all > most_of_all ? most_of_long : most_of_short);
  }

  void find_places(const std::vector<Formula>& formulas) {
    for (const Formula& formula : formulas) stands_at(index_.at(formula), 0);
    for (std::size_t p = parts_.size(); p-- > 0;) {
      if (!parts_[p].place) continue;
      const bool is_where = std::holds_alternative<build::Where>(parts_[p].formula.op());
      for (std::size_t a = 0; a < parts_[p].arguments.size(); ++a) {
        const Place place = *parts_[p].place;
        const bool is_side = is_where && a > 0;
        const std::size_t condition = parts_[p].arguments[0];
        stands_at(parts_[p].arguments[a], is_side ? inside(place, OnSide{condition, a == 1}, condition + 1) : place);
      }
    }
  }

  Place inside(Place around, Where where, std::size_t behind) {
    const auto [known, is_new] = known_places_.insert({{around, where}, places_.size()});
    if (is_new) places_.push_back({around, where, places_[around].depth + 1, std::max(behind, places_[around].behind)});
    return known->second;
  }

  void stands_at(std::size_t part, Place place) {
    if (parts_[part].arguments.empty()) return;
    place = decided_before(place, part);
    std::optional<Place>& known = parts_[part].place;
    known = known ? around_both(*known, place) : place;
  }

  /// A place without those of its conditions that come behind a part: a tensor of the part is computed before them.
  Place decided_before(Place place, std::size_t part) {
    if (places_[place].behind <= part) return place;
    std::vector<Place> inner;
    for (; place != 0; place = places_[place].around) inner.push_back(place);
    for (; !inner.empty(); inner.pop_back()) {
      const Where where = places_[inner.back()].where;
      const std::size_t behind = last_condition(where) + 1;
      if (behind <= part) place = inside(place, where, behind);
    }
    return place;
  }

  std::size_t last_condition(const Where& where) const {
    if (const auto* const side = std::get_if<OnSide>(&where)) return side->condition;
    const auto& either = std::get<InEither>(where);
    return std::max(places_[either.a].behind, places_[either.b].behind) - 1;
  }

  /// The innermost place that two places lie in.
  Place around_both(Place a, Place b) {
    Place common = a;
    Place other = b;
    while (common != other) {
      Place& deeper = places_[common].depth < places_[other].depth ? other : common;
      deeper = places_[deeper].around;
    }
    if (common == a || common == b || are_opposite(a, b)) return common;
    const InEither either{a, b};
    return inside(common, either, last_condition(either) + 1);
  }

  bool are_opposite(Place a, Place b) const {
    const auto* const one = std::get_if<OnSide>(&places_[a].where);
    const auto* const two = std::get_if<OnSide>(&places_[b].where);
    return places_[a].around == places_[b].around && one != nullptr && two != nullptr &&
           one->condition == two->condition;
  }

  /// After all parts that it has, and all conditions of the sides that it is on.
  void rewrite(std::size_t p) {
    Part& part = parts_[p];
    std::vector<Formula> arguments;
    bool is_same = true;
    for (const std::size_t a : part.arguments) {
      arguments.push_back(*parts_[a].rewritten);
      is_same = is_same && *parts_[a].rewritten == parts_[a].formula;
    }
    part.rewritten = is_same ? part.formula : Formula(part.formula.op(), std::move(arguments));
    if (!part.is_cut) return;
    const std::optional<DType> type = cutting_.type_of(*part.rewritten);
    const bool flows = type && is_float(*type);
    const Formula value = flows ? only_on(sides_at(*part.place), *part.rewritten) : *part.rewritten;
    part.rewritten = cutting_.stored(value);
  }

  struct Guard {
    std::vector<Side> sides;
    double size = 0;
  };

  /// The sides that are taken at a place; many in one tensor.
  const std::vector<Side>& sides_at(Place place) {
    std::set<Place> needed{};
    std::vector<Place> open{place};
    while (!open.empty()) {
      const Place each = open.back();
      open.pop_back();
      if (guards_.count(each) != 0 || !needed.insert(each).second) continue;
      open.push_back(places_[each].around);
      if (const auto* const either = std::get_if<InEither>(&places_[each].where))
        open.insert(open.end(), {either->a, either->b});
    }
    for (const Place each : needed) guards_.insert({each, guard_of(places_[each])});  // each after those that it needs
    return guards_.at(place).sides;
  }

  Guard guard_of(const Inner& inner) {
    constexpr double most = 16;
    Guard guard = guards_.at(inner.around);
    if (const auto* const side = std::get_if<OnSide>(&inner.where)) {
      const Part& condition = parts_[side->condition];
      guard.sides.push_back({*condition.rewritten, side->holds});
      guard.size += 1 + (condition.is_cut ? 1 : condition.size);
    } else {
      const auto& either = std::get<InEither>(inner.where);
      const Guard& a = guards_.at(either.a);
      const Guard& b = guards_.at(either.b);
      guard = {{{where(taken(a.sides), truth(true), taken(b.sides)), true}}, 3 + a.size + b.size};
    }
    if (guard.size > most) guard = {{{cutting_.stored(taken(guard.sides)), true}}, 1};
    return guard;
  }

  const Cutting& cutting_;
  std::vector<Part> parts_;  ///< each after those that it takes
  std::map<Formula, std::size_t> index_;
  std::vector<Inner> places_{Inner{}};
  std::map<std::pair<Place, Where>, Place> known_places_;
  std::map<Place, Guard> guards_{{0, {}}};
};

}  // namespace

std::vector<Formula> with_shared_parts(const std::vector<Formula>& formulas, const Cutting& cutting) {
  return SharedParts(cutting).run(formulas);
}

}  // namespace einrel::gradient
