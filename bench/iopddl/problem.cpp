#include "problem.h"

#include <cstdint>
#include <istream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace einrel::iopddl {
namespace {

using nlohmann::json;

constexpr double impossible = std::numeric_limits<double>::infinity();
constexpr double least_impossible = 1e17;

void require(bool is_right, const std::string& what) {
  if (!is_right) throw std::runtime_error("not a problem of the contest: " + what);
}

std::vector<double> costs_of(const json& list) {
  std::vector<double> costs;
  for (const json& each : list) {
    const auto cost = each.get<double>();
    costs.push_back(cost >= least_impossible ? impossible : cost);
  }
  return costs;
}

void read_nodes(const json& nodes, LimitedNetwork& network) {
  const std::size_t count = nodes.at("costs").size();
  require(nodes.at("intervals").size() == count && nodes.at("usages").size() == count, "nodes' lists differ in length");
  for (std::size_t v = 0; v < count; ++v) {
    network.alone.push_back(costs_of(nodes["costs"][v]));
    network.usages.push_back(nodes["usages"][v].get<std::vector<double>>());
    const auto life = nodes["intervals"][v].get<std::vector<std::size_t>>();
    require(life.size() == 2, "an interval has a begin and an end");
    require(!network.alone.back().empty() && network.alone.back().size() == network.usages.back().size(),
            "a node has one cost and one usage for each of its strategies");
    network.lives.push_back({life[0], life[1]});
  }
}

void read_edge(const std::vector<std::size_t>& nodes, std::vector<double> costs, LimitedNetwork& network) {
  std::size_t product = 1;
  for (const std::size_t v : nodes) {
    require(v < network.alone.size(), "an edge has a node that there is not");
    product *= network.alone[v].size();
  }
  require(nodes.size() == 1 || nodes.size() == 2, "an edge has one or two nodes");
  require(costs.size() == product, "an edge has a cost for each pair of strategies");
  const std::size_t strategies = network.alone[nodes.front()].size();
  if (nodes.size() == 2 && nodes[0] != nodes[1]) {
    network.pairs.push_back({nodes[0], nodes[1], std::move(costs)});
    return;
  }
  const std::size_t step = nodes.size() == 1 ? 1 : strategies + 1;  // of one node with itself, the diagonal
  for (std::size_t value = 0; value < strategies; ++value) network.alone[nodes.front()][value] += costs[value * step];
}

}  // namespace

Problem read_problem(std::istream& from) {
  try {
    const json all = json::parse(from);
    const json& problem = all.at("problem");
    Problem result{problem.value("name", std::string()), {}};
    LimitedNetwork& network = result.network;
    read_nodes(problem.at("nodes"), network);
    const json& edges = problem.at("edges");
    require(edges.at("nodes").size() == edges.at("costs").size(), "edges' lists differ in length");
    for (std::size_t e = 0; e < edges["nodes"].size(); ++e)
      read_edge(edges["nodes"][e].get<std::vector<std::size_t>>(), costs_of(edges["costs"][e]), network);
    network.limit = problem.value("usage_limit", impossible);
    return result;
  } catch (const json::exception& error) {
    throw std::runtime_error(std::string("not a problem of the contest: ") + error.what());
  }
}

}  // namespace einrel::iopddl
