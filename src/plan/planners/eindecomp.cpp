#include "plan/planners/eindecomp.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <tuple>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/placed_inputs.h"
#include "plan/planners/schemes.h"
#include "plan/refine/numbering.h"
#include "plan/refine/polish.h"
#include "plan/refine/reduce_as_received.h"
#include "plan/search/dominance.h"
#include "plan/search/search.h"

namespace einrel {
namespace {

template <class Grids>
std::vector<VertexPlan> one_part_per_site_each(const Grids& grids) {
  std::vector<VertexPlan> plans;
  plans.reserve(grids.size());
  for (const PartitionVector& grid : grids) plans.push_back(one_part_per_site(grid));
  return plans;
}

VertexPlan whole(const Vertex& vertex) { return one_part_per_site(PartitionVector(label_extents(vertex).size(), 1)); }

/// What is left of a number without these prime factors.
std::int64_t without_factors(std::int64_t number, std::initializer_list<std::int64_t> primes) {
  for (const std::int64_t prime : primes) {
    while (number % prime == 0) number /= prime;
  }
  return number;
}

/// How many sites a vertex may use where using fewer than all may be better: instead of numbers that can be cut in few
/// ways (7, 11, 26) ones below that can be cut in many, and for small vertices powers of 4.
std::vector<std::int64_t> numbers_of_sites(std::int64_t sites) {
  std::vector<std::int64_t> numbers{sites};
  if (without_factors(sites, {2, 3, 5}) > 1) {
    std::int64_t smooth = sites - 1;
    numbers.push_back(smooth);
    while (without_factors(smooth, {2, 3}) > 1) --smooth;
    numbers.push_back(smooth);
  }
  for (std::int64_t power = 1; power < sites; power *= 4) numbers.push_back(power);
  return numbers;
}

/// Searches compare every two of neighbouring vertices.
constexpr std::size_t most_candidates = 1000;

/// Fewest sites first, and among as many those that cut the first labels: of plans that cost the same the first is
/// taken, and parts along an outer label lie in one stretch of memory, which is copied and computed faster than many
/// short ones.
struct FewestThenFirstLabels {
  bool operator()(const PartitionVector& a, const PartitionVector& b) const {
    const std::int64_t sites_of_a = product(a);
    const std::int64_t sites_of_b = product(b);
    return sites_of_a != sites_of_b ? sites_of_a < sites_of_b : a > b;
  }

 private:
  static std::int64_t product(const PartitionVector& grid) {
    return std::accumulate(grid.begin(), grid.end(), std::int64_t{1}, std::multiplies<>());
  }
};
using Grids = std::set<PartitionVector, FewestThenFirstLabels>;

/// The factorizations of all these numbers; where they are too many, those that cut the fewest labels.
Grids some_factorizations(const PartitionVector& most, const std::vector<std::int64_t>& numbers) {
  double count = 0;
  for (const std::int64_t number : numbers) count += count_of_factorizations(number, most.size());
  Grids chosen;
  for (std::size_t cut = count <= most_candidates ? most.size() : 1; cut <= most.size(); ++cut) {
    Grids all;
    for (const std::int64_t number : numbers) {
      for (PartitionVector& grid : factorizations(most, number, cut)) all.insert(std::move(grid));
    }
    if (!chosen.empty() && all.size() > most_candidates) break;
    chosen = std::move(all);
  }
  if (chosen.empty()) chosen.insert(PartitionVector(most.size(), 1));
  return chosen;
}

Grids sampled_grids(const SampledCuts& sampled, std::size_t v) {
  std::vector<PartitionVector> grids = sampled.of(v, sampled.most_of(v));
  return {std::make_move_iterator(grids.begin()), std::make_move_iterator(grids.end())};
}

/// The labels of the result to share it out along, of those that are long enough for a piece to each of `sites` sites:
/// the one of which a site has most, and the same of those that are whole, which leave the numbering of sites free.
std::set<std::size_t> labels_to_scatter(const Vertex& vertex, const PartitionVector& grid, const PartitionVector& most,
                                        std::int64_t sites) {
  std::optional<std::size_t> longest;
  std::optional<std::size_t> longest_whole;
  const auto is_longer = [&](std::size_t label, std::optional<std::size_t> than) {
    return !than || most[label] / grid[label] > most[*than] / grid[*than];
  };
  for (const std::size_t label : std::get<EinSum>(vertex.op).output) {
    if (most[label] / grid[label] < sites) continue;
    if (is_longer(label, longest)) longest = label;
    if (grid[label] == 1 && is_longer(label, longest_whole)) longest_whole = label;
  }
  std::set<std::size_t> labels;
  if (longest) labels.insert(*longest);
  if (longest_whole) labels.insert(*longest_whole);
  return labels;
}

/// Of plans with one part per site, those that share out the result, each site getting a part of it.
void add_scattered(const Vertex& vertex, const PartitionVector& most, std::vector<VertexPlan>& plans) {
  const std::size_t count = plans.size();
  for (std::size_t p = 0; p < count; ++p) {
    const std::int64_t sites = partial_sites(vertex, plans[p]);
    if (sites == 1) continue;
    for (const std::size_t label : labels_to_scatter(vertex, plans[p].grid, most, sites)) {
      plans.push_back(plans[p]);
      plans.back().parts[label] *= sites;
      plans.back().scatter = label;
    }
  }
}

/// Whole, but computed alike by all sites: small tensors that all of them need.
void add_computed_by_all(const Vertex& vertex, std::int64_t sites, std::vector<VertexPlan>& plans) {
  if (sites == 1) return;
  plans.push_back(whole(vertex));
  plans.back().copies = {{sites, 1}};
}

/// What is computed alike by several sites in plans that searches start from, at least on as many sites.
void add_copied_of(const std::vector<Plan>& starts, std::size_t v, std::int64_t least_sites,
                   std::vector<VertexPlan>& plans) {
  for (const Plan& start : starts) {
    const VertexPlan& own = start.vertices[v];
    const bool is_known =
        std::any_of(plans.begin(), plans.end(), [&](const VertexPlan& plan) { return is_cut_alike(plan, own); });
    if (!own.copies.empty() && sites_used(own) >= least_sites && !is_known) plans.push_back(own);
  }
}

/// Whole first; spread over as many sites as vertices may use. Where a vertex wants copies of fewer parts, finer ones
/// are as good: each of the sites that want a copy has a piece of it.
std::vector<VertexPlan> input_layouts(const Vertex& vertex, std::size_t v, std::int64_t sites,
                                      const SampledCuts* sampled) {
  if (has_many_labels(vertex)) return one_part_per_site_each(sampled_grids(*sampled, v));
  PartitionVector most;
  for (const Extent extent : vertex.bound) most.push_back(std::max<std::int64_t>(extent.value(), 1));
  return one_part_per_site_each(some_factorizations(most, numbers_of_sites(sites)));  // in order: whole is the first
}

/// Of the beam: a few seconds for thousands of vertices, milliseconds for tens.
std::size_t steps_per_vertex(const EinGraph& graph) {
  constexpr std::size_t all = 1'500'000;
  constexpr std::size_t most = 1000;
  return std::min(most, all / std::max<std::size_t>(graph.vertices.size(), 1));
}

/// What the vertices of a plan cost where nothing is brought.
double cost_alone(const EinGraph& graph, const Plan& plan, const CostModel& model) {
  double cost = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) cost += model.of_vertex(graph, v, plan.vertices[v]);
  return cost;
}

struct CostedPlan {
  Plan plan;
  bool is_by_product = false;
  double cost = std::numeric_limits<double>::infinity();
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
};

/// The cheapest of several plans; of those that cost the same the first, and rather another one than that of a product
/// of schemes.
class Cheapest {
 public:
  Cheapest(const EinGraph& graph, const Machine& machine, CostKind kind, Transfers& transfers)
      : graph_(graph), machine_(machine), kind_(kind), transfers_(transfers) {}

  /// Whether one that costs at least so much may be it.
  bool may_be(double least) const { return !found_ || least < found_->cost; }

  /// What it costs.
  double consider(const Plan& plan) {
    CostedPlan other{.plan = plan, .is_by_product = is_product_of_schemes(plan.planner)};
    try {
      const PlanCosts costs = costs_of(graph_, plan, machine_, transfers_);
      other.cost = costs.of(kind_);
      other.bytes = costs.bytes;
    } catch (const UserError&) {  // more bytes than 63 bits count
    }
    const double cost = other.cost;
    const auto rank = [](const CostedPlan& of) { return std::pair(of.cost, of.is_by_product); };
    if (!found_ || rank(other) < rank(*found_)) found_ = std::move(other);
    return cost;
  }

  /// Nothing before any was considered.
  const std::optional<CostedPlan>& found() const { return found_; }

 private:
  const EinGraph& graph_;
  const Machine& machine_;
  CostKind kind_;
  Transfers& transfers_;
  std::optional<CostedPlan> found_;
};

/// Modelled seconds are not so exact that one could tell plans apart that differ by less than this part of them. Bytes
/// are exact, and those of plans that people make by hand move in few exchanges.
constexpr double resolution = 0.05;

/// Whether `known` is about as fast as the plan that a search has found, and moves no more.
bool is_as_good(const std::optional<CostedPlan>& known, const CostedPlan& found) {
  return known && (1 - resolution) * known->cost <= found.cost && known->bytes <= found.bytes;
}

/// The cheapest of the plans of others, some of which searches are to start from; all of them are considered.
std::vector<Plan> starts_among(const EinGraph& graph, const std::vector<Plan>& others, const CostModel& model,
                               Cheapest& cheapest) {
  std::vector<std::pair<double, std::size_t>> by_cost;
  for (std::size_t p = 0; p < others.size(); ++p) {
    const double alone = cost_alone(graph, others[p], model);
    by_cost.emplace_back(cheapest.may_be(alone) ? cheapest.consider(others[p]) : alone, p);
  }
  std::stable_sort(by_cost.begin(), by_cost.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  constexpr std::size_t most = 16;
  std::vector<Plan> starts;
  for (const auto& [cost, p] : by_cost) {
    if (starts.size() < most) starts.push_back(others[p]);
  }
  return starts;
}

Plan plan_of(const EinGraph& graph, const SearchSpace& space, const SearchSpace::Choice& choice, Transfers& transfers) {
  Plan plan{"", transfers.sites(), {}};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) plan.vertices.push_back(space.candidates(v)[choice[v]]);
  number_sites(graph, plan, transfers);
  return plan;
}

/// Of the time that all vertices take on all sites.
constexpr double next_to_nothing = 0.01;

}  // namespace

Candidates all_candidates(const EinGraph& graph, std::int64_t sites, CostKind kind) {
  constexpr std::int64_t few_sites = 64;
  std::vector<std::int64_t> numbers = divisors_of(sites);
  for (std::int64_t number = 1; number < std::min(sites, few_sites + 1); ++number) {
    if (without_factors(number, {2, 3, 5}) == 1) numbers.push_back(number);
  }
  const std::vector<bool> may_idle(graph.vertices.size(), kind == CostKind::seconds);
  const bool has_some = std::any_of(graph.vertices.begin(), graph.vertices.end(), has_many_labels);
  const Candidates sampled = has_some ? site_candidates(graph, sites, kind, may_idle) : Candidates();
  return [&graph, sites, kind, numbers, sampled](const Vertex& vertex, std::size_t v) {
    if (has_many_labels(vertex)) return sampled(vertex, v);
    const PartitionVector most = most_parts(vertex, graph);
    std::vector<std::int64_t> possible = numbers;  // of which a vertex with few or short labels allows fewer
    for (const std::int64_t number : numbers) possible.push_back(most_sites_of(most, number));
    std::vector<VertexPlan> plans = one_part_per_site_each(some_factorizations(most, possible));
    if (kind == CostKind::bound) return plans;
    add_scattered(vertex, most, plans);
    const std::size_t count = plans.size();
    for (std::size_t p = 0; p < count; ++p) {
      for (const std::int64_t copies : divisors_of(sites / sites_used(plans[p]))) {
        if (copies == 1) continue;
        plans.push_back(plans[p]);
        plans.back().copies = {{copies, 1}};
        if (!copies_fault(vertex, plans.back()).empty()) plans.pop_back();
      }
    }
    return plans;
  };
}

Plan polished_by_all(const EinGraph& graph, const Plan& plan, const Machine& machine, CostKind kind,
                     const AllowedPlans& is_allowed, std::int64_t changes) {
  constexpr std::size_t most_vertices = 4000;  // more take megabytes of tables, for few tries each
  if (plan.sites == 1 || graph.vertices.size() > most_vertices) return plan;
  PolishOptions options{.kind = kind,
                        .candidates = all_candidates(graph, plan.sites, kind),
                        .is_allowed = is_allowed,
                        .changes_tried = changes};
  if (kind != CostKind::seconds) {
    options.is_allowed = [&](const Plan& other) {
      return uses_all_sites(graph, other, machine) && (!is_allowed || is_allowed(other));
    };
  }
  return polished(graph, plan, machine, options);
}

double pairs_compared(const EinGraph& graph, std::int64_t sites) {
  std::vector<PartitionVector> most;
  std::vector<double> ways;
  for (const Vertex& vertex : graph.vertices) {
    const Shape extents = label_extents(vertex);
    most.push_back(is_input(vertex) ? PartitionVector(extents.size(), sites) : most_parts(vertex, graph));
    const auto can_be_cut = std::count_if(most.back().begin(), most.back().end(), [](auto parts) { return parts > 1; });
    double count = 0;
    for (const std::int64_t number : numbers_of_sites(sites))
      count += count_of_factorizations(number, static_cast<std::size_t>(can_be_cut));
    ways.push_back(std::clamp(count, 1.0, static_cast<double>(most_candidates)));
  }
  std::set<std::tuple<PartitionVector, PartitionVector, std::vector<std::optional<std::size_t>>>> known;
  double pairs = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    for (const std::size_t operand : operands_read(vertex)) {
      const std::size_t read = vertex.inputs[operand].index;
      if (known.emplace(most[read], most[v], operand_labels(vertex, operand)).second) pairs += ways[read] * ways[v];
    }
  }
  return pairs;
}

std::vector<bool> small_vertices(const EinGraph& graph, std::int64_t sites, const Machine& machine) {
  std::vector<double> seconds;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) seconds.push_back(one_site_seconds(graph, v, machine));
  const double on_all_sites = std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(sites);
  const double allowed = next_to_nothing * on_all_sites / static_cast<double>(seconds.size());
  std::vector<bool> small;
  for (const double alone : seconds) small.push_back(alone <= allowed);
  return small;
}

Candidates site_candidates(const EinGraph& graph, std::int64_t sites, CostKind kind, std::vector<bool> may_idle,
                           double comparisons) {
  std::shared_ptr<const SampledCuts> on_all;
  std::shared_ptr<const SampledCuts> on_fewer;
  if (std::any_of(graph.vertices.begin(), graph.vertices.end(), has_many_labels)) {
    on_all = std::make_shared<SampledCuts>(graph, std::vector<std::int64_t>{sites}, comparisons);
    on_fewer = std::make_shared<SampledCuts>(graph, numbers_of_sites(sites), comparisons);
  }
  return [&graph, sites, kind, may_idle = std::move(may_idle), on_all, on_fewer](const Vertex& vertex, std::size_t v) {
    if (const std::optional<VertexPlan> given = given_plan(vertex)) return std::vector<VertexPlan>{*given};
    if (is_input(vertex)) return input_layouts(vertex, v, sites, on_fewer.get());
    const PartitionVector most = most_parts(vertex, graph);
    std::vector<std::int64_t> numbers;
    for (const std::int64_t number : may_idle[v] ? numbers_of_sites(sites) : std::vector<std::int64_t>{sites}) {
      numbers.push_back(most_sites_of(most, number));
    }
    const Grids grids = has_many_labels(vertex) ? sampled_grids(*(may_idle[v] ? on_fewer : on_all), v)
                                                : some_factorizations(most, numbers);
    std::vector<VertexPlan> plans = one_part_per_site_each(grids);
    if (kind != CostKind::bound) add_scattered(vertex, most, plans);
    if (may_idle[v] && kind != CostKind::bound) add_computed_by_all(vertex, sites, plans);
    return plans;
  };
}

Candidates site_candidates(const EinGraph& graph, std::int64_t sites, const Machine& machine, CostKind kind,
                           double comparisons) {
  return site_candidates(graph, sites, kind,
                         kind == CostKind::seconds ? std::vector<bool>(graph.vertices.size(), true)
                                                   : small_vertices(graph, sites, machine),
                         comparisons);
}

bool uses_all_sites(const EinGraph& graph, const Plan& plan, const Machine& machine) {
  double on_all_sites = 0;
  double longer = 0;
  double longer_for_copies = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (is_input(vertex)) continue;
    // The kernel call starts on every site, however many they are.
    const double alone = std::max(one_site_seconds(graph, v, machine) - machine.task_seconds, 0.0);
    on_all_sites += alone / static_cast<double>(plan.sites);
    const std::int64_t used = sites_used(plan.vertices[v]);
    const std::int64_t most = most_sites_of(most_parts(vertex, graph), plan.sites);
    if (used >= most) continue;
    const bool is_on_all = reduced_labels(vertex).empty() && used * copies_of(plan.vertices[v]) >= most;
    (is_on_all ? longer_for_copies : longer) += alone / static_cast<double>(used) - alone / static_cast<double>(most);
  }
  return longer <= next_to_nothing * on_all_sites && longer_for_copies < on_all_sites;
}

Plan eindecomp_paper(const EinGraph& graph, std::int64_t calls) {
  if (calls < 1) throw Bug("a plan of no kernel calls");
  const auto model = cost_model(CostKind::bound, {});
  const SearchSpace space(graph, *model, [&](const Vertex& vertex, std::size_t) -> std::vector<VertexPlan> {
    if (is_input(vertex)) return {whole(vertex)};
    std::vector<PartitionVector> grids = power_of_two_partitions(most_parts(vertex, graph), calls);
    std::reverse(grids.begin(), grids.end());  // those that cut first labels first, as in FewestThenFirstLabels
    return one_part_per_site_each(grids);
  });
  Transfers transfers(calls);
  Plan plan = plan_of(graph, space, space.by_paths(false), transfers);
  plan.planner = "eindecomp-paper";
  return plan;
}

namespace {

struct Searched {
  CostedPlan best;
  double least_of_others = 0;
};

/// What searches find, and the cheapest of `others`.
Searched searched(const EinGraph& graph, std::int64_t sites, const Machine& machine, CostKind kind,
                  const std::vector<Plan>& others) {
  const auto model = cost_model(kind, machine);
  Transfers transfers(sites, machine);
  Cheapest cheapest(graph, machine, kind, transfers);
  std::vector<Plan> comparable;
  std::copy_if(others.begin(), others.end(), std::back_inserter(comparable),
               [&](const Plan& other) { return kind == CostKind::seconds || uses_all_sites(graph, other, machine); });
  const std::vector<Plan> starts = starts_among(graph, comparable, *model, cheapest);
  const std::optional<CostedPlan> best_of_others = cheapest.found();
  const auto search_in = [&](const SearchSpace& space, std::set<SearchSpace::Choice>& known) {
    const auto improve_from = [&](SearchSpace::Choice choice) {
      space.improve(choice);
      if (!known.insert(choice).second) return;
      constexpr double unevenness = 0.99;  // the model takes chunks of a tensor for equal
      if (!cheapest.may_be(unevenness * space.cost(choice))) return;
      cheapest.consider(plan_of(graph, space, choice, transfers));
    };
    improve_from(space.by_beam(steps_per_vertex(graph)));
    constexpr std::size_t few_vertices = 200;
    if (graph.vertices.size() > few_vertices) return;
    improve_from(space.by_paths(true));
    for (const Plan& start : starts) {
      if (const auto choice = space.choice_of(start)) improve_from(*choice);
    }
  };
  const std::vector<bool> small = small_vertices(graph, sites, machine);
  const auto least_sites = [&](const Vertex& vertex, std::size_t v) -> std::int64_t {
    return kind == CostKind::seconds || small[v] ? 1 : most_sites_of(most_parts(vertex, graph), sites);
  };
  const auto search = [&](const std::vector<bool>& may_idle) {
    const Candidates of_sites = site_candidates(graph, sites, kind, may_idle);
    const Candidates all = [&](const Vertex& vertex, std::size_t v) {
      std::vector<VertexPlan> candidates = of_sites(vertex, v);
      if (!is_input(vertex)) add_copied_of(starts, v, least_sites(vertex, v), candidates);
      return candidates;
    };
    SearchSpace space(graph, *model, undominated(graph, *model, sites, all, starts));
    std::set<SearchSpace::Choice> known;
    search_in(space, known);
    // Sharing out allows fewer numberings of sites, which the model takes for free.
    if (space.leave_out([](const VertexPlan& plan) { return plan.scatter.has_value(); })) search_in(space, known);
  };
  search(std::vector<bool>(graph.vertices.size(), kind == CostKind::seconds));
  if (kind != CostKind::seconds) search(small);
  const bool takes_other = kind == CostKind::seconds && is_as_good(best_of_others, *cheapest.found());
  return {takes_other ? *best_of_others : *cheapest.found(),
          best_of_others ? best_of_others->cost : std::numeric_limits<double>::infinity()};
}

/// Of vertices. Large graphs have more ways to become faster on all sites, and take long to search.
constexpr std::size_t few_vertices_for_all_numbers = 100;
constexpr std::int64_t few_sites_for_all_numbers = 16;

/// Numbers of sites of which a plan may be faster than one for all, descending: those that divide all, powers of two,
/// those behind links, and of few all; no fewer than inputs lie on.
std::vector<std::int64_t> numbers_on_fewer(const EinGraph& graph, std::int64_t sites, const Machine& machine) {
  std::vector<std::int64_t> numbers = divisors_of(sites);
  for (const Link& link : machine.links) numbers.push_back(link.sites);
  for (std::int64_t power = 2; power < sites; power *= 2) numbers.push_back(power);
  if (graph.vertices.size() <= few_vertices_for_all_numbers && sites <= few_sites_for_all_numbers) {
    for (std::int64_t number = 2; number < sites; ++number) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const std::int64_t fewest = std::max<std::int64_t>(2, sites_of_placed_inputs(graph));
  std::erase_if(numbers, [&](std::int64_t number) { return number < fewest || number >= sites; });
  return numbers;
}

/// What is found for fewer sites, as far as it may become faster than `cost`.
std::vector<CostedPlan> found_on_fewer(const EinGraph& graph, std::int64_t sites, const Machine& machine,
                                       const OtherPlans& others, double cost) {
  double on_one_site = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v)
    on_one_site += std::max(one_site_seconds(graph, v, machine) - machine.task_seconds, 0.0);
  std::vector<CostedPlan> found;
  for (const std::int64_t fewer : numbers_on_fewer(graph, sites, machine)) {
    if (on_one_site / static_cast<double>(fewer) >= cost) break;
    found.push_back(searched(graph, fewer, machine, CostKind::seconds, others(fewer)).best);
  }
  return found;
}

/// `plan`, or one that starts from fewer sites and is faster: a plan for some sites is one for more, of which others
/// idle. Those for divisors are polished as they are when asked for alone, so that more sites are not slower. What is
/// fastest of the others before a polish is often not after it: all are polished a little, the few fastest of them
/// more. The fastest of all is polished as a plan for all sites.
Plan best_on_fewer(const EinGraph& graph, const Machine& machine, const OtherPlans& others,
                   const AllowedPlans& is_allowed, Plan plan) {
  const std::int64_t sites = plan.sites;
  const auto seconds_of = [&](const Plan& of) { return costs_of(graph, of, machine).of(CostKind::seconds); };
  const auto polish = [&](CostedPlan& of, std::int64_t most) {
    of.plan = polished_by_all(graph, of.plan, machine, CostKind::seconds, is_allowed, most);
    of.cost = seconds_of(of.plan);
  };
  const auto is_faster = [](const CostedPlan& a, const CostedPlan& b) { return a.cost < b.cost; };
  const double least = seconds_of(plan);
  std::vector<CostedPlan> starts = found_on_fewer(graph, sites, machine, others, least);
  constexpr double most_gained = 2;
  std::erase_if(starts, [&](const CostedPlan& start) {
    return start.cost >= most_gained * least || (is_allowed && !is_allowed(start.plan));
  });
  if (starts.empty()) return plan;
  const auto divides = [&](const CostedPlan& start) { return sites % start.plan.sites == 0; };
  const auto first_other = std::stable_partition(starts.begin(), starts.end(), divides);
  for (CostedPlan& divisor : std::span(starts.begin(), first_other))
    polish(divisor, changes_to_try(divisor.plan.sites));
  if (const std::span others_of(first_other, starts.end()); !others_of.empty()) {
    constexpr std::size_t few = 4;
    const std::int64_t changes = changes_to_try(sites);
    for (CostedPlan& other : others_of) polish(other, changes / std::ssize(others_of));
    std::stable_sort(others_of.begin(), others_of.end(), is_faster);
    for (CostedPlan& other : others_of.first(std::min(few, others_of.size()))) polish(other, changes / 2);
  }
  CostedPlan& fastest = *std::min_element(starts.begin(), starts.end(), is_faster);
  fastest.plan.sites = sites;  // as many ways to cut each vertex as there are on all
  polish(fastest, changes_to_try(sites));
  constexpr double clearly = 0.995;
  return fastest.cost < clearly * least ? fastest.plan : plan;
}

/// What is fastest as far as all sites are used: it moves little, too, where the model of a search by bytes does not
/// see how.
Plan by_seconds(const EinGraph& graph, std::int64_t sites, const Machine& machine, const std::vector<Plan>& others) {
  const Plan found = searched(graph, sites, machine, CostKind::seconds, others).best.plan;
  const AllowedPlans uses_all = [&](const Plan& plan) { return uses_all_sites(graph, plan, machine); };
  return uses_all(found) ? polished_by_all(graph, found, machine, CostKind::seconds, uses_all, changes_to_try(sites))
                         : found;
}

}  // namespace

Plan eindecomp(const EinGraph& graph, std::int64_t sites, const Machine& machine, CostKind kind,
               const std::vector<Plan>& others, const OtherPlans& others_of_fewer, const AllowedPlans& is_allowed) {
  std::vector<Plan> with_fast;
  if (kind == CostKind::bytes) {
    with_fast = others;
    with_fast.push_back(by_seconds(graph, sites, machine, others));
  }
  const auto [found, least_of_others] =
      searched(graph, sites, machine, kind, kind == CostKind::bytes ? with_fast : others);
  const auto fits = [&](const Plan& of) { return !is_allowed || is_allowed(of); };
  Plan plan = found.plan;
  if (fits(plan)) plan = polished_by_all(graph, plan, machine, kind, is_allowed, changes_to_try(sites));
  if (kind == CostKind::seconds) {
    if (others_of_fewer) plan = best_on_fewer(graph, machine, others_of_fewer, is_allowed, std::move(plan));
    Plan in_pieces = plan;
    reduce_as_received(graph, in_pieces);
    // Each piece starts a kernel call, which counts; that operands are not put together saves a tenth of the time of
    // large products, and does not.
    constexpr double allowed = 1.01;
    const double most = allowed * std::min(costs_of(graph, plan, machine).of(kind), least_of_others);
    const bool stays_fitting = !fits(plan) || fits(in_pieces);
    if (stays_fitting && costs_of(graph, in_pieces, machine).of(kind) <= most) plan = std::move(in_pieces);
  }
  plan.planner = "eindecomp";
  return plan;
}

}  // namespace einrel
