#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "plan/formats/format_plan.h"

namespace einrel::test {

/// Every way to annotate a graph, counted without what plan_formats does: labels in chunks of each size, where the
/// formats of matrices have a name of the list, and a database can hold what is read and made.
class Annotations {
 public:
  Annotations(const EinGraph& graph, const FormatWeights& weights) : graph_(graph), weights_(weights) {
    for (const Format& format : all_formats()) names_.insert(format.name);
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      if (is_input(graph.vertices[v])) inputs_.push_back(v);
      std::vector<Implementation> ways;
      std::vector<std::int64_t> parts;
      add_ways(v, parts, ways);
      ways_.push_back(std::move(ways));
    }
    price();
  }

  /// That `least` compares: inputs are chosen one by one.
  double count() const {
    double product = 1;
    for (std::size_t v = 0; v < ways_.size(); ++v) {
      if (!is_input(graph_.vertices[v])) product *= static_cast<double>(ways_[v].size());
    }
    return product;
  }

  /// In how many formats some tensor that is computed may be.
  std::size_t most_formats() const {
    std::size_t most = 0;
    for (std::size_t v = 0; v < ways_.size(); ++v) {
      std::set<TensorFormat> formats;
      for (const Implementation& way : ways_[v]) formats.insert(way.result);
      if (!is_input(graph_.vertices[v])) most = std::max(most, formats.size());
    }
    return most;
  }
  bool has_a_tensor_that_two_read() const {
    std::vector<int> readers(ways_.size(), 0);
    for (const Edge& edge : edges_) ++readers[edge.from];
    return std::any_of(readers.begin(), readers.end(), [](int count) { return count > 1; });
  }

  /// What computing one vertex in another way costs more while all others keep theirs; of an input, keeping it so.
  struct Change {
    TensorFormat format;
    double more_seconds = 0;
  };
  /// Each way of this vertex, its own too.
  std::vector<Change> changes(const GraphCuts& plan, std::size_t v) const {
    std::vector<std::size_t> ways;
    for (std::size_t each = 0; each < ways_.size(); ++each) ways.push_back(way_of(each, plan.parts[each]));
    const double before = seconds_of_ways(ways);
    std::vector<Change> found;
    for (std::size_t way = 0; way < ways_[v].size(); ++way) {
      ways[v] = way;
      found.push_back({ways_[v][way].result, seconds_of_ways(ways) - before});
    }
    return found;
  }

  /// The least seconds of all, looking at each.
  double least() {
    chosen_.assign(ways_.size(), 0);
    double best = std::numeric_limits<double>::infinity();
    do {
      best = std::min(best, seconds());
    } while (advance());
    return best;
  }

  /// The same by branch and bound: vertex after vertex, the cheapest way first, until what is chosen and the least that
  /// the others can cost exceed the best that was found.
  double least_by_bounds() {
    chosen_.assign(ways_.size(), 0);
    order_.clear();
    for (std::size_t v = 0; v < ways_.size(); ++v) {
      if (!is_input(graph_.vertices[v])) order_.push_back(v);
    }
    for (const std::size_t input : inputs_) {  // behind the last that reads it
      const auto last = std::find_if(order_.rbegin(), order_.rend(), [&](std::size_t v) { return joins(input, v); });
      order_.insert(last.base(), input);
    }
    rest_.assign(order_.size() + 1, 0);
    for (std::size_t depth = order_.size(); depth-- > 0;) rest_[depth] = rest_[depth + 1] + least_at(depth);
    best_ = std::numeric_limits<double>::infinity();
    extend(0, 0);
    return best_;
  }

 private:
  struct Edge {
    std::size_t from = 0;
    std::size_t to = 0;
    std::vector<std::vector<double>> seconds;
  };

  std::size_t way_of(std::size_t v, const std::vector<std::int64_t>& parts) const {
    for (std::size_t way = 0; way < ways_[v].size(); ++way) {
      if (ways_[v][way].parts == parts) return way;
    }
    throw std::out_of_range(graph_.vertices[v].name);
  }
  double seconds_of_ways(const std::vector<std::size_t>& ways) const {
    double sum = 0;
    for (std::size_t v = 0; v < ways.size(); ++v) sum += own_[v][ways[v]];
    for (const Edge& edge : edges_) sum += edge.seconds[ways[edge.from]][ways[edge.to]];
    return sum;
  }

  bool joins(std::size_t a, std::size_t b) const {
    return std::any_of(edges_.begin(), edges_.end(), [&](const Edge& edge) {
      return (edge.from == a && edge.to == b) || (edge.from == b && edge.to == a);
    });
  }
  /// The edges between the vertex at this depth and those before it.
  std::vector<const Edge*> edges_at(std::size_t depth) const {
    const auto is_before = [&](std::size_t v) {
      return std::find(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(depth), v) !=
             order_.begin() + static_cast<std::ptrdiff_t>(depth);
    };
    std::vector<const Edge*> found;
    for (const Edge& edge : edges_) {
      const std::size_t v = order_[depth];
      if ((edge.from == v && is_before(edge.to)) || (edge.to == v && is_before(edge.from))) found.push_back(&edge);
    }
    return found;
  }
  double least_at(std::size_t depth) const {
    const std::vector<double>& own = own_[order_[depth]];
    double least = *std::min_element(own.begin(), own.end());
    for (const Edge* edge : edges_at(depth)) {
      double cheapest = std::numeric_limits<double>::infinity();
      for (const std::vector<double>& row : edge->seconds)
        cheapest = std::min(cheapest, *std::min_element(row.begin(), row.end()));
      least += cheapest;
    }
    return least;
  }
  void extend(std::size_t depth, double sum) {  // NOLINT(misc-no-recursion): as deep as there are vertices
    if (depth == order_.size()) {
      best_ = std::min(best_, sum);
      return;
    }
    const std::size_t v = order_[depth];
    const std::vector<const Edge*> edges = edges_at(depth);
    std::vector<std::pair<double, std::size_t>> costs;
    for (std::size_t way = 0; way < ways_[v].size(); ++way) {
      double cost = own_[v][way];
      for (const Edge* edge : edges)
        cost += edge->from == v ? edge->seconds[way][chosen_[edge->to]] : edge->seconds[chosen_[edge->from]][way];
      costs.emplace_back(cost, way);
    }
    std::sort(costs.begin(), costs.end());
    for (const auto& [cost, way] : costs) {
      if (sum + cost + rest_[depth + 1] >= best_) return;
      chosen_[v] = way;
      extend(depth + 1, sum + cost);
    }
  }

  void add_ways(std::size_t v, std::vector<std::int64_t>& parts,
                std::vector<Implementation>& ways) {  // NOLINT(misc-no-recursion): as deep as there are labels
    const Vertex& vertex = graph_.vertices[v];
    const Shape extents = label_extents(vertex);
    if (parts.size() < extents.size()) {
      const std::int64_t extent = extents[parts.size()].value();
      std::set<std::int64_t> choices{1};
      for (const std::int64_t size : {1, 10, 100, 1000}) choices.insert((extent + size - 1) / size);
      for (const std::int64_t choice : choices) {
        parts.push_back(choice);
        add_ways(v, parts, ways);
        parts.pop_back();
      }
      return;
    }
    const Implementation way = implementation_of(graph_, v, parts);
    double calls = 1;
    for (const std::int64_t part : parts) calls *= static_cast<double>(part);
    const bool reads = std::all_of(way.reads.begin(), way.reads.end(), [&](const NeededFormat& need) {
      return is_format(need.format, graph_.vertices[need.tensor]);
    });
    if (reads && calls <= most_tuples && is_format(way.result, vertex)) ways.push_back(way);
  }
  bool is_format(const TensorFormat& format, const Vertex& tensor) const {
    if (tensor.bound.size() == 2 && names_.count(format_text(format, tensor.bound)) == 0) return false;
    double tuples = 1;
    auto bytes = static_cast<double>(size_of(tensor.dtype));
    for (std::size_t d = 0; d < format.size(); ++d) {
      const auto parts = static_cast<double>(format[d].parts);
      tuples *= parts;
      bytes *= std::ceil(static_cast<double>(tensor.bound[d].value()) / parts);
    }
    return tuples <= most_tuples && bytes < 1e9;
  }

  double price_of(const FormatCost& cost) const { return seconds_of(cost, weights_); }

  /// Prices of everything that may be chosen.
  void price() {
    for (std::size_t v = 0; v < ways_.size(); ++v) {
      std::vector<double>& own = own_.emplace_back();
      for (const Implementation& way : ways_[v]) {
        own.push_back(is_input(graph_.vertices[v]) ? price_of(gathering_cost(graph_.vertices[v], way.result))
                                                   : price_of(cost_of(graph_, graph_.vertices[v], way, weights_)));
      }
    }
    for (std::size_t v = 0; v < ways_.size(); ++v) {
      for (std::size_t from = 0; from < v; ++from) {
        if (!reads(v, from)) continue;
        std::vector<std::vector<double>> table;
        std::map<TensorFormat, std::size_t> first;  // row of that format
        for (const Implementation& made : ways_[from]) {
          const auto [at, is_new] = first.try_emplace(made.result, table.size());
          std::vector<double> row = is_new ? std::vector<double>{} : table[at->second];
          if (is_new) {
            for (const Implementation& way : ways_[v]) row.push_back(price_of(brought(from, made.result, way)));
          }
          table.push_back(std::move(row));
        }
        edges_.push_back({from, v, std::move(table)});
      }
    }
    for (const State& state : graph_.steps.states) add_state(state.now.index, graph_.outputs.at(*state.next).index);
  }
  /// A state takes its next value in its own format.
  void add_state(std::size_t now, std::size_t next) {
    std::vector<std::vector<double>> table;
    for (const Implementation& made : ways_[next]) {
      std::vector<double>& row = table.emplace_back();
      for (const Implementation& way : ways_[now])
        row.push_back(price_of(transformations_.of(graph_.vertices[next], made.result, way.result)));
    }
    edges_.push_back({next, now, std::move(table)});
  }
  bool reads(std::size_t v, std::size_t from) const {
    return std::any_of(ways_[v].front().reads.begin(), ways_[v].front().reads.end(),
                       [&](const NeededFormat& need) { return need.tensor == from; });
  }
  FormatCost brought(std::size_t tensor, const TensorFormat& from, const Implementation& way) {
    FormatCost cost;
    for (const NeededFormat& need : way.reads) {
      if (need.tensor == tensor) cost += transformations_.of(graph_.vertices[tensor], from, need.format);
    }
    return cost;
  }

  double seconds() const {
    double sum = 0;
    for (std::size_t v = 0; v < ways_.size(); ++v) {
      if (!is_input(graph_.vertices[v])) sum += own_[v][chosen_[v]];
    }
    for (const Edge& edge : edges_) {
      if (!is_input(graph_.vertices[edge.from]) && !is_input(graph_.vertices[edge.to]))
        sum += edge.seconds[chosen_[edge.from]][chosen_[edge.to]];
    }
    for (const std::size_t input : inputs_) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t way = 0; way < ways_[input].size(); ++way) {
        double cost = own_[input][way];
        for (const Edge& edge : edges_) {
          if (edge.from == input) cost += edge.seconds[way][chosen_[edge.to]];
          if (edge.to == input) cost += edge.seconds[chosen_[edge.from]][way];
        }
        least = std::min(least, cost);
      }
      sum += least;
    }
    return sum;
  }

  bool advance() {
    for (std::size_t v = 0; v < ways_.size(); ++v) {
      if (is_input(graph_.vertices[v])) continue;
      if (++chosen_[v] < ways_[v].size()) return true;
      chosen_[v] = 0;
    }
    return false;
  }

  static constexpr double most_tuples = 1 << 20;  ///< of a relation, and of a join

  const EinGraph& graph_;
  FormatWeights weights_;
  TransformationCosts transformations_;
  std::set<std::string> names_;
  std::vector<std::size_t> inputs_;
  std::vector<std::vector<Implementation>> ways_;
  std::vector<std::vector<double>> own_;
  std::vector<Edge> edges_;
  std::vector<std::size_t> chosen_;
  std::vector<std::size_t> order_;
  std::vector<double> rest_;  ///< the least that the vertices from a depth on can cost
  double best_ = 0;
};

}  // namespace einrel::test
