#include "plan/formats/format_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/search/elimination.h"

namespace einrel::formats {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Finds the formats that the ways give.
void number_formats(Choices& choices) {
  choices.formats.clear();
  choices.result.clear();
  std::map<TensorFormat, std::size_t> known;
  for (const Implementation& way : choices.ways) {
    const auto [at, is_new] = known.try_emplace(way.result, choices.formats.size());
    if (is_new) choices.formats.push_back(way.result);
    choices.result.push_back(at->second);
  }
}

[[noreturn]] void refuse(const EinGraph& graph, std::size_t v) {
  const Vertex& vertex = graph.vertices[v];
  throw UserError(fmt::format(
      "no format is fit to compute {} {} {}: every one has chunks of more than 1 GB, or more than {} tuples; cut the "
      "problem, or give its tensors formats of larger or smaller chunks with --formats",
      vertex.name, name_of(vertex.dtype), to_string(vertex.bound), most_chunks));
}

/// All that a way reads of one tensor.
std::vector<TensorFormat> read_of(const Implementation& way, std::size_t tensor) {
  std::vector<TensorFormat> formats;
  for (const NeededFormat& need : way.reads) {
    if (need.tensor == tensor) formats.push_back(need.format);
  }
  return formats;
}

/// The tensors that a vertex reads, whatever the way.
std::vector<std::size_t> tensors_read(const Vertex& vertex) {
  std::vector<std::size_t> tensors;
  for (const std::size_t operand : operands_read(vertex)) tensors.push_back(vertex.inputs[operand].index);
  std::sort(tensors.begin(), tensors.end());
  tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
  return tensors;
}

}  // namespace

Space::Space(const EinGraph& graph, const FormatRequest& request) : graph_(graph), weights_(request.weights) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    Implementations found = implementations_of(graph, v, request.given);
    has_all_ways_ = has_all_ways_ && found.are_all;
    if (found.ways.empty()) refuse(graph, v);
    Choices choices{std::move(found.ways), {}, {}, {}};
    for (const Implementation& way : choices.ways) {
      const FormatCost cost =
          is_input(vertex) ? gathering_cost(vertex, way.result) : cost_of(graph, vertex, way, weights_);
      choices.seconds.push_back(seconds_of(cost, weights_));
    }
    number_formats(choices);
    choices_.push_back(std::move(choices));
  }
  make_edges();
}

void Space::make_edges() {
  edges_.clear();
  operands_.assign(choices_.size(), {});
  consumers_.assign(choices_.size(), {});
  for (std::size_t v = 0; v < choices_.size(); ++v) {
    for (const std::size_t tensor : tensors_read(graph_.vertices[v])) {
      std::vector<std::vector<TensorFormat>> needs;
      for (const Implementation& way : choices_[v].ways) needs.push_back(read_of(way, tensor));
      add_edge(tensor, v, needs);
    }
  }
  for (const auto& [now, next] : states_that_change(graph_)) {
    std::vector<std::vector<TensorFormat>> needs;
    for (const Implementation& way : choices_[now].ways) needs.push_back({way.result});
    add_edge(next, now, needs);
  }
}

void Space::add_edge(std::size_t tensor, std::size_t vertex, const std::vector<std::vector<TensorFormat>>& needs) {
  Edge edge{tensor, vertex, {}, {}};
  std::map<std::vector<TensorFormat>, std::size_t> known;
  for (const std::vector<TensorFormat>& need : needs) {
    const auto [at, is_new] = known.try_emplace(need, edge.seconds.size());
    edge.need.push_back(at->second);
    if (!is_new) continue;
    std::vector<double>& seconds = edge.seconds.emplace_back();
    for (const TensorFormat& from : choices_[tensor].formats) {
      FormatCost cost;
      for (const TensorFormat& to : need) cost += transformations_.of(graph_.vertices[tensor], from, to);
      seconds.push_back(seconds_of(cost, weights_));
    }
  }
  operands_[vertex].push_back(edges_.size());
  consumers_[tensor].push_back(edges_.size());
  edges_.push_back(std::move(edge));
}

bool Space::dominates(std::size_t vertex, std::size_t way, std::size_t other) const {
  const Choices& own = choices_[vertex];
  double most = own.seconds[way] - own.seconds[other];
  for (const std::size_t e : operands_[vertex]) {
    const std::vector<double>& mine = edges_[e].seconds[edges_[e].need[way]];
    const std::vector<double>& its = edges_[e].seconds[edges_[e].need[other]];
    double worst = -infinity;
    for (std::size_t f = 0; f < mine.size(); ++f) worst = std::max(worst, mine[f] - its[f]);
    most += worst;
  }
  for (const std::size_t e : consumers_[vertex]) {
    double worst = -infinity;
    for (const std::vector<double>& seconds : edges_[e].seconds)
      worst = std::max(worst, seconds[own.result[way]] - seconds[own.result[other]]);
    most += worst;
  }
  return most <= 0;
}

std::vector<std::size_t> Space::undominated(std::size_t vertex) const {
  const Choices& own = choices_[vertex];
  std::vector<std::size_t> order(own.ways.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return own.seconds[a] < own.seconds[b]; });
  std::vector<std::size_t> kept;
  for (const std::size_t way : order) {
    if (std::any_of(kept.begin(), kept.end(), [&](std::size_t k) { return dominates(vertex, k, way); })) continue;
    std::erase_if(kept, [&](std::size_t k) { return dominates(vertex, way, k); });
    kept.push_back(way);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

void Space::drop_dominated() {
  bool is_dropped = true;
  while (is_dropped) {
    is_dropped = false;
    std::vector<Choices> rest(choices_.size());
    for (std::size_t v = 0; v < choices_.size(); ++v) {
      for (const std::size_t way : undominated(v)) {
        rest[v].ways.push_back(choices_[v].ways[way]);
        rest[v].seconds.push_back(choices_[v].seconds[way]);
      }
      is_dropped = is_dropped || rest[v].ways.size() < choices_[v].ways.size();
      number_formats(rest[v]);
    }
    if (!is_dropped) return;
    choices_ = std::move(rest);
    make_edges();
  }
}

Space::Choice Space::choice_of(const GraphCuts& cuts) const {
  Choice choice;
  for (std::size_t v = 0; v < choices_.size(); ++v) {
    const std::vector<Implementation>& ways = choices_[v].ways;
    const auto same =
        std::find_if(ways.begin(), ways.end(), [&](const Implementation& way) { return way.parts == cuts.parts[v]; });
    invariant(same != ways.end(), "the plan is one of this space");
    choice.push_back(static_cast<std::size_t>(same - ways.begin()));
  }
  return choice;
}

Space::Choice Space::least(std::size_t most_entries, bool& is_least) const {
  // Variables: the format of each tensor, then the way of each vertex that reads some.
  std::vector<std::size_t> domains;
  for (const Choices& choices : choices_) domains.push_back(choices.formats.size());
  std::vector<CostTable> tables;
  std::vector<std::size_t> way_variable(choices_.size(), 0);  // of an input the same: each format is a way
  for (std::size_t v = 0; v < choices_.size(); ++v) {
    const Choices& own = choices_[v];
    if (is_input(graph_.vertices[v])) {
      way_variable[v] = v;
      tables.push_back({{v}, own.seconds});
      continue;
    }
    way_variable[v] = domains.size();
    domains.push_back(own.ways.size());
    CostTable given{{v, way_variable[v]}, {}};
    for (std::size_t f = 0; f < own.formats.size(); ++f) {
      for (std::size_t w = 0; w < own.ways.size(); ++w)
        given.costs.push_back(own.result[w] == f ? own.seconds[w] : infinity);
    }
    tables.push_back(std::move(given));
  }
  for (const Edge& edge : edges_) {
    CostTable table{{edge.tensor, way_variable[edge.vertex]}, {}};
    for (std::size_t f = 0; f < choices_[edge.tensor].formats.size(); ++f) {
      for (std::size_t w = 0; w < choices_[edge.vertex].ways.size(); ++w) table.costs.push_back(edge.of(f, w));
    }
    tables.push_back(std::move(table));
  }
  std::vector<std::vector<std::size_t>> scopes;
  for (const CostTable& table : tables) scopes.push_back(table.variables);
  const Assignment found =
      least_assignment(domains, std::move(tables), min_fill_order(domains.size(), scopes), most_entries);
  is_least = found.is_least;
  Choice choice;
  for (std::size_t v = 0; v < choices_.size(); ++v) choice.push_back(found.values[way_variable[v]]);
  return choice;
}

double Space::seconds_beside(const Choice& choice, std::size_t vertex, std::size_t way) const {
  const Choices& own = choices_[vertex];
  double seconds = own.seconds[way];
  for (const std::size_t e : operands_[vertex]) {
    const std::size_t tensor = edges_[e].tensor;
    seconds += edges_[e].of(choices_[tensor].result[choice[tensor]], way);
  }
  for (const std::size_t e : consumers_[vertex]) seconds += edges_[e].of(own.result[way], choice[edges_[e].vertex]);
  return seconds;
}

void Space::improve(Choice& choice) const {
  constexpr double rounding = 1e-12;
  bool is_better = true;
  while (is_better) {
    is_better = false;
    for (std::size_t v = 0; v < choices_.size(); ++v) {
      double least = seconds_beside(choice, v, choice[v]) * (1 - rounding);
      for (std::size_t way = 0; way < choices_[v].ways.size(); ++way) {
        const double seconds = seconds_beside(choice, v, way);
        if (seconds >= least) continue;
        least = seconds;
        choice[v] = way;
        is_better = true;
      }
    }
  }
}

std::optional<OtherFormat> Space::other_format(const Choice& choice, std::size_t vertex) const {
  const Choices& own = choices_[vertex];
  const std::size_t chosen = own.result[choice[vertex]];
  std::optional<std::size_t> best;
  double least = infinity;
  for (std::size_t way = 0; way < own.ways.size(); ++way) {
    if (own.result[way] == chosen) continue;
    const double seconds = seconds_beside(choice, vertex, way);
    if (seconds >= least) continue;
    least = seconds;
    best = way;
  }
  if (!best) return std::nullopt;
  return OtherFormat{own.formats[own.result[*best]], least - seconds_beside(choice, vertex, choice[vertex])};
}

GraphCuts Space::cuts(const Choice& choice) const {
  GraphCuts cuts;
  for (std::size_t v = 0; v < choices_.size(); ++v) cuts.parts.push_back(choices_[v].ways[choice[v]].parts);
  return cuts;
}

}  // namespace einrel::formats
