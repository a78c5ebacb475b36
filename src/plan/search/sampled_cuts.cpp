#include "plan/search/sampled_cuts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

constexpr std::size_t nobody_near = std::numeric_limits<std::size_t>::max();

/// Sets of places that are one.
class JoinedPlaces {
 public:
  explicit JoinedPlaces(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t place) {
    while (parent_[place] != place) place = parent_[place] = parent_[parent_[place]];
    return place;
  }
  void join(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }

 private:
  std::vector<std::size_t> parent_;
};

double elements_in(const Vertex& vertex) {
  double elements = 1;
  for (const Extent extent : vertex.bound) elements *= static_cast<double>(extent.value());
  return elements;
}

}  // namespace

bool has_many_labels(const Vertex& vertex) {
  constexpr std::size_t many = 9;
  return label_extents(vertex).size() >= many;
}

SampledCuts::SampledCuts(const EinGraph& graph, std::vector<std::int64_t> numbers, double comparisons)
    : graph_(graph),
      numbers_(std::move(numbers)),
      comparisons_(comparisons),
      consumers_(graph.vertices.size()),
      of_walks_(graph.vertices.size()) {
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) {
      most_.push_back(most_parts(vertex, graph));
      continue;
    }
    most_.emplace_back();
    for (const Extent extent : vertex.bound) most_.back().push_back(std::max<std::int64_t>(extent.value(), 1));
  }
  find_lines();
  find_lives();
  for (const std::int64_t number : numbers_) {
    if (number == 1) continue;
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      walk(number, direction, Keep::what_is_left);
      walk(number, direction, Keep::nothing);
    }
  }
}

void SampledCuts::find_lines() {
  std::vector<std::size_t> begin{0};
  for (const PartitionVector& most : most_) begin.push_back(begin.back() + most.size());
  JoinedPlaces places(begin.back());
  for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
    const Vertex& vertex = graph_.vertices[v];
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      const std::size_t producer = vertex.inputs[o].index;
      consumers_[producer].push_back(v);
      const std::vector<std::optional<std::size_t>> here = operand_labels(vertex, o);
      const std::vector<std::optional<std::size_t>> there = result_labels(graph_.vertices[producer]);
      for (std::size_t d = 0; d < here.size() && d < there.size(); ++d) {
        if (here[d] && there[d]) places.join(begin[v] + *here[d], begin[producer] + *there[d]);
      }
    }
  }
  std::map<std::size_t, std::size_t> numbers;  // in the order in which lines appear
  for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
    std::vector<std::size_t>& lines = line_of_.emplace_back();
    for (std::size_t l = 0; l < most_[v].size(); ++l) {
      lines.push_back(numbers.try_emplace(places.root(begin[v] + l), numbers.size()).first->second);
    }
  }
  lines_.resize(numbers.size());
}

void SampledCuts::find_lives() {
  for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
    const Vertex& vertex = graph_.vertices[v];
    is_passed_on_.emplace_back(most_[v].size(), is_input(vertex));
    if (is_input(vertex)) continue;
    std::vector<bool> is_in_result(most_[v].size(), false);
    for (const std::optional<std::size_t> label : result_labels(vertex)) {
      if (label) is_in_result[*label] = true;
    }
    double largest = 0;
    for (const VertexId input : vertex.inputs) largest = std::max(largest, elements_in(graph_[input]));
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      if (elements_in(graph_[vertex.inputs[o]]) < largest) continue;
      for (const std::optional<std::size_t> label : operand_labels(vertex, o)) {
        if (!label || !is_in_result[*label]) continue;
        is_passed_on_[v][*label] = true;
        Line& line = lines_[line_of_[v][*label]];
        if (!line.is_passed) line = {v, v, true};
        line.last = v;
      }
    }
  }
}

bool SampledCuts::is_passed_on(std::size_t v, std::size_t label) const { return is_passed_on_[v][label]; }

std::size_t SampledCuts::most_of(std::size_t v) const {
  constexpr double fewest = 32;
  constexpr double most = 1000;
  const auto many = std::count_if(graph_.vertices.begin(), graph_.vertices.end(), has_many_labels);
  const auto each = static_cast<double>(std::max<std::size_t>(most_[v].size(), 1)) *
                    static_cast<double>(std::max<std::ptrdiff_t>(many, 1));
  return static_cast<std::size_t>(std::clamp(std::sqrt(comparisons_ / each), fewest, most));
}

/// Labels that can be cut; first those that are passed on the longest, counted from here.
std::vector<std::size_t> SampledCuts::by_rank(std::size_t v, Direction direction) const {
  std::vector<std::size_t> labels;
  for (std::size_t l = 0; l < most_[v].size(); ++l) {
    if (most_[v][l] > 1) labels.push_back(l);
  }
  const auto rank = [&](std::size_t label) {
    const std::size_t number = line_of_[v][label];
    const Line& line = lines_[number];
    const auto until =
        direction == Direction::forward ? -static_cast<std::int64_t>(line.last) : static_cast<std::int64_t>(line.first);
    return std::tuple(!is_passed_on(v, label), until, number);
  };
  std::stable_sort(labels.begin(), labels.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return labels;
}

/// Labels that can be cut, in turns of those that are passed on long before, long after and long in all, and the first.
std::vector<std::size_t> SampledCuts::pool_order(std::size_t v) const {
  std::vector<std::vector<std::size_t>> orders{by_rank(v, Direction::forward), by_rank(v, Direction::backward)};
  orders.push_back(orders.front());
  std::vector<std::size_t>& longest = orders.back();
  const auto life = [&](std::size_t label) {
    const Line& line = lines_[line_of_[v][label]];
    return is_passed_on(v, label) ? static_cast<std::int64_t>(line.last - line.first) : -1;
  };
  std::stable_sort(longest.begin(), longest.end(), [&](std::size_t a, std::size_t b) { return life(a) > life(b); });
  std::rotate(orders.begin(), orders.end() - 1, orders.end());
  orders.push_back(longest);
  std::sort(orders.back().begin(), orders.back().end());
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < orders.front().size(); ++i) {
    for (const std::vector<std::size_t>& order : orders) {
      if (std::find(all.begin(), all.end(), order[i]) == all.end()) all.push_back(order[i]);
    }
  }
  return all;
}

/// For how many vertices around this one all labels that are cut are passed on; below 0 where some are not.
std::int64_t SampledCuts::value_of(std::size_t v, const PartitionVector& grid) const {
  std::size_t begin = 0;
  std::size_t end = graph_.vertices.size();
  std::int64_t others = 0;
  for (std::size_t l = 0; l < grid.size(); ++l) {
    if (grid[l] == 1) continue;
    const Line& line = lines_[line_of_[v][l]];
    if (!is_passed_on(v, l) || !line.is_passed) {
      ++others;
      continue;
    }
    begin = std::max(begin, line.first);
    end = std::min(end, line.last);
  }
  return others > 0 ? -others : static_cast<std::int64_t>(end) - static_cast<std::int64_t>(begin);
}

void SampledCuts::add_sampled(std::size_t v, std::int64_t number, std::size_t most,
                              std::vector<PartitionVector>& found) const {
  constexpr double several = 4;  // as many as are taken are looked at
  const double enough = several * static_cast<double>(most);
  std::vector<std::size_t> pool;
  PartitionVector most_of_pool;
  for (const std::size_t label : pool_order(v)) {
    pool.push_back(label);
    most_of_pool.push_back(most_[v][label]);
    if (exact_count_of_factorizations(most_of_pool, number) <= enough) continue;
    PartitionVector shorter(most_of_pool.begin(), most_of_pool.end() - 1);
    if (exact_count_of_factorizations(shorter, number) == 0) break;
    most_of_pool = std::move(shorter);
    pool.pop_back();
    break;
  }
  std::vector<std::pair<std::int64_t, PartitionVector>> ranked;
  for (const PartitionVector& of_pool : factorizations(most_of_pool, number)) {
    PartitionVector grid(most_[v].size(), 1);
    for (std::size_t i = 0; i < pool.size(); ++i) grid[pool[i]] = of_pool[i];
    ranked.emplace_back(-value_of(v, grid), std::move(grid));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (ranked.size() > most) ranked.resize(most);
  for (auto& [value, grid] : ranked) found.push_back(std::move(grid));
}

std::vector<PartitionVector> SampledCuts::of(std::size_t v, std::size_t most) const {
  std::vector<PartitionVector> found = of_walks_[v];
  for (std::size_t n = 0; n < numbers_.size(); ++n) {
    const std::size_t shares = numbers_.size() == 1 ? 1 : n == 0 ? 2 : 2 * (numbers_.size() - 1);
    add_sampled(v, most_sites_of(most_[v], numbers_[n]), std::max<std::size_t>(most / shares, 1), found);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// The vertex whose cut a walk goes on with: the producer of the largest operand, or the consumer of most labels.
std::size_t SampledCuts::neighbour(std::size_t v, Direction direction) const {
  std::size_t best = nobody_near;
  double most = 0;
  const auto look_at = [&](std::size_t other, double size) {
    if (best != nobody_near && size <= most) return;
    best = other;
    most = size;
  };
  if (direction == Direction::forward) {
    for (const VertexId input : graph_.vertices[v].inputs) {
      if (!is_input(graph_[input])) look_at(input.index, elements_in(graph_[input]));
    }
  } else {
    for (const std::size_t consumer : consumers_[v]) look_at(consumer, elements_in(graph_.vertices[consumer]));
  }
  return best;
}

SampledCuts::CutLines SampledCuts::inherited(std::size_t v, Direction direction,
                                             const std::vector<PartitionVector>& grids) const {
  CutLines cut;
  const std::size_t from = neighbour(v, direction);
  if (from == nobody_near) return cut;
  for (std::size_t l = 0; l < grids[from].size(); ++l) {
    if (grids[from][l] > 1) cut.emplace_back(line_of_[from][l], grids[from][l]);
  }
  return cut;
}

/// Cuts labels in this order until there are so many parts; whether that can be done.
bool SampledCuts::fill(std::size_t v, std::int64_t number, const std::vector<std::size_t>& order,
                       PartitionVector& grid) const {
  std::int64_t left = number / std::accumulate(grid.begin(), grid.end(), std::int64_t{1}, std::multiplies<>());
  const std::vector<std::int64_t> primes = prime_factors(left);
  for (auto prime = primes.rbegin(); prime != primes.rend(); ++prime) {  // the largest fit least
    const auto label =
        std::find_if(order.begin(), order.end(), [&](std::size_t l) { return grid[l] * *prime <= most_[v][l]; });
    if (label == order.end()) return false;
    grid[*label] *= *prime;
  }
  return true;
}

/// Goes through the graph with one cut. Where a line of it is not passed on, that is replaced by the one that will be
/// passed on for the longest, or all are.
void SampledCuts::walk(std::int64_t number, Direction direction, Keep keep) {
  std::vector<PartitionVector> grids(graph_.vertices.size());
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const std::size_t v = direction == Direction::forward ? i : grids.size() - 1 - i;
    if (direction == Direction::forward && is_input(graph_.vertices[v])) continue;
    const std::int64_t sites = most_sites_of(most_[v], number);
    PartitionVector grid(most_[v].size(), 1);
    std::int64_t product = 1;
    bool is_whole = true;
    for (const auto& [line, parts] : inherited(v, direction, grids)) {
      const auto at = std::find(line_of_[v].begin(), line_of_[v].end(), line);
      const auto label = static_cast<std::size_t>(at - line_of_[v].begin());
      const bool goes_on = at != line_of_[v].end() && is_passed_on(v, label) && parts <= most_[v][label] &&
                           sites % (product * parts) == 0;
      if (goes_on) product *= grid[label] = parts;
      is_whole = is_whole && goes_on;
    }
    if (!is_whole && keep == Keep::nothing) grid.assign(grid.size(), 1);
    if (!fill(v, sites, by_rank(v, direction), grid)) continue;
    of_walks_[v].push_back(grid);
    grids[v] = std::move(grid);
  }
}

}  // namespace einrel
