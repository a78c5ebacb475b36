#include "plan/search/sampled_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "ia/interpret.h"
#include "ia/traffic.h"
#include "plan/cost/cost.h"
#include "plan/cost/memory.h"
#include "plan/lower.h"
#include "plan/planners/eindecomp.h"
#include "plan/planners/planner.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_einsum.h"

namespace einrel::test {
namespace {

/// Gates on one or two of many labels of extent 2, one after the other.
struct Circuit {
  std::string text;
  std::vector<std::vector<std::size_t>> gates;  ///< the labels that each takes
};

std::string listed_labels(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : ",") + label;
  return text;
}

Circuit random_circuit(Random& random, std::size_t qubits, std::size_t gates) {
  std::vector<std::string> state;
  Circuit circuit{"dims a=2 b=2", {}};
  for (std::size_t q = 0; q < qubits; ++q) {
    state.push_back("q" + std::to_string(q));
    circuit.text += " " + state.back() + "=2";
  }
  circuit.text += "\ninput X0[" + listed_labels(state) + "]\n";
  for (std::size_t g = 0; g < gates; ++g) {
    const std::string number = std::to_string(g);
    std::vector<std::string> after = state;
    std::vector<std::size_t> taken{static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(qubits) - 1))};
    if (random.chance(0.6)) {
      taken.push_back((taken[0] + static_cast<std::size_t>(random.between(1, static_cast<std::int64_t>(qubits) - 1))) %
                      qubits);
    }
    std::vector<std::string> reduced;
    std::vector<std::string> made;
    for (const std::size_t q : taken) {
      reduced.push_back(state[q]);
      made.push_back(made.empty() ? "a" : "b");
      after[q] = made.back();
    }
    const std::string gate = listed_labels(made) + "," + listed_labels(reduced);
    circuit.text += "input G" + number + "[" + gate + "]\nX" + std::to_string(g + 1) + "[" + listed_labels(after) +
                    "] = sum[" + listed_labels(reduced) + "] G" + number + "[" + gate + "] * X" + number + "[" +
                    listed_labels(state) + "]\n";
    circuit.gates.push_back(std::move(taken));
  }
  circuit.text += "output X" + std::to_string(gates) + "\n";
  return circuit;
}

/// The least bytes of cutting the state anew, of all ways of cutting `cut` of the labels before each gate, none of
/// them one that the gate takes: with k labels replaced, one site in 2^k has what it needs.
double least_bytes_of_all_cuts(const Circuit& circuit, std::size_t qubits, int cut) {
  std::vector<unsigned> sets;
  for (unsigned set = 0; set < 1U << qubits; ++set) {
    if (std::popcount(set) == cut) sets.push_back(set);
  }
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<double> least(sets.size(), 0);
  for (std::size_t g = 0; g < circuit.gates.size(); ++g) {
    unsigned taken = 0;
    for (const std::size_t q : circuit.gates[g]) taken |= 1U << q;
    std::vector<double> next(sets.size(), never);
    for (std::size_t to = 0; to < sets.size(); ++to) {
      if ((sets[to] & taken) != 0) continue;
      if (g == 0) next[to] = 0;
      for (std::size_t from = 0; g > 0 && from < sets.size(); ++from) {
        const int replaced = cut - std::popcount(sets[from] & sets[to]);
        next[to] = std::min(next[to], least[from] + 1 - std::exp2(-replaced));
      }
    }
    least = std::move(next);
  }
  return *std::min_element(least.begin(), least.end()) * std::exp2(qubits) * 4;
}

/// What all sites but one get of the gates, which are whole on each.
double bytes_of_gates(const Circuit& circuit, std::int64_t sites) {
  double elements = 0;
  for (const std::vector<std::size_t>& taken : circuit.gates) elements += taken.size() == 1 ? 4 : 16;
  return 4 * elements * static_cast<double>(sites - 1);
}

Plan planned(const EinGraph& graph, std::int64_t sites, CostKind cost) {
  return std::get<Plan>(planner_named("eindecomp").plan(graph, {sites, {}, cost, std::nullopt}));
}

void expect_uses_all_sites(const EinGraph& graph, const Plan& plan) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v])) continue;
    EXPECT_EQ(sites_used(plan.vertices[v]), plan.sites) << graph.vertices[v].name;
  }
}

TEST(ManyLabels, OfCircuitsMoveAboutWhatTheBestOfAllCutsMoves) {
  constexpr double factor = 1.1;
  constexpr std::size_t qubits = 12;
  Random random(71);
  for (int round = 0; round < 4; ++round) {
    const Circuit circuit = random_circuit(random, qubits, 60);
    const EinGraph graph = einrel::graph_of(circuit.text);
    for (const int cut : {2, 4, 6}) {
      SCOPED_TRACE(std::to_string(cut) + " labels cut of\n" + circuit.text);
      const Plan plan = planned(graph, std::int64_t{1} << cut, CostKind::bytes);
      expect_uses_all_sites(graph, plan);
      const double least = least_bytes_of_all_cuts(circuit, qubits, cut);
      EXPECT_LE(static_cast<double>(costs_of(graph, plan, {}).bytes),
                factor * least + bytes_of_gates(circuit, plan.sites));
    }
  }
}

/// The least that all cuts of a few labels move, and what a few cuts for each vertex move, both by the model.
TEST(ManyLabels, AreCutAlongLinesThatNeighboursPassOn) {
  Random random(72);
  for (int round = 0; round < 20; ++round) {
    constexpr std::size_t qubits = 8;
    const int cut = 2 + round % 3;
    const Circuit circuit = random_circuit(random, qubits, 30);
    SCOPED_TRACE(std::to_string(cut) + " labels cut of\n" + circuit.text);
    const EinGraph graph = einrel::graph_of(circuit.text);
    const SampledCuts cuts(graph, {std::int64_t{1} << cut});
    constexpr std::size_t few = 16;  // of 28, 56 and 70
    const auto model = cost_model(CostKind::bytes, {});
    std::size_t most = 0;
    const SearchSpace space(graph, *model, [&](const Vertex& vertex, std::size_t v) {
      std::vector<VertexPlan> plans;
      if (is_input(vertex)) return std::vector{one_part_per_site(PartitionVector(vertex.bound.size(), 1))};
      for (const PartitionVector& grid : cuts.of(v, few)) plans.push_back(one_part_per_site(grid));
      most = std::max(most, plans.size());
      return plans;
    });
    EXPECT_LE(most, few + SampledCuts::walks_each);
    constexpr double factor = 1.25;
    EXPECT_LE(space.cost(space.by_paths(true)),
              factor * least_bytes_of_all_cuts(circuit, qubits, cut) + bytes_of_gates(circuit, std::int64_t{1} << cut));
  }
}

TEST(ManyLabels, TakeABoundedNumberOfComparisons) {
  Random random(73);
  for (const std::size_t qubits : {20U, 28U}) {
    for (const std::size_t gates : {10U, 60U}) {
      const Circuit circuit = random_circuit(random, qubits, gates);
      const EinGraph graph = einrel::graph_of(circuit.text);
      for (const std::int64_t sites : {1, 2, 4, 8, 12, 16, 64, 1024}) {
        const Candidates candidates =
            site_candidates(graph, sites, CostKind::bytes, std::vector<bool>(graph.vertices.size(), false));
        double comparisons = 0;
        std::size_t before = 1;
        for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
          const Vertex& vertex = graph.vertices[v];
          if (is_input(vertex)) continue;
          const std::vector<VertexPlan> plans = candidates(vertex, v);
          for (const VertexPlan& plan : plans)
            EXPECT_EQ(static_cast<std::uint64_t>(sites_used(plan)),
                      std::bit_floor(static_cast<std::uint64_t>(sites)));  // 12 are no power of two
          comparisons += static_cast<double>(plans.size() * before * vertex.bound.size());
          before = plans.size();
        }
        EXPECT_LE(comparisons, 1.5e8) << qubits << " labels, " << gates << " gates, " << sites << " sites";
      }
    }
  }
}

/// Of programs that read, reorder and reduce many labels.
TEST(ManyLabels, AreCutForAllSitesWhateverIsDoneWithThem) {
  for (const std::size_t count : {12U, 20U, 28U}) {
    std::vector<std::string> labels;
    std::string dims = "dims";
    for (std::size_t l = 0; l < count; ++l) {
      labels.push_back("d" + std::to_string(l));
      dims += " " + labels.back() + "=2";
    }
    const std::string all = listed_labels(labels);
    const std::string back = listed_labels({labels.rbegin(), labels.rend()});
    const auto middle = labels.begin() + static_cast<std::ptrdiff_t>(count / 2);
    const std::string head = listed_labels({labels.begin(), middle});
    const std::string tail = listed_labels({middle, labels.end()});
    const std::string inputs = dims + "\ninput X[" + all + "], Y[" + all + "]\n";
    for (const std::string& statement :
         {"Z[" + back + "] = X[" + all + "] * Y[" + all + "]", "Z[" + head + "] = sum[" + tail + "] X[" + all + "]",
          "Z[] = sum[" + all + "] X[" + all + "] * Y[" + all + "]",
          "T[" + back + "] = exp(X[" + all + "])\nZ[" + all + "] = T[" + back + "] + X[" + all + "]\noutput Z"}) {
      const EinGraph graph = einrel::graph_of(inputs + statement + "\n");
      for (const std::int64_t sites : {2, 8, 16, 64}) {
        SCOPED_TRACE(statement + " on " + std::to_string(sites));
        expect_uses_all_sites(graph, planned(graph, sites, CostKind::bytes));
      }
    }
  }
}

/// Before and after a gate, and what comes to cut the state anew: three shares of it, and the gates.
TEST(ManyLabels, FitUnderALimitOfLittleMoreThanTheySwap) {
  Random random(75);
  for (const std::int64_t sites : {4, 16, 64}) {
    const Circuit circuit = random_circuit(random, 14, 20);
    SCOPED_TRACE(std::to_string(sites) + " sites\n" + circuit.text);
    const EinGraph graph = einrel::graph_of(circuit.text);
    const std::int64_t share = (std::int64_t{4} << 14U) / sites;
    const std::int64_t limit = 3 * share + 20 * 4 * 16;
    const Plan plan =
        std::get<Plan>(planner_named("eindecomp").plan(graph, {sites, {}, CostKind::bytes, std::nullopt, limit}));
    EXPECT_LE(peak_of(graph, plan).bytes, limit);
    expect_uses_all_sites(graph, plan);
  }
}

TEST(ManyLabels, LowerToWhatMovesTheModelledBytesAndComputesTheSame) {
  Random random(74);
  for (int round = 0; round < 12; ++round) {
    const Circuit circuit = random_circuit(random, 9 + static_cast<std::size_t>(round % 2), 6);
    const EinGraph graph = einrel::graph_of(circuit.text);
    const std::array<std::int64_t, 4> numbers{4, 6, 16, 64};
    const Plan plan = planned(graph, numbers.at(static_cast<std::size_t>(round) % numbers.size()),
                              round % 3 == 0 ? CostKind::seconds : CostKind::bytes);
    SCOPED_TRACE(std::to_string(plan.sites) + " sites\n" + circuit.text);
    const LoweredPlan lowered = lower(graph, plan);
    const PlanCosts costs = costs_of(graph, plan, {});
    const TensorBindings inputs = counted_inputs(graph);
    const IaRun run = interpret(lowered.ia.store, lowered.ia.plan, inputs, {});
    EXPECT_EQ(run.received, costs.received);
    EXPECT_EQ(bytes_of(lowered.ia.store, lowered.ia.plan).total, costs.bytes);
    const Vertex& result = graph[graph.outputs.front()];
    const std::vector<double> want = values_of(evaluate_reference(graph, inputs, {}).front());
    const std::vector<double> got = values_of(assemble(run.outputs.at(result.name), result.dtype, result.bound.size()));
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t e = 0; e < got.size(); ++e) EXPECT_NEAR(got[e], want[e], 1e-5 * std::max(1.0, std::abs(want[e])));
  }
}

}  // namespace
}  // namespace einrel::test
