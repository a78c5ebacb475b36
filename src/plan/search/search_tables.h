#pragma once

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "plan/cost/cost.h"
#include "plan/placed_inputs.h"
#include "plan/search/search.h"

/// What the searches of plans share; nobody else needs it.
namespace einrel::search {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Per vertex the position of its candidate.
using Choice = std::vector<std::size_t>;

/// What a vertex may need of one producer, through all operands that read it: the layouts that differ.
using Needs = std::vector<Layout>;

/// One producer as a vertex reads it.
struct Source {
  std::size_t operand = 0;           ///< the first that reads it
  std::vector<Needs> needs;          ///< that differ
  std::vector<std::size_t> ids;      ///< of the needs, equal for equal ones all over the graph
  std::vector<std::size_t> need_of;  ///< per candidate
};

/// What equal vertices share.
struct VertexClass {
  std::vector<VertexPlan> candidates;
  std::vector<double> costs;           ///< per candidate
  std::vector<Layout> results;         ///< that differ
  std::vector<std::size_t> result_of;  ///< per candidate
  std::vector<Source> sources;
};

/// The cost of bringing a result to a need: [result * needs + need].
struct EdgeTable {
  std::size_t needs = 0;
  std::vector<double> costs;
  double operator()(std::size_t result, std::size_t need) const { return costs[result * needs + need]; }
};

/// One reading of a producer.
struct Edge {
  std::size_t producer = 0;
  std::size_t consumer = 0;
  std::size_t source = 0;  ///< of the consumer
  const EdgeTable* table = nullptr;
};

/// Costs of all candidates of all vertices, and of all that may pass between them.
struct Tables {
  Tables(const EinGraph& of, const CostModel& by, const Candidates& candidates);

  const VertexClass& of_class(std::size_t v) const { return *classes[class_of[v]]; }
  bool is_input(std::size_t v) const { return einrel::is_input(graph.vertices[v]); }
  /// An input whose place matters: to several consumers, or since it is given.
  bool is_shared_input(std::size_t v) const {
    return is_input(v) && model.sends_once() && (readers[v] > 1 || !lies_freely(graph.vertices[v]));
  }

  double edge_cost(const Edge& edge, const Choice& choice) const {
    return (*edge.table)(result_at(edge.producer, choice), need_at(edge, choice));
  }
  std::size_t result_at(std::size_t v, const Choice& choice) const { return of_class(v).result_of[choice[v]]; }
  std::size_t need_at(const Edge& edge, const Choice& choice) const {
    return of_class(edge.consumer).sources[edge.source].need_of[choice[edge.consumer]];
  }
  const Needs& needs(const Edge& edge, std::size_t need) const { return source_of(edge).needs[need]; }
  const Source& source_of(const Edge& edge) const { return of_class(edge.consumer).sources[edge.source]; }
  /// The Source::ids of what a consumer needs when it has this candidate.
  std::size_t need_id(const Edge& edge, std::size_t candidate) const {
    const Source& source = source_of(edge);
    return source.ids[source.need_of[candidate]];
  }

  const EinGraph& graph;
  const CostModel& model;
  std::vector<std::size_t> readers;  ///< per vertex, operands that read it
  std::vector<std::unique_ptr<VertexClass>> classes;
  std::vector<std::size_t> class_of;
  std::unordered_map<std::string, std::size_t> class_of_key;
  std::map<Needs, std::size_t> id_of_needs;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::unique_ptr<EdgeTable>> tables;
  std::vector<Edge> edges;
  std::vector<std::vector<std::size_t>> edges_to;    ///< per consumer
  std::vector<std::vector<std::size_t>> edges_from;  ///< per producer

 private:
  std::string class_key(std::size_t v) const;
  std::size_t find_class(std::size_t v, const Candidates& candidates);
  VertexClass new_class(std::size_t v, const Candidates& candidates);
  Source source(std::size_t v, std::size_t operand, const VertexClass& of);
  const EdgeTable* table_of(std::size_t producer, std::size_t consumer, std::size_t s);
};

/// F(v, dZ) path by path, see SearchSpace::by_paths.
Choice plan_paths(const Tables& tables, bool charges);

/// Plans paths of a choice again, each beside what the others have, as long as the cost of the whole falls.
void plan_paths_again(const Tables& tables, Choice& choice, const std::function<double(const Choice&)>& cost);

/// All vertices in order, with many plans of what came before at a time: see SearchSpace::by_beam.
Choice plan_with_beam(const Tables& tables, std::size_t most_steps);

}  // namespace einrel::search
