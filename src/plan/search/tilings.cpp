#include "plan/search/tilings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <variant>

#include "einsum/vertex_facts.h"
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
  PartitionVector most;     ///< per label
};

VertexForms forms_of(const Vertex& vertex, const EinGraph& graph) {
  VertexForms result;
  if (is_input(vertex)) return result;
  result.most = most_parts(vertex, graph);
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

/// What every group does alike.
Form undivided(const Vertex& vertex) { return {std::nullopt, std::vector<Tiling>(vertex.inputs.size()), Tiling{}}; }

/// Which of equal tilings is taken.
enum class Preference { replicated, divided };

/// The cuts, one inside the other.
class Cutter {
 public:
  Cutter(const EinGraph& graph, const std::vector<std::size_t>& order, Preference preference)
      : graph_(graph), order_(order), preference_(preference) {
    for (const Vertex& vertex : graph.vertices) {
      forms_.push_back(forms_of(vertex, graph));
      std::vector<double>& extents = extents_.emplace_back();
      for (const Extent extent : vertex.bound) extents.push_back(static_cast<double>(extent.value()));
    }
  }

  /// Divides what the cuts before left; forms that are not allowed stay out.
  TilingCut cut(std::int64_t groups, const AllowedForms* allowed) {
    groups_ = groups;
    values_.clear();
    for (const std::vector<double>& extents : extents_) values_.push_back(tilings_of(extents));
    std::vector<CostTable> tables;
    std::vector<std::vector<Form>> forms;
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      forms.push_back(possible(v, allowed == nullptr ? nullptr : &(*allowed)[v]));
      if (!forms.back().empty()) add_tables(v, forms.back(), tables);
    }
    for (const State& state : graph_.steps.states) {
      if (state.next) tables.push_back(table_of_state(state));
    }
    std::vector<std::size_t> domains;
    for (const std::vector<Tiling>& values : values_) domains.push_back(values.size());
    for (const std::vector<Form>& of_vertex : forms) domains.push_back(std::max<std::size_t>(of_vertex.size(), 1));
    const Assignment found = least_assignment(domains, std::move(tables), order_);
    is_least_ = is_least_ && found.is_least;
    return apply(found, forms);
  }

  bool is_least() const { return is_least_; }

 private:
  std::vector<Tiling> tilings_of(const std::vector<double>& extents) const {
    std::vector<Tiling> values;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] >= static_cast<double>(groups_)) values.emplace_back(d);
    }
    values.insert(preference_ == Preference::replicated ? values.begin() : values.end(), Tiling{});
    return values;
  }

  double elements(std::size_t tensor) const {
    return std::accumulate(extents_[tensor].begin(), extents_[tensor].end(), 1.0, std::multiplies<>());
  }

  std::vector<Form> possible(std::size_t v, const std::vector<std::size_t>* allowed) const {
    std::vector<Form> possible;
    if (is_input(graph_.vertices[v])) return possible;
    for (const Form& form : forms_[v].forms) {
      const bool is_allowed = allowed == nullptr || allowed->empty() ||
                              std::find(allowed->begin(), allowed->end(), *form.label) != allowed->end();
      if (is_allowed && forms_[v].most[*form.label] >= groups_) possible.push_back(form);
    }
    if (possible.empty()) possible.push_back(undivided(graph_.vertices[v]));
    return possible;
  }

  /// What it costs to convert from each of the tilings that a tensor may have, or to it.
  std::vector<double> to_form(std::size_t tensor, const Tiling& needed) const {
    std::vector<double> costs;
    for (const Tiling& value : values_[tensor])
      costs.push_back(conversion(value, needed, elements(tensor), static_cast<double>(groups_)));
    return costs;
  }
  std::vector<double> from_form(std::size_t tensor, const Before& made) const {
    std::vector<double> costs;
    for (const Tiling& value : values_[tensor])
      costs.push_back(conversion(made, value, elements(tensor), static_cast<double>(groups_)));
    return costs;
  }

  /// Costs of a vertex, with its form as a variable of its own, behind those of all tensors: of the result and of each
  /// tensor that it reads apart, so that a sum of many operands has no table of all their tilings.
  void add_tables(std::size_t v, const std::vector<Form>& forms, std::vector<CostTable>& tables) const {
    const std::size_t form_of_vertex = graph_.vertices.size() + v;
    std::map<std::size_t, CostTable> by_tensor;
    const auto add = [&](std::size_t tensor, const auto& costs_of_form) {
      CostTable& table = by_tensor[tensor];
      table.variables = {form_of_vertex, tensor};
      table.costs.resize(forms.size() * values_[tensor].size(), 0);
      auto cost = table.costs.begin();
      for (const Form& form : forms) {
        for (const double of_value : costs_of_form(form)) *cost++ += of_value;
      }
    };
    add(v, [&](const Form& form) { return from_form(v, form.result); });
    const std::vector<VertexId>& inputs = graph_.vertices[v].inputs;
    for (std::size_t o = 0; o < inputs.size(); ++o)
      add(inputs[o].index, [&](const Form& form) { return to_form(inputs[o].index, form.operands[o]); });
    for (auto& [tensor, table] : by_tensor) tables.push_back(std::move(table));
  }

  CostTable table_of_state(const State& state) const {
    const std::size_t now = state.now.index;
    const std::size_t next = graph_.outputs[*state.next].index;
    CostTable table{{next, now}, {}};
    if (next == now) return {{}, {0}};
    for (const Tiling& left : values_[next]) {
      for (const Tiling& wanted : values_[now])
        table.costs.push_back(conversion(left, wanted, elements(now), static_cast<double>(groups_)));
    }
    return table;
  }

  TilingCut apply(const Assignment& found, const std::vector<std::vector<Form>>& forms) {
    TilingCut cut{groups_, found.cost, {}, {}};
    for (std::size_t v = 0; v < values_.size(); ++v) cut.tilings.push_back(values_[v][found.values[v]]);
    for (std::size_t v = 0; v < values_.size(); ++v)
      cut.forms.push_back(forms[v].empty() ? std::nullopt : forms[v][found.values[values_.size() + v]].label);
    for (std::size_t v = 0; v < values_.size(); ++v) {
      if (const Tiling& tiling = cut.tilings[v]) extents_[v][*tiling] /= static_cast<double>(groups_);
      if (cut.forms[v]) forms_[v].most[*cut.forms[v]] /= groups_;
    }
    return cut;
  }

  const EinGraph& graph_;
  const std::vector<std::size_t>& order_;  ///< in which tensors are eliminated
  Preference preference_;
  std::vector<VertexForms> forms_;
  std::vector<std::vector<double>> extents_;  ///< of each tensor in a group, on average
  std::vector<std::vector<Tiling>> values_;   ///< that each tensor may have in this cut
  std::int64_t groups_ = 2;
  bool is_least_ = true;
};

/// Ascending, each as often as it divides.
std::vector<std::int64_t> prime_factors(std::int64_t number) {
  std::vector<std::int64_t> factors;
  for (std::int64_t prime = 2; prime * prime <= number; ++prime) {
    for (; number % prime == 0; number /= prime) factors.push_back(prime);
  }
  if (number > 1) factors.push_back(number);
  return factors;
}

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

TilingCuts cuts_by(const EinGraph& graph, const std::vector<std::int64_t>& groups,
                   const std::vector<std::size_t>& order, const AllowedForms* allowed, Preference preference) {
  Cutter cutter(graph, order, preference);
  TilingCuts result;
  for (const std::int64_t count : groups) result.cuts.push_back(cutter.cut(count, allowed));
  result.is_least = cutter.is_least();
  return result;
}

}  // namespace

double TilingCuts::moved() const {
  double moved = 0;
  double groups = 1;
  for (const TilingCut& cut : cuts) {
    moved += groups * cut.moved;
    groups *= static_cast<double>(cut.groups);
  }
  return moved;
}

TilingCuts tiling_cuts(const EinGraph& graph, std::int64_t sites, const AllowedForms* allowed) {
  const std::vector<std::int64_t> groups = prime_factors(sites);
  const std::vector<std::size_t> order = order_of_elimination(graph);
  TilingCuts replicated = cuts_by(graph, groups, order, allowed, Preference::replicated);
  TilingCuts divided = cuts_by(graph, groups, order, allowed, Preference::divided);
  return divided.moved() < replicated.moved() ? divided : replicated;
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
