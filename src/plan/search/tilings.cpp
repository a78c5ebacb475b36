#include "plan/search/tilings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <variant>

#include "einsum/graph/vertex_facts.h"
#include "plan/search/elimination.h"

namespace einrel {
namespace {

/// What a conversion begins with: a tensor that lies in a way, or of which each group has a partial sum (SoyBean's
/// red).
struct Partial {
  bool operator==(const Partial&) const = default;
};
using Before = std::variant<Tiling, Partial>;

/// Elements that all groups together receive when a tensor of so many is converted (SoyBean, section 4.2).
double conversion(const Before& before, const Tiling& after, double elements, double groups) {
  if (std::holds_alternative<Partial>(before)) return elements * (groups - 1) * (after ? 1 : 2);
  const Tiling& from = std::get<Tiling>(before);
  if (from == after || !from) return 0;
  return elements * (groups - 1) / (after ? groups : 1);
}

/// What a vertex does if a label is divided: how each operand has to lie, and how its result comes.
struct Form {
  std::optional<std::size_t> label;
  std::vector<Tiling> operands;
  Before result;
};

Tiling dimension_of(const std::vector<std::optional<std::size_t>>& labels, std::size_t label) {
  const auto at = std::find(labels.begin(), labels.end(), label);
  if (at == labels.end()) return std::nullopt;
  return static_cast<std::size_t>(at - labels.begin());
}

/// What no cut changes.
struct VertexForms {
  std::vector<Form> forms;  ///< of all labels that may be cut
  Form undivided;           ///< what every group does alike
  PartitionVector most;     ///< per label
};

VertexForms forms_of(const Vertex& vertex, const EinGraph& graph) {
  VertexForms result;
  if (is_input(vertex)) return result;
  result.undivided = {std::nullopt, std::vector<Tiling>(vertex.inputs.size()), Tiling{}};
  result.most = most_parts_apart(vertex, graph);  // SoyBean's tilings know no halos
  const std::vector<std::optional<std::size_t>> output = result_labels(vertex);
  std::vector<Form> of_no_operand;
  for (std::size_t l = 0; l < result.most.size(); ++l) {
    if (result.most[l] < 2) continue;
    Form form{l, {}, Partial{}};
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o)
      form.operands.push_back(dimension_of(operand_labels(vertex, o), l));
    if (const Tiling divided = dimension_of(output, l)) form.result = divided;
    const bool is_read = std::any_of(form.operands.begin(), form.operands.end(), [](const Tiling& t) { return t; });
    (is_read ? result.forms : of_no_operand).push_back(std::move(form));
  }
  // SoyBean has no form whose operands are all replicated. But where nothing else is to be had, dividing is as good.
  if (result.forms.empty()) result.forms = std::move(of_no_operand);
  return result;
}

/// Which of equal tilings is taken.
enum class Preference { replicated, divided };

/// How a tensor lies, and what a vertex does, in each of the cuts that are made at once.
using Tilings = std::vector<Tiling>;
using Forms = std::vector<const Form*>;

/// Cuts, one inside the other: one after the other, or all at once.
class Cutter {
 public:
  Cutter(const EinGraph& graph, const std::vector<std::size_t>& order) : graph_(graph), order_(order) {
    for (const Vertex& vertex : graph.vertices) {
      forms_.push_back(forms_of(vertex, graph));
      std::vector<double>& extents = extents_.emplace_back();
      for (const Extent extent : vertex.bound) extents.push_back(static_cast<double>(extent.value()));
    }
  }

  void prefer(Preference preference) { preference_ = preference; }

  /// Divides what the cuts before left; forms that are not allowed stay out.
  TilingCut cut(std::int64_t groups, const AllowedForms* allowed) {
    list_ways({groups}, allowed);
    const Assignment found = least_assignment(domains(), tables(), order_);
    is_least_ = is_least_ && found.is_least;
    return apply(found);
  }

  /// What all these cuts move at least; nothing where there are more ways than are compared.
  std::optional<double> least_of_all(const std::vector<std::int64_t>& groups) {
    constexpr std::size_t most_entries = std::size_t{1} << 22U;
    if (ways(groups.size()) > static_cast<double>(most_entries)) return std::nullopt;
    list_ways(groups, nullptr);
    const Assignment found = least_assignment(domains(), tables(), order_, most_entries);
    return found.is_least ? std::optional(found.cost) : std::nullopt;
  }

  bool is_least() const { return is_least_; }

 private:
  /// At most so many entries have the tables of so many cuts at once.
  double ways(std::size_t cuts) const {
    double entries = 0;
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      const std::vector<VertexId>& inputs = graph_.vertices[v].inputs;
      const auto of_tensor = [&](std::size_t tensor) {
        const std::size_t both = std::max<std::size_t>(forms_[v].forms.size(), 1) * (extents_[tensor].size() + 1);
        return std::pow(static_cast<double>(both), static_cast<double>(cuts));
      };
      entries += of_tensor(v);
      for (const VertexId input : inputs) entries += of_tensor(input.index);
    }
    return entries;
  }

  /// All ways for tensors to lie and for vertices to be computed in these cuts.
  void list_ways(const std::vector<std::int64_t>& groups, const AllowedForms* allowed) {
    groups_ = groups;
    values_.clear();
    possible_.clear();
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      values_.push_back(tilings_of(extents_[v]));
      possible_.push_back(forms_possible(v, allowed == nullptr ? nullptr : &(*allowed)[v]));
    }
  }

  /// What is left of something that these cuts, the first so many, divided.
  template <class Number, class IsDivided>
  Number left_of(Number whole, std::size_t cuts, const IsDivided& is_divided) const {
    for (std::size_t c = 0; c < cuts; ++c) {
      if (is_divided(c)) whole /= static_cast<Number>(groups_[c]);
    }
    return whole;
  }

  std::vector<Tilings> tilings_of(const std::vector<double>& extents) const {
    std::vector<Tilings> all{{}};
    for (std::size_t c = 0; c < groups_.size(); ++c) {
      std::vector<Tilings> longer;
      for (const Tilings& before : all) {
        const auto add = [&](const Tiling& tiling) { longer.emplace_back(before).push_back(tiling); };
        if (preference_ == Preference::replicated) add(std::nullopt);
        for (std::size_t d = 0; d < extents.size(); ++d) {
          const double left = left_of(extents[d], c, [&](std::size_t earlier) { return before[earlier] == d; });
          if (left >= static_cast<double>(groups_[c])) add(d);
        }
        if (preference_ == Preference::divided) add(std::nullopt);
      }
      all = std::move(longer);
    }
    return all;
  }

  /// Of inputs none.
  std::vector<Forms> forms_possible(std::size_t v, const std::vector<std::size_t>* allowed) const {
    if (is_input(graph_.vertices[v])) return {};
    const auto is_allowed = [&](std::size_t label) {
      return allowed == nullptr || std::find(allowed->begin(), allowed->end(), label) != allowed->end();
    };
    std::vector<Forms> all{{}};
    for (std::size_t c = 0; c < groups_.size(); ++c) {
      std::vector<Forms> longer;
      for (const Forms& before : all) {
        Forms possible;
        for (const Form& form : forms_[v].forms) {
          const std::int64_t left = left_of(forms_[v].most[*form.label], c,
                                            [&](std::size_t earlier) { return before[earlier]->label == form.label; });
          if (left >= groups_[c]) possible.push_back(&form);
        }
        const auto others = std::stable_partition(possible.begin(), possible.end(),
                                                  [&](const Form* form) { return is_allowed(*form->label); });
        if (others != possible.begin()) possible.erase(others, possible.end());
        if (possible.empty()) possible.push_back(&forms_[v].undivided);
        for (const Form* const form : possible) longer.emplace_back(before).push_back(form);
      }
      all = std::move(longer);
    }
    return all;
  }

  std::vector<std::size_t> domains() const {
    std::vector<std::size_t> domains;
    for (const std::vector<Tilings>& values : values_) domains.push_back(values.size());
    for (const std::vector<Forms>& forms : possible_) domains.push_back(std::max<std::size_t>(forms.size(), 1));
    return domains;
  }

  std::vector<CostTable> tables() const {
    std::vector<CostTable> tables;
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      if (!possible_[v].empty()) add_tables(v, tables);
    }
    for (const State& state : graph_.steps.states) {
      if (state.next) tables.push_back(table_of_state(state));
    }
    return tables;
  }

  /// What all cuts move to convert a tensor that lies so at the end: `ends(c)` gives what the conversion of a cut
  /// begins and ends with.
  template <class Ends>
  double moved(std::size_t tensor, const Tilings& tilings, const Ends& ends) const {
    const std::vector<double>& extents = extents_[tensor];
    double elements = std::accumulate(extents.begin(), extents.end(), 1.0, std::multiplies<>());
    double alike = 1;  // groups that each do the same
    double sum = 0;
    for (std::size_t c = 0; c < groups_.size(); ++c) {
      const auto groups = static_cast<double>(groups_[c]);
      const auto [before, after] = ends(c);
      sum += alike * conversion(before, after, elements, groups);
      alike *= groups;
      if (tilings[c]) elements /= groups;
    }
    return sum;
  }

  /// Costs of a vertex, with its form as a variable of its own, behind those of all tensors: of the result and of each
  /// tensor that it reads apart, so that a sum of many operands has no table of all their tilings.
  void add_tables(std::size_t v, std::vector<CostTable>& tables) const {
    const std::size_t form_of_vertex = graph_.vertices.size() + v;
    std::map<std::size_t, CostTable> by_tensor;
    const auto add = [&](std::size_t tensor, const auto& ends) {
      CostTable& table = by_tensor[tensor];
      table.variables = {form_of_vertex, tensor};
      table.costs.resize(possible_[v].size() * values_[tensor].size(), 0);
      auto cost = table.costs.begin();
      for (const Forms& forms : possible_[v]) {
        for (const Tilings& tilings : values_[tensor])
          *cost++ += moved(tensor, tilings, [&](std::size_t c) { return ends(*forms[c], tilings[c]); });
      }
    };
    add(v, [](const Form& form, const Tiling& tiling) { return std::pair<Before, Tiling>(form.result, tiling); });
    const std::vector<VertexId>& inputs = graph_.vertices[v].inputs;
    for (std::size_t o = 0; o < inputs.size(); ++o) {
      add(inputs[o].index,
          [o](const Form& form, const Tiling& tiling) { return std::pair<Before, Tiling>(tiling, form.operands[o]); });
    }
    for (auto& [tensor, table] : by_tensor) tables.push_back(std::move(table));
  }

  CostTable table_of_state(const State& state) const {
    const std::size_t now = state.now.index;
    const std::size_t next = graph_.outputs[*state.next].index;
    if (next == now) return {{}, {0}};
    CostTable table{{next, now}, {}};
    for (const Tilings& left : values_[next]) {
      for (const Tilings& wanted : values_[now]) {
        table.costs.push_back(
            moved(now, wanted, [&](std::size_t c) { return std::pair<Before, Tiling>(left[c], wanted[c]); }));
      }
    }
    return table;
  }

  /// Of one cut.
  TilingCut apply(const Assignment& found) {
    const std::int64_t groups = groups_.front();
    TilingCut cut{groups, found.cost, {}, {}};
    for (std::size_t v = 0; v < values_.size(); ++v) {
      cut.tilings.push_back(values_[v][found.values[v]].front());
      const std::vector<Forms>& forms = possible_[v];
      cut.forms.push_back(forms.empty() ? std::nullopt : forms[found.values[values_.size() + v]].front()->label);
      if (const Tiling& tiling = cut.tilings[v]) extents_[v][*tiling] /= static_cast<double>(groups);
      if (cut.forms[v]) forms_[v].most[*cut.forms[v]] /= groups;
    }
    return cut;
  }

  const EinGraph& graph_;
  const std::vector<std::size_t>& order_;  ///< in which tensors are eliminated
  Preference preference_ = Preference::replicated;
  std::vector<VertexForms> forms_;
  std::vector<std::vector<double>> extents_;  ///< of each tensor in a group, on average
  std::vector<std::int64_t> groups_;          ///< of each cut that is made now
  std::vector<std::vector<Tilings>> values_;  ///< that each tensor may have in these cuts
  std::vector<std::vector<Forms>> possible_;  ///< of each vertex in these cuts
  bool is_least_ = true;
};

/// The form of a vertex depends on each tensor that it reads or makes, and they on it; a step hands some tensors to the
/// next as others.
std::vector<std::size_t> order_of_elimination(const EinGraph& graph) {
  const std::size_t tensors = graph.vertices.size();
  std::vector<std::vector<std::size_t>> scopes;
  for (std::size_t v = 0; v < tensors; ++v) {
    scopes.push_back({tensors + v, v});
    for (const VertexId input : graph.vertices[v].inputs) scopes.push_back({tensors + v, input.index});
  }
  for (const State& state : graph.steps.states) {
    if (state.next) scopes.push_back({state.now.index, graph.outputs[*state.next].index});
  }
  return min_fill_order(2 * tensors, scopes);
}

/// Operations that a site has to do: of a vertex that a cut does not divide, each of its groups does all.
double operations_of_site(const EinGraph& graph, const TilingCuts& cuts) {
  double sum = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    double parts = 1;
    for (const TilingCut& cut : cuts.cuts) parts *= cut.forms[v] ? static_cast<double>(cut.groups) : 1;
    sum += flops(graph.vertices[v]) / parts;
  }
  return sum;
}

/// The best cuts up to now.
struct BestCuts {
  TilingCuts cuts;
  std::pair<double, double> cost{std::numeric_limits<double>::infinity(), 0};  ///< elements, operations of a site
};

/// Makes the cuts that are wanted, unless they move more than the best ones.
void consider(const EinGraph& graph, Cutter cutter, const CutsWanted& wanted, BestCuts& best) {
  TilingCuts found;
  for (const std::int64_t groups : wanted.groups) {
    const std::size_t last = std::min(found.cuts.size() + 1, wanted.allowed.size());
    found.cuts.push_back(cutter.cut(groups, last == 0 ? nullptr : &wanted.allowed[last - 1]));
    if (found.moved() > best.cost.first) return;
  }
  found.is_least = cutter.is_least();
  const std::pair cost(found.moved(), operations_of_site(graph, found));
  if (cost < best.cost) best = {std::move(found), cost};
}

}  // namespace

TilingCuts tiling_cuts(const EinGraph& graph, const std::vector<CutsWanted>& ways) {
  const std::vector<std::size_t> order = order_of_elimination(graph);
  Cutter cutter(graph, order);
  BestCuts best;
  for (const CutsWanted& wanted : ways) {
    for (const Preference preference : {Preference::replicated, Preference::divided}) {
      cutter.prefer(preference);
      consider(graph, cutter, wanted, best);
    }
  }
  return std::move(best.cuts);
}

std::optional<double> least_moved(const EinGraph& graph, const std::vector<std::int64_t>& groups) {
  const std::vector<std::size_t> order = order_of_elimination(graph);
  return Cutter(graph, order).least_of_all(groups);
}

std::vector<PartitionVector> grids_of(const EinGraph& graph, const TilingCuts& cuts) {
  std::vector<PartitionVector> grids;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    PartitionVector& grid = grids.emplace_back(label_extents(graph.vertices[v]).size(), 1);
    for (const TilingCut& cut : cuts.cuts) {
      if (cut.forms[v]) grid[*cut.forms[v]] *= cut.groups;
    }
  }
  return grids;
}

std::string tilings_text(const TilingCuts& cuts, std::size_t tensor, std::size_t dimensions) {
  std::vector<std::string> texts;
  for (const TilingCut& cut : cuts.cuts) {
    const Tiling& tiling = cut.tilings[tensor];
    if (!tiling) {
      texts.emplace_back("r");
    } else if (dimensions == 2) {
      texts.emplace_back(*tiling == 0 ? "R" : "C");
    } else {
      texts.push_back(fmt::format("P{}", *tiling + 1));
    }
  }
  return fmt::format("{}", fmt::join(texts, "."));
}

}  // namespace einrel
