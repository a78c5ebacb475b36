#include "plan/planners/best.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_key.h"
#include "plan/cost/memory.h"
#include "plan/placed_inputs.h"
#include "plan/planners/eindecomp.h"
#include "plan/refine/changing_costs.h"
#include "plan/refine/ordered_candidates.h"
#include "plan/search/cost_network.h"
#include "plan/search/elimination.h"
#include "plan/staying_inputs.h"
#include "plan/transfers.h"

namespace einrel {
namespace {

/// Plans that differ by less than this part of their cost are equal.
constexpr double indistinct = 1e-9;

/// A number for each different value, in the order in which they come.
template <class Value>
class Numbers {
 public:
  std::size_t of(Value value) {
    const auto [known, is_new] = numbers_.try_emplace(std::move(value), values_.size());
    if (is_new) values_.push_back(&known->first);
    return known->second;
  }
  std::size_t count() const { return values_.size(); }
  const Value& operator[](std::size_t number) const { return *values_[number]; }

 private:
  std::map<Value, std::size_t> numbers_;
  std::vector<const Value*> values_;
};

using Layouts = std::vector<Layout>;

/// A way to compute a vertex, with its number among those that equal vertices have.
struct Way {
  VertexPlan plan;
  double alone = 0;
  std::size_t number = 0;
};

/// What a vertex needs of a tensor, operand by operand.
Layouts needs_of(const EinGraph& graph, std::size_t v, std::size_t tensor, const VertexPlan& plan) {
  const Vertex& vertex = graph.vertices[v];
  Layouts needs;
  for (const std::size_t operand : operands_read(vertex)) {
    if (vertex.inputs[operand].index == tensor)
      needs.push_back(needed_layout(vertex, operand, graph.vertices[tensor].bound, plan));
  }
  return needs;
}

class BestSearch {
 public:
  BestSearch(const EinGraph& graph, const PlanRequest& request, const Plan& start, const ProofEffort& effort)
      : graph_(graph),
        effort_(effort),
        transfers_(start.sites, request.machine),
        exact_(graph, request.machine, transfers_),
        costs_(graph, start, request.machine, CostKind::seconds, transfers_),
        enough_((1 - indistinct) * costs_.now().total),
        ways_(graph.vertices.size()) {}

  struct Found {
    double at_least = 0;
    std::optional<Plan> plan;  ///< where one is cheaper
  };

  Found run() {
    collect_ways();
    double bound = 0;
    // With fewer ways, more tensors have few enough costs to be exact.
    while (!is_nothing_left()) {
      const std::size_t before = count_of_ways();
      CostNetwork network = bounded();
      bound = std::max(bound, network.at_least());
      for (const std::size_t v : variables_) keep(v, network.left(at_[v]));
      if (is_nothing_left() || is_each_exact_ || 10 * count_of_ways() > 9 * before) break;
    }
    if (is_nothing_left()) return {costs_.now().total, std::nullopt};
    Found found{bound, std::nullopt};
    eliminate(found);
    return found;
  }

 private:
  /// For some vertex, of what might be cheaper.
  bool is_nothing_left() const {
    return std::any_of(variables_.begin(), variables_.end(), [&](std::size_t v) { return ways_[v].empty(); });
  }

  std::size_t count_of_ways() const {
    return std::accumulate(variables_.begin(), variables_.end(), std::size_t{0},
                           [&](std::size_t sum, std::size_t v) { return sum + ways_[v].size(); });
  }

  /// All ways to compute each vertex; of those that lie and need alike, the cheapest.
  void collect_ways() {
    OrderedCandidates candidates(graph_, all_candidates(graph_, transfers_.sites(), CostKind::seconds));
    double least = 0;
    at_.resize(graph_.vertices.size());
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      if (is_input(graph_.vertices[v])) continue;
      at_[v] = variables_.size();
      variables_.push_back(v);
      std::set<Layouts> known;
      std::vector<Way> ways;
      for (const OrderedCandidate& way : candidates.of(v, costs_))
        ways.push_back({way.plan, costs_.alone(v, way.plan), ways.size()});
      std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) { return a.alone < b.alone; });
      for (Way& way : ways) {
        Layouts layouts{result_layout(graph_.vertices[v], way.plan)};
        const Vertex& vertex = graph_.vertices[v];
        for (const std::size_t operand : operands_read(vertex))
          layouts.push_back(needed_layout(vertex, operand, graph_[vertex.inputs[operand]].bound, way.plan));
        if (known.insert(std::move(layouts)).second) ways_[v].push_back(std::move(way));
      }
      least += ways_[v].front().alone;
    }
    for (const std::size_t v : variables_) {
      const double most = enough_ - least + ways_[v].front().alone;
      std::erase_if(ways_[v], [&](const Way& way) { return way.alone >= most; });
    }
  }

  void keep(std::size_t v, const std::vector<std::size_t>& values) {
    std::vector<Way> kept;
    for (const std::size_t value : values) kept.push_back(std::move(ways_[v][value]));
    ways_[v] = std::move(kept);
  }

  /// What tensors cost at least for each of their readers, and what that leaves.
  CostNetwork bounded() {
    alone_.clear();
    for (const std::size_t v : variables_) {
      alone_.emplace_back();
      for (const Way& way : ways_[v]) alone_.back().push_back(way.alone);
    }
    std::vector<Factor> of_tensors = factors();
    CostNetwork network(std::move(alone_), std::move(of_tensors));
    constexpr double little = 1e-4;
    double bound = 0;
    for (int pass = 0; pass < effort_.passes; ++pass) {
      network.pass();
      const std::size_t left_out = network.leave_out(enough_);
      const double better = network.at_least();
      if (better >= enough_ || (left_out == 0 && better - bound < little * (enough_ - better))) break;
      bound = better;
    }
    return network;
  }

  using Factor = CostNetwork::Factor;

  /// Exact ones of tensors, as far as that takes few numbers; else one for each reader.
  std::vector<Factor> factors() {
    is_each_exact_ = true;
    std::vector<Factor> factors;
    for (std::size_t tensor = 0; tensor < graph_.vertices.size(); ++tensor) {
      const std::vector<std::size_t> scope = costs_.moving_depends_on(tensor);
      if (scope.empty() || shares_next_value(tensor)) continue;
      if (std::optional<Factor> exact = exact_factor(tensor, scope)) {
        factors.push_back(std::move(*exact));
      } else {
        is_each_exact_ = false;
        if (!is_input(graph_.vertices[tensor])) add_factors_of_readers(tensor, factors);
      }
    }
    std::erase_if(factors, [](const Factor& factor) { return factor.variables.size() < 2; });
    return factors;
  }

  /// All that the moves of a tensor depend on: where a vertex leaves it or its next value, and how it needs them.
  Layouts concerning(std::size_t tensor, std::size_t v, const VertexPlan& plan) const {
    Layouts layouts;
    for (const std::size_t moved : costs_.moved_with_input(tensor)) {
      if (moved == v) layouts.push_back(result_layout(graph_.vertices[v], plan));
      for (Layout& need : needs_of(graph_, v, moved, plan)) layouts.push_back(std::move(need));
    }
    return layouts;
  }

  std::optional<Factor> exact_factor(std::size_t tensor, const std::vector<std::size_t>& scope) {
    constexpr double most_of_one = 200'000;
    Factor factor;
    std::vector<std::vector<std::size_t>> first_ways;  // of each class
    ByteKey key;
    double product = 1;
    for (const std::size_t v : scope) {
      Numbers<Layouts> classes;
      factor.variables.push_back(at_[v]);
      factor.classes.emplace_back();
      first_ways.emplace_back();
      for (std::size_t way = 0; way < ways_[v].size(); ++way) {
        const std::size_t number = classes.of(concerning(tensor, v, ways_[v][way].plan));
        if (number == first_ways.back().size()) first_ways.back().push_back(way);
        factor.classes.back().push_back(number);
      }
      factor.counts.push_back(classes.count());
      product *= static_cast<double>(classes.count());
      put_ways(key, tensor, v);
    }
    factor.costs = known_table(key.take(), product * effort_of_one(tensor), most_of_one,
                               [&] { return exact_costs(tensor, scope, first_ways); });
    if (!factor.costs) return std::nullopt;
    if (factor.variables.size() == 1) add_alone(scope.front(), factor);
    return factor;
  }

  /// How long one number of a table takes: each reader is brought its own, and of an input many ways to lay it out are
  /// looked at.
  double effort_of_one(std::size_t tensor) const {
    constexpr double ways_to_lie = 20;
    const double ways = lies_freely(graph_.vertices[tensor]) ? ways_to_lie : 1;
    return ways * static_cast<double>(std::max<std::size_t>(costs_.readers(tensor).size(), 1));
  }

  using Table = std::shared_ptr<const std::vector<double>>;

  /// A table that is known, or made with so much effort, where that is not too much.
  template <class Make>
  Table known_table(std::string key, double effort, double most, Make make) {
    const auto known = tables_.find(key);
    if (known != tables_.end()) return known->second;
    if (effort > most || numbers_ + effort > effort_.numbers) return nullptr;
    numbers_ += effort;
    return tables_.emplace(std::move(key), std::make_shared<const std::vector<double>>(make())).first->second;
  }

  /// What a vertex does of itself to tensors that others do not have: part of what it costs alone.
  void add_alone(std::size_t v, const Factor& factor) {
    for (std::size_t way = 0; way < ways_[v].size(); ++way)
      alone_[at_[v]][way] += (*factor.costs)[factor.classes.front()[way]];
  }

  /// What its table depends on: equal layers have equal ones, as long as equal ways are left of them.
  void put_ways(ByteKey& key, std::size_t tensor, std::size_t v) const {
    put_computation_of_inputs(key, graph_.vertices[v], graph_);
    if (has_many_labels(graph_.vertices[v])) key.put(v);
    for (const std::size_t moved : costs_.moved_with_input(tensor)) {
      key.put(std::size_t{moved == v ? 1U : 0U});
      key.put(operands_of(v, moved));
    }
    std::vector<std::size_t> numbers;
    for (const Way& way : ways_[v]) numbers.push_back(way.number);
    key.put(numbers);
  }

  std::vector<std::size_t> operands_of(std::size_t reader, std::size_t tensor) const {
    std::vector<std::size_t> operands;
    for (const std::size_t operand : operands_read(graph_.vertices[reader])) {
      if (graph_.vertices[reader].inputs[operand].index == tensor) operands.push_back(operand);
    }
    return operands;
  }

  /// The moves of a tensor for every combination of some ways of the vertices that they depend on, row-major.
  std::vector<double> exact_costs(std::size_t tensor, const std::vector<std::size_t>& scope,
                                  const std::vector<std::vector<std::size_t>>& ways) {
    const ChangingCosts::Costed before = costs_.now();
    std::vector<double> costs;
    std::vector<std::size_t> at(scope.size(), 0);
    const auto put = [&](std::size_t i) { costs_.put(scope[i], ways_[scope[i]][ways[i][at[i]]].plan); };
    for (std::size_t i = 0; i < scope.size(); ++i) put(i);
    while (true) {
      costs.push_back(at_most_too_much([&] { return costs_.moving(tensor); }));
      std::size_t i = scope.size();
      while (i > 0 && ++at[i - 1] == ways[i - 1].size()) {
        at[--i] = 0;
        put(i);
      }
      if (i == 0) break;
      put(i - 1);
    }
    costs_.restore(before);
    return costs;
  }

  /// For each reader its share of what the tensor costs at least.
  void add_factors_of_readers(std::size_t tensor, std::vector<Factor>& factors) {
    const std::vector<std::size_t> readers = costs_.readers(tensor);
    for (const std::size_t reader : readers) {
      Numbers<Layout> have;
      Numbers<Layouts> needs;
      Factor factor{{at_[tensor], at_[reader]}, {{}, {}}, {}, nullptr};
      for (const Way& way : ways_[tensor])
        factor.classes[0].push_back(have.of(result_layout(graph_.vertices[tensor], way.plan)));
      for (const Way& way : ways_[reader])
        factor.classes[1].push_back(needs.of(needs_of(graph_, reader, tensor, way.plan)));
      factor.counts = {have.count(), needs.count()};
      ByteKey key;
      put_ways(key, tensor, tensor);
      put_ways(key, tensor, reader);
      key.put(readers.size());
      const double product = static_cast<double>(have.count() * needs.count());
      factor.costs = known_table(key.take(), product, effort_.numbers,
                                 [&] { return least_costs(graph_.vertices[tensor], have, needs, readers.size()); });
      if (factor.costs) factors.push_back(std::move(factor));
    }
  }

  /// A cost, or what no plan that is cheaper can have: of more bytes than 63 bits count, too.
  template <class Cost>
  double at_most_too_much(Cost cost) const {
    try {
      return std::min(cost(), 2 * enough_);
    } catch (const UserError&) {
      return 2 * enough_;
    }
  }

  std::vector<double> least_costs(const Vertex& tensor, const Numbers<Layout>& have, const Numbers<Layouts>& needs,
                                  std::size_t readers) {
    std::vector<double> costs;
    costs.reserve(have.count() * needs.count());
    for (std::size_t h = 0; h < have.count(); ++h) {
      for (std::size_t n = 0; n < needs.count(); ++n) {
        const double cost = at_most_too_much([&] {
          double most = 0;
          for (const Layout& need : needs[n]) most = std::max(most, exact_.seconds_at_least(tensor, have[h], need));
          return most;
        });
        costs.push_back(share_of_step(tensor) * cost / static_cast<double>(readers));
      }
    }
    return costs;
  }

  /// The cheapest plan of the ways that are left, where it takes few enough numbers to find it.
  void eliminate(Found& found) {
    std::vector<std::size_t> domains;
    std::vector<CostTable> tables;
    for (const std::size_t v : variables_) {
      domains.push_back(ways_[v].size());
      CostTable& table = tables.emplace_back(CostTable{{at_[v]}, {}});
      for (const Way& way : ways_[v]) table.costs.push_back(way.alone);
    }
    std::vector<std::vector<std::size_t>> scopes;
    double effort = 0;
    for (std::size_t tensor = 0; tensor < graph_.vertices.size(); ++tensor) {
      if (shares_next_value(tensor)) return;  // what brings it to its states would be in several tables
      double product = effort_of_one(tensor);
      std::vector<std::size_t> variables;
      for (const std::size_t v : costs_.moving_depends_on(tensor)) {
        product *= static_cast<double>(ways_[v].size());
        variables.push_back(at_[v]);
      }
      if (variables.empty()) continue;
      effort += product;
      scopes.push_back(std::move(variables));
    }
    const std::vector<std::size_t> order = min_fill_order(domains.size(), scopes);
    if (effort + largest_table(domains, scopes, order) > effort_.numbers) return;
    for (std::size_t tensor = 0; tensor < graph_.vertices.size(); ++tensor) {
      const std::vector<std::size_t> scope = costs_.moving_depends_on(tensor);
      if (!scope.empty()) tables.push_back(table_of_all_ways(tensor, scope));
    }
    const Assignment best = least_assignment(domains, std::move(tables), order);
    found.at_least = std::max(found.at_least, std::min(best.cost, costs_.now().total));
    Plan plan = costs_.now().plan;
    for (const std::size_t v : variables_) plan.vertices[v] = ways_[v][best.values[at_[v]]].plan;
    found.plan = std::move(plan);
  }

  CostTable table_of_all_ways(std::size_t tensor, const std::vector<std::size_t>& scope) {
    CostTable table;
    std::vector<std::vector<std::size_t>> all;
    for (const std::size_t v : scope) {
      table.variables.push_back(at_[v]);
      all.emplace_back(ways_[v].size());
      std::iota(all.back().begin(), all.back().end(), std::size_t{0});
    }
    table.costs = exact_costs(tensor, scope, all);
    return table;
  }

  /// Whether it is a state whose next value is another one's, too.
  bool shares_next_value(std::size_t tensor) const {
    const auto state = std::find_if(graph_.steps.states.begin(), graph_.steps.states.end(),
                                    [&](const State& of) { return of.now.index == tensor && of.next; });
    if (state == graph_.steps.states.end()) return false;
    return std::count_if(graph_.steps.states.begin(), graph_.steps.states.end(), [&](const State& other) {
             return other.next && graph_.outputs[*other.next] == graph_.outputs[*state->next];
           }) > 1;
  }

  const EinGraph& graph_;
  ProofEffort effort_;
  Transfers transfers_;
  ExactCosts exact_;
  ChangingCosts costs_;  ///< of the plan to start from
  double enough_;
  std::vector<std::vector<Way>> ways_;      ///< per vertex
  std::vector<std::size_t> variables_;      ///< vertices
  std::vector<std::size_t> at_;             ///< per vertex, its number among variables
  std::vector<std::vector<double>> alone_;  ///< per variable, by way
  std::map<std::string, Table> tables_;
  double numbers_ = 0;  ///< of these, as effort
  bool is_each_exact_ = false;
};

/// Inputs laid out so that it costs least.
Plan with_inputs_laid_out(const EinGraph& graph, Plan plan, const Machine& machine) {
  Transfers transfers(plan.sites, machine);
  ChangingCosts costs(graph, std::move(plan), machine, CostKind::seconds, transfers);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (!lies_freely(graph.vertices[v])) continue;
    if (const auto change = costs.with_laid_out(v)) costs.take(*change);
  }
  return costs.now().plan;
}

}  // namespace

Plan best_plan(const EinGraph& graph, const PlanRequest& request, const Plan& start, const ProofEffort& effort) {
  Plan best = start;
  double cost = costs_of(graph, start, request.machine).of(CostKind::seconds);
  const auto take_if_better = [&](const Plan& plan) {
    Plan other = with_inputs_laid_out(graph, plan, request.machine);
    const double seconds = costs_of(graph, other, request.machine).of(CostKind::seconds);
    if (seconds >= cost || (request.memory && peak_of(graph, other).bytes > *request.memory)) return;
    best = std::move(other);
    cost = seconds;
  };
  take_if_better(start);
  const BestSearch::Found found = BestSearch(graph, request, best, effort).run();
  if (found.plan) take_if_better(*found.plan);
  best.cuts.reset();
  best.at_least = std::min(found.at_least, cost);
  return best;
}

}  // namespace einrel
