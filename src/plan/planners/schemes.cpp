#include "plan/planners/schemes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/layout.h"
#include "plan/planners/kcut.h"
#include "plan/planners/transformer.h"
#include "plan/refine/numbering.h"
#include "plan/spmd.h"

namespace einrel {
namespace {

/// The label that the first operand has first, in the first vertex that reads an input.
std::optional<std::string> first_label(const EinGraph& graph) {
  for (const Vertex& vertex : graph.vertices) {
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      if (vertex.inputs[o].index != 0 || !is_input(graph.vertices.front())) continue;
      const auto labels = operand_labels(vertex, o);
      if (!labels.empty() && labels.front()) return label_names(vertex)[*labels.front()];
    }
  }
  return std::nullopt;
}

/// Part of a site's number: the coordinate along a label, or, without one, which of several alike it is.
struct Digit {
  std::optional<std::size_t> label;
  std::int64_t count = 1;
  std::int64_t stride = 1;
};

/// Those of one factor, which has the sites from one stride on; the last label lowest. They take a divisor of its
/// sites, so that the digits above stay where they are.
std::vector<Digit> digits_of_factor(const PartitionVector& grid, std::int64_t sites, std::int64_t stride) {
  std::vector<Digit> digits;
  for (std::size_t l = grid.size(); l-- > 0;) {
    if (grid[l] == 1) continue;
    digits.push_back({l, grid[l], stride});
    stride *= grid[l];
  }
  if (digits.empty() && sites > 1) digits.push_back({std::nullopt, sites, stride});
  return digits;
}

/// All digits, lowest first. A label that neighbours cut is one digit; what is left of it elsewhere is computed alike.
std::vector<Digit> digits_of(const std::vector<SchemeFactor>& factors, const std::vector<PartitionVector>& grids) {
  std::vector<Digit> digits;
  std::int64_t stride = 1;
  for (std::size_t f = factors.size(); f-- > 0;) {
    for (Digit digit : digits_of_factor(grids[f], factors[f].sites, stride)) {
      const auto known = std::find_if(digits.begin(), digits.end(),
                                      [&](const Digit& lower) { return lower.label && lower.label == digit.label; });
      const bool is_next = known != digits.end() && known->stride * known->count == digit.stride;
      if (is_next) known->count *= digit.count;
      if (is_next) continue;
      if (known != digits.end()) digit.label.reset();
      digits.push_back(digit);
    }
    stride *= factors[f].sites;
  }
  return digits;
}

/// At most as many sites along each label as a factor has and the label allows.
std::vector<PartitionVector> clipped(const PartitionVector& most, const std::vector<SchemeFactor>& factors,
                                     std::vector<PartitionVector> grids) {
  if (factors.size() == 1) return grids;
  PartitionVector left = most;
  for (std::size_t f = 0; f < grids.size(); ++f) {
    std::int64_t sites = factors[f].sites;
    for (std::size_t l = 0; l < most.size(); ++l) {
      const std::int64_t wanted = std::min(grids[f][l], left[l]);
      grids[f][l] = 1;
      for (const std::int64_t divisor : divisors_of(sites)) {
        if (divisor <= wanted) grids[f][l] = divisor;
      }
      sites /= grids[f][l];
      left[l] /= grids[f][l];
    }
  }
  return grids;
}

/// Shares out what several sites have parts of, along the longest label of the result that allows it; whole labels
/// first, which leave the numbering free. In a single program for all sites it is on all where none does.
void share_out(const Vertex& vertex, const PartitionVector& most, const PlanRequest& request, VertexPlan& plan) {
  const std::int64_t sites = partial_sites(vertex, plan);
  if (sites == 1) return;
  std::vector<std::size_t> labels = std::get<EinSum>(vertex.op).output;
  std::stable_sort(labels.begin(), labels.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(plan.grid[a] > 1, most[b]) < std::pair(plan.grid[b] > 1, most[a]);
  });
  for (const std::size_t label : labels) {
    VertexPlan shared = plan;
    shared.scatter = label;
    shared.parts[label] *= sites;
    if (shared.parts[label] > most[label] || !numbers_scatter(vertex, shared)) continue;
    if (request.spmd && !spmd_fault(vertex, shared, mesh_of(request.sites)).empty()) continue;
    plan = std::move(shared);
    return;
  }
  plan.all_reduced = request.spmd;
}

/// Cut by all factors. What is reduced over sites has no copies: each site has only a part of it.
VertexPlan combined(const Vertex& vertex, const PartitionVector& most, const std::vector<SchemeFactor>& factors,
                    const PlanRequest& request, std::vector<PartitionVector> grids) {
  VertexPlan plan = one_part_per_site(PartitionVector(most.size(), 1));
  for (const Digit& digit : digits_of(factors, clipped(most, factors, std::move(grids)))) {
    if (digit.label) {
      plan.grid[*digit.label] = digit.count;
      plan.strides[*digit.label] = digit.stride;
    } else {
      plan.copies.push_back({digit.count, digit.stride});
    }
  }
  plan.parts = plan.grid;
  if (partial_sites(vertex, plan) > 1) plan.copies.clear();
  share_out(vertex, most, request, plan);
  return plan;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// Of a factor's word.
const Scheme& scheme_named(std::string_view name, std::string_view all) {
  std::vector<std::string> names;
  for (const Scheme& scheme : all_schemes()) {
    if (scheme.name == name) return scheme;
    names.emplace_back(scheme.name);
  }
  std::vector<std::string> words = names;
  words.emplace_back("hybrid");
  const std::string hint = did_you_mean(name, words);
  throw UserError(
      fmt::format("'{}' in the planner '{}' cannot be multiplied; {} have {}, each with its sites, "
                  "as data:8 x tensor:4; hybrid:8x4 is data:8 x model:4",
                  printable(std::string(name)), printable(std::string(all)),
                  hint.empty() ? "products" : hint + " Products", fmt::join(names, ", ")));
}

SchemeFactor factor_of(std::string_view word, std::string_view all) {
  const std::size_t colon = word.find(':');
  SchemeFactor factor{&scheme_named(trimmed(word.substr(0, colon)), all), 0};
  const std::string_view number = colon == std::string_view::npos ? "" : trimmed(word.substr(colon + 1));
  const char* const last = number.data() + number.size();
  const std::from_chars_result read = std::from_chars(number.data(), last, factor.sites);
  if (read.ec == std::errc() && read.ptr == last && factor.sites >= 1) return factor;
  const auto fault = [&]() -> std::string {
    if (read.ec == std::errc::result_out_of_range) return "is for more sites than can be counted";
    if (read.ec == std::errc() && read.ptr == last)
      return fmt::format("is for {} sites: write 1 or more, as in {}:4", factor.sites, factor.scheme->name);
    const std::string_view rest = read.ec == std::errc() ? trimmed({read.ptr, last}) : "";
    if (read.ec == std::errc() && rest.find(':') != std::string_view::npos && !rest.starts_with('x'))
      return fmt::format("has no x between two schemes: write {}:{} x {}", factor.scheme->name, factor.sites,
                         printable(std::string(rest)));
    const std::size_t times = number.find('x');
    if (read.ec == std::errc() && times != std::string_view::npos) {
      return fmt::format("has no spaces around the x: write {}:{} x {}", factor.scheme->name,
                         printable(std::string(trimmed(number.substr(0, times)))),
                         printable(std::string(trimmed(number.substr(times + 1)))));
    }
    return fmt::format("does not say over how many sites: write {0}:N, as in {0}:4", factor.scheme->name);
  };
  throw UserError(
      fmt::format("'{}' in the planner '{}' {}", printable(std::string(word)), printable(std::string(all)), fault()));
}

/// SoyBean's name for data parallelism among groups of sites and model parallelism within: "hybrid:4x2" is
/// "data:4 x model:2".
std::vector<SchemeFactor> hybrid_factors(std::string_view word, std::string_view all) {
  const std::string_view sites = word.substr(word.find(':') + 1);
  const std::size_t times = sites.find('x');
  if (times == std::string_view::npos)
    throw UserError(
        fmt::format("'{}' in the planner '{}' does not say how many groups of how many sites: write "
                    "hybrid:4x2 for 4 groups of 2",
                    printable(std::string(word)), printable(std::string(all))));
  const auto number = [](std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (!number(sites.substr(0, times)) || !number(sites.substr(times + 1)))
    throw UserError(
        fmt::format("'{}' in the planner '{}' has to be two numbers around one x: hybrid:4x2 is 4 groups of 2 sites",
                    printable(std::string(word)), printable(std::string(all))));
  return {factor_of(fmt::format("data:{}", sites.substr(0, times)), all),
          factor_of(fmt::format("model:{}", sites.substr(times + 1)), all)};
}

/// Why the factors do not make up all sites; "" where they do.
std::string fault_of(const std::vector<SchemeFactor>& factors, std::int64_t sites) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t all = 1;
  bool is_countable = true;
  std::vector<std::int64_t> counts;
  for (const SchemeFactor& factor : factors) {
    is_countable = is_countable && all <= most / factor.sites;
    if (is_countable) all *= factor.sites;
    counts.push_back(factor.sites);
  }
  if (is_countable && all == sites) return "";
  const std::string is = is_countable ? fmt::format("is {} sites", all) : "is more sites than can be counted";
  const std::string remedy = is_countable ? fmt::format(": give --sites {}", all) : "";
  return fmt::format("{} {}, and there {} {}{}", fmt::join(counts, " x "), is, sites == 1 ? "is" : "are", sites,
                     remedy);
}

/// Plans by several products of schemes: what a scheme says of so many sites is asked once.
class SchemePlanner {
 public:
  SchemePlanner(const EinGraph& graph, const PlanRequest& request) : graph_(graph), request_(request) {
    for (const Vertex& vertex : graph.vertices) {
      most_.push_back(is_input(vertex) ? PartitionVector() : most_parts(vertex, graph));
    }
  }

  /// Without places for the inputs; or why it cannot be.
  std::variant<std::vector<VertexPlan>, std::string> cut(const std::vector<SchemeFactor>& factors) {
    if (std::string fault = fault_of(factors, request_.sites); !fault.empty()) return fault;
    std::vector<const std::vector<PartitionVector>*> by_factor;
    for (const SchemeFactor& factor : factors) {
      const SchemeGrids& grids = grids_of(factor);
      if (const auto* const reason = std::get_if<std::string>(&grids)) {
        return factors.size() == 1 ? *reason : fmt::format("{}: {}", factor.scheme->name, *reason);
      }
      by_factor.push_back(&std::get<std::vector<PartitionVector>>(grids));
    }
    std::vector<VertexPlan> plans;
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      const Vertex& vertex = graph_.vertices[v];
      std::vector<PartitionVector> grids;
      for (const auto* const of_factor : by_factor) grids.push_back((*of_factor)[v]);
      plans.push_back(is_input(vertex) ? one_part_per_site(PartitionVector(vertex.bound.size(), 1))
                                       : combined(vertex, most_[v], factors, request_, std::move(grids)));
    }
    return plans;
  }

  Plan placed(std::vector<VertexPlan> vertices, const std::vector<SchemeFactor>& factors) const {
    Plan plan{"", request_.sites, std::move(vertices)};
    plan.is_spmd = request_.spmd;
    if (factors.size() == 1) {
      number_sites(graph_, plan, request_.machine);
    } else {
      lay_out_inputs(graph_, plan);
    }
    return plan;
  }

 private:
  const SchemeGrids& grids_of(const SchemeFactor& factor) {
    const auto [known, is_new] = grids_.try_emplace({factor.scheme->name, factor.sites});
    if (is_new) {
      PlanRequest own = request_;
      own.sites = factor.sites;
      known->second = factor.scheme->grids(graph_, own);
    }
    return known->second;
  }

  const EinGraph& graph_;
  const PlanRequest& request_;
  std::vector<PartitionVector> most_;  ///< per vertex
  std::map<std::pair<std::string_view, std::int64_t>, SchemeGrids> grids_;
};

/// Vertices that have the batch, or are computed from one that has.
std::vector<bool> of_batch(const EinGraph& graph, const std::vector<PartitionVector>& cut_by_batch) {
  std::vector<bool> is_of_batch(graph.vertices.size(), false);
  for (std::size_t v = 0; v < is_of_batch.size(); ++v) {
    const PartitionVector& grid = cut_by_batch[v];
    const std::vector<VertexId>& inputs = graph.vertices[v].inputs;
    is_of_batch[v] = std::any_of(grid.begin(), grid.end(), [](std::int64_t sites) { return sites > 1; }) ||
                     std::any_of(inputs.begin(), inputs.end(), [&](VertexId from) { return is_of_batch[from.index]; });
  }
  return is_of_batch;
}

}  // namespace

const std::vector<Scheme>& all_schemes() {
  static const std::vector<Scheme> schemes{
      {"data", "one label, --batch, over all sites; weights on each, gradients all-reduced", data_grids},
      {"fsdp", "the same, but weights, and what they become, lie in pieces and are gathered", fsdp_grids},
      {"tensor", "products with weights in pairs, by columns and then by rows; attention by its heads", tensor_grids},
      {"sequence", "attention and all around it by the positions of the sequence", sequence_grids},
      {"heads", "attention by its heads, all else by positions", heads_grids},
      {"model", "the batch last: weights and what layers compute, each where least elements move", model_grids,
       most_cut_at_once}};
  return schemes;
}

bool is_product_of_schemes(std::string_view name) {
  return name.find(':') != std::string_view::npos || name.find(" x ") != std::string_view::npos ||
         name.starts_with("hybrid");
}

std::vector<SchemeFactor> scheme_factors(std::string_view text) {
  std::vector<SchemeFactor> factors;
  std::string_view rest = text;
  for (;;) {
    const std::size_t times = rest.find(" x ");
    const std::string_view word = trimmed(rest.substr(0, times));
    const std::size_t colon = word.find(':');
    const bool is_hybrid = colon == std::string_view::npos ? word.starts_with("hybrid")  // "hybrid4x2" lacks a colon
                                                           : trimmed(word.substr(0, colon)) == "hybrid";
    if (is_hybrid) {
      for (const SchemeFactor& factor : hybrid_factors(word, text)) factors.push_back(factor);
    } else {
      factors.push_back(factor_of(word, text));
    }
    if (times == std::string_view::npos) return factors;
    rest.remove_prefix(times + 3);
  }
}

Planned plan_by_schemes(const EinGraph& graph, const PlanRequest& request, const std::vector<SchemeFactor>& factors) {
  SchemePlanner planner(graph, request);
  std::variant<std::vector<VertexPlan>, std::string> cut = planner.cut(factors);
  if (auto* const reason = std::get_if<std::string>(&cut)) return std::move(*reason);
  return planner.placed(std::get<std::vector<VertexPlan>>(std::move(cut)), factors);
}

Planned plan_by_grids(const EinGraph& graph, const PlanRequest& request, std::vector<PartitionVector> grids) {
  const std::vector<SchemeFactor> all_sites{{nullptr, request.sites}};
  Plan plan{"", request.sites, {}};
  plan.is_spmd = request.spmd;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    plan.vertices.push_back(
        is_input(vertex) ? one_part_per_site(PartitionVector(vertex.bound.size(), 1))
                         : combined(vertex, most_parts(vertex, graph), all_sites, request, {std::move(grids[v])}));
  }
  number_sites(graph, plan, request.machine);
  return plan;
}

Plan plan_by_cuts(const EinGraph& graph, const PlanRequest& request, const TilingCuts& cuts) {
  std::vector<SchemeFactor> factors;
  for (const TilingCut& cut : cuts.cuts) factors.push_back({nullptr, cut.groups});
  Plan plan{"", request.sites, {}};
  plan.is_spmd = request.spmd;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (is_input(vertex)) {
      plan.vertices.push_back(one_part_per_site(PartitionVector(vertex.bound.size(), 1)));
      continue;
    }
    const PartitionVector most = most_parts(vertex, graph);
    std::vector<PartitionVector> grids;
    for (const TilingCut& cut : cuts.cuts) {
      grids.emplace_back(most.size(), 1);
      if (cut.forms[v]) grids.back()[*cut.forms[v]] = cut.groups;
    }
    plan.vertices.push_back(combined(vertex, most, factors, request, std::move(grids)));
  }
  lay_out_inputs(graph, plan);
  return plan;
}

std::vector<std::vector<SchemeFactor>> products_of_two(std::int64_t sites) {
  std::vector<std::vector<SchemeFactor>> products;
  for (const std::int64_t inner : divisors_of(sites)) {
    if (inner == 1 || inner == sites) continue;
    for (const Scheme& first : all_schemes()) {
      for (const Scheme& second : all_schemes()) {
        // Of model parallelism, hybrids alone: its search takes longer than those of the others.
        if (first.name == "model" || (second.name == "model" && first.name != "data")) continue;
        products.push_back({{&first, sites / inner}, {&second, inner}});
      }
    }
  }
  return products;
}

std::string name_of(const std::vector<SchemeFactor>& factors) {
  std::vector<std::string> words;
  for (const SchemeFactor& factor : factors) words.push_back(fmt::format("{}:{}", factor.scheme->name, factor.sites));
  return fmt::format("{}", fmt::join(words, " x "));
}

std::vector<Plan> plans_by_products(const EinGraph& graph, const PlanRequest& request,
                                    const std::vector<std::vector<SchemeFactor>>& products) {
  SchemePlanner planner(graph, request);
  std::vector<Plan> plans;
  std::vector<std::vector<VertexPlan>> known;
  for (const std::vector<SchemeFactor>& factors : products) {
    std::variant<std::vector<VertexPlan>, std::string> cut = planner.cut(factors);
    auto* const vertices = std::get_if<std::vector<VertexPlan>>(&cut);
    if (vertices == nullptr || std::find(known.begin(), known.end(), *vertices) != known.end()) continue;
    known.push_back(*vertices);
    plans.push_back(planner.placed(std::move(*vertices), factors));
    plans.back().planner = name_of(factors);
  }
  return plans;
}

std::optional<std::string> batch_label(const EinGraph& graph, const PlanRequest& request) {
  return request.batch ? request.batch : first_label(graph);
}

SchemeGrids data_grids(const EinGraph& graph, const PlanRequest& request) {
  const std::optional<std::string> batch = batch_label(graph, request);
  if (!batch) return "no vertex reads the first label of the first input: name the batch (the option 'batch')";
  bool is_cut = request.sites == 1;
  std::vector<PartitionVector> grids;
  for (const Vertex& vertex : graph.vertices) {
    PartitionVector& grid = grids.emplace_back(label_extents(vertex).size(), 1);
    if (is_input(vertex)) continue;
    const PartitionVector most = most_parts(vertex, graph);
    const std::vector<std::string> names = label_names(vertex);
    for (std::size_t l = 0; l < grid.size(); ++l) {
      if (names[l] == *batch) grid[l] = std::min(most[l], request.sites);
      is_cut = is_cut || grid[l] > 1;
    }
  }
  if (!is_cut) return fmt::format("no vertex has a label {} that can be cut", printable(*batch));
  return grids;
}

SchemeGrids fsdp_grids(const EinGraph& graph, const PlanRequest& request) {
  SchemeGrids found = data_grids(graph, request);
  auto* const grids = std::get_if<std::vector<PartitionVector>>(&found);
  if (grids == nullptr) return found;
  const std::vector<bool> is_of_batch = of_batch(graph, *grids);
  for (std::size_t v = 0; v < grids->size(); ++v) {
    PartitionVector& grid = (*grids)[v];
    const bool is_whole = std::all_of(grid.begin(), grid.end(), [](std::int64_t sites) { return sites == 1; });
    if (!is_of_batch[v] || !is_whole) continue;
    const Vertex& vertex = graph.vertices[v];
    const PartitionVector most = most_parts(vertex, graph);
    std::optional<std::size_t> longest;
    for (const std::optional<std::size_t> label : result_labels(vertex)) {
      if (label && (!longest || most[*label] > most[*longest])) longest = label;
    }
    if (longest && most[*longest] >= request.sites) grid[*longest] = request.sites;
  }
  return found;
}

}  // namespace einrel
