#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "einsum/graph/vertex_facts.h"
#include "plan/planners/parameter_server.h"
#include "plan/planners/planner.h"
#include "plan/search/elimination.h"
#include "plan/search/tilings.h"
#include "random_product.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/rounds.h"

namespace einrel::test {
namespace {

/// A step of training without biases, as SoyBean's experiments count it: z = x W, x = relu z, the error at the top
/// x - y, and downwards G = x' d, e = d W', d = e relu'(z), and new weights W - G.
EinGraph training_step(std::size_t layers, std::int64_t width, std::int64_t batch) {
  std::string text = "dims b=" + std::to_string(batch);
  const auto unit = [](std::size_t layer) { return "h" + std::to_string(layer); };
  for (std::size_t l = 0; l <= layers; ++l) text += " " + unit(l) + "=" + std::to_string(width);
  text += "\ninput X0[b,h0], Y[b," + unit(layers) + "]\n";
  for (std::size_t l = 1; l <= layers; ++l) {
    const std::string n = std::to_string(l);
    const std::string below = std::to_string(l - 1);
    text += "state W" + n + "[h" + below + ",h" + n + "] = 0\n";
    text += "Z" + n + "[b,h" + n + "] = sum[h" + below + "] X" + below + "[b,h" + below + "] * W" + n + "[h" + below +
            ",h" + n + "]\nX" + n + "[b,h" + n + "] = relu(Z" + n + "[b,h" + n + "])\n";
  }
  const std::string top = std::to_string(layers);
  text += "D" + top + "[b,h" + top + "] = X" + top + "[b,h" + top + "] - Y[b,h" + top + "]\n";
  for (std::size_t l = layers; l >= 1; --l) {
    const std::string n = std::to_string(l);
    const std::string m = std::to_string(l - 1);
    text += "G" + n + "[h" + m + ",h" + n + "] = sum[b] X" + m + "[b,h" + m + "] * D" + n + "[b,h" + n + "]\n";
    text += "next W" + n + "[h" + m + ",h" + n + "] = W" + n + "[h" + m + ",h" + n + "] - G" + n + "[h" + m + ",h" + n +
            "]\n";
    if (l == 1) break;
    text += "E" + m + "[b,h" + m + "] = sum[h" + n + "] D" + n + "[b,h" + n + "] * W" + n + "[h" + m + ",h" + n + "]\n";
    text += "D" + m + "[b,h" + m + "] = E" + m + "[b,h" + m + "] * step(Z" + m + "[b,h" + m + "])\n";
  }
  return needed_for_outputs(einrel::graph_of(text));
}

TilingCuts cuts_into(const EinGraph& graph, const std::vector<std::int64_t>& groups) {
  return tiling_cuts(graph, {CutsWanted{groups}});
}

std::vector<double> deltas(const TilingCuts& found) {
  std::vector<double> deltas;
  for (const TilingCut& cut : found.cuts) deltas.push_back(cut.moved);
  return deltas;
}

TEST(TilingCuts, AreThoseWorkedOutForTrainingSteps) {
  EXPECT_EQ(deltas(cuts_into(training_step(4, 8192, 512), prime_factors(8))),
            (std::vector<double>{25'165'824, 12'582'912, 9'437'184}));
  // Cuts that cost the same may leave more or less to the next: at most what was worked out with one choice of them.
  const TilingCuts wide = cuts_into(training_step(4, 1024, 8192), prime_factors(8));
  EXPECT_EQ(wide.cuts.front().moved, 8'388'608);
  EXPECT_LE(wide.moved(), 41'943'040);
  const TilingCuts deep = cuts_into(training_step(5, 300, 400), prime_factors(16));
  EXPECT_EQ(deep.cuts.front().moved, 780'000);
  EXPECT_LE(deep.moved(), 3'853'400);
}

std::size_t below(Random& random, std::size_t bound) {
  return static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(bound) - 1));
}

/// Cuts of everything into two, and of each half again, by trying all tilings of all cuts together: SoyBean's table of
/// conversions, written down again.
double least_by_brute_force(const EinGraph& graph, std::size_t cuts) {
  constexpr int replicated = -1;
  constexpr int partial = -2;
  const auto converted = [](int from, int to, double elements) {
    if (from == to || from == replicated) return 0.0;
    if (from == partial) return to == replicated ? 2 * elements : elements;
    return to == replicated ? elements : elements / 2;
  };
  std::vector<std::vector<int>> tiling(cuts, std::vector<int>(graph.vertices.size(), replicated));
  /// What a cut finds of a tensor in each of the groups that the cuts before it made, all of these groups together.
  const auto elements = [&](std::size_t v, std::size_t cut) {
    double product = 1;
    for (const Extent extent : graph.vertices[v].bound) product *= static_cast<double>(extent.value());
    for (std::size_t c = 0; c < cut; ++c) product *= tiling[c][v] == replicated ? 2 : 1;
    return product;
  };
  const auto position = [](const std::vector<std::optional<std::size_t>>& labels, std::size_t label, int otherwise) {
    const auto at = std::find(labels.begin(), labels.end(), label);
    return at == labels.end() ? otherwise : static_cast<int>(at - labels.begin());
  };
  const auto cost_of_cut = [&](std::size_t c) {
    const std::vector<int>& lies = tiling[c];
    double total = 0;
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      const Vertex& vertex = graph.vertices[v];
      if (is_input(vertex)) continue;
      double least = INFINITY;
      for (std::size_t l = 0; l < labels_of(vertex).size(); ++l) {
        double form = converted(position(result_labels(vertex), l, partial), lies[v], elements(v, c));
        bool is_read = false;
        for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
          const std::size_t read = vertex.inputs[o].index;
          const int needed = position(operand_labels(vertex, o), l, replicated);
          is_read = is_read || needed != replicated;
          form += converted(lies[read], needed, elements(read, c));
        }
        if (is_read) least = std::min(least, form);
      }
      total += least;
    }
    for (const State& state : graph.steps.states) {
      const std::size_t now = state.now.index;
      total += converted(lies[graph.outputs[*state.next].index], lies[now], elements(now, c));
    }
    return total;
  };
  double least = INFINITY;
  const std::function<void(std::size_t)> try_from = [&](std::size_t at) {
    const std::size_t v = at / cuts;
    if (v == graph.vertices.size()) {
      double cost = 0;
      for (std::size_t c = 0; c < cuts; ++c) cost += cost_of_cut(c);
      least = std::min(least, cost);
      return;
    }
    int& lies = tiling[at % cuts][v];
    for (lies = replicated; lies < static_cast<int>(graph.vertices[v].bound.size()); ++lies) try_from(at + 1);
  };
  try_from(0);
  return least;
}

/// Products and functions of what came before, of which one is the next value of a state. No extent is below `least`.
std::string random_training_step(Random& random, std::size_t least, std::size_t statements) {
  const auto extent = [&](std::size_t range) { return std::to_string(least + below(random, range)); };
  std::string text = "dims a=" + extent(3) + " b=" + extent(7) + " c=" + extent(5) + " d=" + extent(30) +
                     "\ninput X[a,b], Y[b,c]\nstate W[c,d] = 0\n";
  const auto indexed = [](const Named& tensor) {
    std::string labels;
    for (const char label : tensor.second) labels += (labels.empty() ? "" : ",") + std::string(1, label);
    return tensor.first + "[" + labels + "]";
  };
  std::vector<Named> tensors{{"X", "ab"}, {"Y", "bc"}, {"W", "cd"}};
  for (std::size_t t = 0; t < statements; ++t) {
    const Named x = tensors[below(random, tensors.size())];
    const Named y = tensors[below(random, tensors.size())];
    const std::string name = "T" + std::to_string(t);
    if (random.chance(0.3)) {
      const Named made{name, x.second};
      const bool is_sum = x.second == y.second && random.chance(0.5);
      text += indexed(made) + " = " + (is_sum ? indexed(x) + " - " + indexed(y) : "relu(" + indexed(x) + ")") + "\n";
      tensors.push_back(made);
      continue;
    }
    auto [statement, made] = random_product(random, name, x, y, 0.8);
    if (made.second.empty()) continue;
    if (const std::size_t sum = statement.find("sum["); sum != std::string::npos && random.chance(0.3))
      statement.replace(sum, 3, "max");
    text += statement;
    tensors.push_back(made);
  }
  const Named& last = tensors.back();
  const bool is_used = last.second.find_first_of("cd") != std::string::npos;
  return text + "next W[c,d] = W[c,d] * 0.5" + (is_used ? " + " + indexed(last) : "") + "\n";
}

/// Calls `check` with so many of them, of at most so many tensors, and their texts.
template <class Check>
void for_training_steps(int count, std::size_t most_tensors, std::size_t least_extent, const Check& check) {
  Random random(38);
  int compared = 0;
  for (int round = 0; compared < count && round < 100 * count; ++round) {
    const std::string text = random_training_step(random, least_extent, most_tensors - 4);
    EinGraph graph;
    try {
      graph = needed_for_outputs(einrel::graph_of(text));
    } catch (const std::exception&) {
      continue;  // a label that stands in no operand of the sum
    }
    if (graph.vertices.size() > most_tensors) continue;
    ++compared;
    check(graph, text);
  }
  EXPECT_EQ(compared, count);
}

TEST(TilingCuts, AreTheBestOfAllTilings) {
  for_training_steps(rounds(500), 8, 2, [](const EinGraph& graph, const std::string& text) {
    EXPECT_DOUBLE_EQ(cuts_into(graph, {2}).cuts.front().moved, least_by_brute_force(graph, 1)) << text;
    EXPECT_DOUBLE_EQ(least_moved(graph, {2}).value(), cuts_into(graph, {2}).moved());
  });
}

// Of these, two cuts of which each is the best for what the first left are in most cases the best of all, never better.
TEST(TilingCuts, AreTheBestOfAllTilingsOfTwoCutsInMostCases) {
  int best = 0;
  for_training_steps(rounds(24), 6, 8, [&](const EinGraph& graph, const std::string& text) {
    const double least = least_by_brute_force(graph, 2);
    EXPECT_DOUBLE_EQ(least_moved(graph, {2, 2}).value(), least) << text;
    const double found = cuts_into(graph, {2, 2}).moved();
    EXPECT_GE(found, least) << text;
    best += found == least ? 1 : 0;
  });
  EXPECT_GE(best, rounds(24) / 2);
}

TEST(TilingCuts, AreComparedWithTheBestOfAllTilingsOfAllCuts) {
  // Extents of 8, so that two cuts may halve the same label twice.
  for (const char* const text :
       {"dims a=8 b=16\ninput X[a,b]\nstate W[b,a] = 0\nZ[a,b] = X[a,b] * W[b,a]\nnext W[b,a] = W[b,a] - Z[a,b]\n",
        "dims a=8 b=16 c=32\ninput X[a,b], Y[b,c]\nZ[a,c] = sum[b] X[a,b] * Y[b,c]\nV[c] = sum[a] Z[a,c]\n",
        "dims a=8 b=8 c=64\ninput X[a,b]\nstate W[b,c] = 0\nZ[a,c] = sum[b] X[a,b] * W[b,c]\n"
        "next W[b,c] = sum[a] X[a,b] * Z[a,c]\n"}) {
    const EinGraph graph = needed_for_outputs(einrel::graph_of(std::string(text)));
    EXPECT_DOUBLE_EQ(least_moved(graph, {2, 2}).value(), least_by_brute_force(graph, 2)) << text;
  }
}

TEST(TilingCuts, AreNeverBetterThanAllCutsAtOnce) {
  for (const std::int64_t sites : {2, 3, 4, 6, 8}) {
    const EinGraph graph = training_step(3, 48, 96);
    const std::optional<double> least = least_moved(graph, prime_factors(sites));
    ASSERT_TRUE(least) << sites;
    EXPECT_LE(*least, cuts_into(graph, prime_factors(sites)).moved() * (1 + 1e-12)) << sites;
  }
  EXPECT_EQ(least_moved(training_step(3, 4096, 4096), prime_factors(4096)), std::nullopt);
}

TEST(ParameterServer, ExchangesWhatThePaperCounts) {
  // Section 2.2: 1.8 MB of parameters and 2.4 MB of activations on 16 devices.
  const ParameterServer server = parameter_server(training_step(5, 300, 400), {16, {}, CostKind::bytes, {}}).value();
  EXPECT_EQ(server.parameters, 1'800'000);
  EXPECT_EQ(server.activations, 2'400'000);
  EXPECT_EQ(server.moved(16, 1), 57'600'000);
  EXPECT_EQ(server.moved(1, 16), 76'800'000);
  EXPECT_EQ(server.moved(4, 4), 33'600'000);
  EXPECT_EQ(best_groups(server, 16), 4);
  EXPECT_EQ(best_groups(server, 7), std::nullopt);
  // Biases are parameters, but what adds them makes no other activations; a program without states has none.
  const EinGraph biased = einrel::graph_of(std::string(
      "dims b=8 f=4 h=2\ninput X[b,f]\nstate W[f,h] = 0\nstate B[h] = 0\nH[b,h] = relu(B[h] + sum[f] X[b,f] * W[f,h])\n"
      "loss[] = sum[b,h] H[b,h]\nminimize loss over W, B by sgd(0.1)\noutput loss\n"));
  const ParameterServer of_biased = parameter_server(biased, {4, {}, CostKind::bytes, {}}).value();
  EXPECT_EQ(of_biased.parameters, 4 * (4 * 2 + 2));
  EXPECT_EQ(of_biased.activations, 4 * 8 * 2);
}

TEST(ParameterServer, IsOfTrainingAlone) {
  for (const char* const text : {
           "dims a=8\ninput X[a]\nY[a] = 2 * X[a]\n",
           // A vector that becomes another one, and one to which what is left is added.
           "dims i=8 j=8\ninput A[i,j]\nstate v[j] = 1\nu[i] = sum[j] A[i,j] * v[j]\nnext v[j] = u[j] / "
           "norm[i](u[i])\n",
           "dims i=8 j=8\ninput A[i,j], b[i]\nstate x[i] = 0\nr[i] = b[i] - sum[j] A[i,j] * x[j]\n"
           "next x[i] = x[i] + r[i]\n",
           // Centres become means of the points that are nearest to them.
           "dims n=8 k=2 d=2\ninput P[n,d]\nstate C[k,d] = 0\nF[n,k] = sum[d] sq(P[n,d] - C[k,d])\n"
           "N[n] = argmin[k] F[n,k]\nO[n,k] = f32(N[n] == k)\nS[k] = sum[n] O[n,k]\nT[k,d] = sum[n] O[n,k] * P[n,d]\n"
           "next C[k,d] = where(S[k] > 0, T[k,d] / S[k], C[k,d])\n",
           // A running mean of what comes.
           "dims n=8 d=2\ninput P[n,d]\nstate m[d] = 0\nZ[n,d] = P[n,d] - m[d]\nM[d] = mean[n] P[n,d]\n"
           "next m[d] = 0.9 * m[d] + 0.1 * M[d]\noutput Z, next_m\n",
       }) {
    EXPECT_EQ(parameter_server(needed_for_outputs(einrel::graph_of(std::string(text))), {4, {}, CostKind::bytes, {}}),
              std::nullopt)
        << text;
  }
  const std::string model = "dims b=8 f=4\ninput X[b,f], Y[b]\nstate W[f] = 0\nP[b] = sum[f] X[b,f] * W[f]\n";
  const std::string loss = model + "loss[] = mean[b] sq(P[b] - Y[b])\n";
  for (const std::string& text :
       {loss + "minimize loss over W by sgd(0.1)\n", loss + "minimize loss over W by adam(0.1)\n",
        loss + "gradient G = loss wrt W\nnext W[f] = W[f] - 0.1 * G[f]\n",
        model + "next W[f] = W[f] - 0.1 * (sum[b] X[b,f] * (P[b] - Y[b]))\n"}) {
    const auto server = parameter_server(needed_for_outputs(einrel::graph_of(text)), {4, {}, CostKind::bytes, {}});
    ASSERT_TRUE(server) << text;
    EXPECT_EQ(server->parameters, 4 * 4) << text;
    EXPECT_EQ(server->activations, 4 * 8) << text;
  }
}

TEST(TilingCuts, TakeNoTableOfAllOperands) {
  std::string text = "dims a=8 b=8\ninput X0[a,b]";
  std::string sum = "Z[a,b] = X0[a,b]";
  for (int x = 1; x < 60; ++x) {
    text += ", X" + std::to_string(x) + "[a,b]";
    sum += " + X" + std::to_string(x) + "[a,b]";
  }
  EXPECT_EQ(cuts_into(einrel::graph_of(text + "\n" + sum + "\noutput Z\n"), {2, 2}).moved(), 0);
}

/// Each variable of the order makes as few new pairs as any that is left, as the definition counts them.
TEST(Elimination, TakesVariablesThatMakeFewestPairs) {
  Random random(3);
  for (int round = 0; round < rounds(30); ++round) {
    const std::size_t variables = 1 + below(random, 90);  // more than a word of bits, and fewer
    std::vector<std::vector<std::size_t>> scopes;
    for (std::size_t t = 0; t < variables; ++t) {
      scopes.emplace_back();
      for (std::size_t v = 0; v < variables; ++v) {
        if (random.chance(t == 0 ? 0.5 : 3.0 / static_cast<double>(variables))) scopes.back().push_back(v);
      }
    }
    std::vector<std::set<std::size_t>> near(variables);
    const auto connect = [&](const auto& scope) {
      for (const std::size_t a : scope) {
        for (const std::size_t b : scope) {
          if (a != b) near[a].insert(b);
        }
      }
    };
    for (const std::vector<std::size_t>& scope : scopes) connect(scope);
    const auto new_pairs = [&](std::size_t v) {
      std::size_t pairs = 0;
      for (const std::size_t a : near[v]) {
        for (const std::size_t b : near[v]) pairs += a < b && near[a].count(b) == 0 ? 1U : 0U;
      }
      return pairs;
    };
    std::set<std::size_t> left;
    for (std::size_t v = 0; v < variables; ++v) left.insert(v);
    for (const std::size_t v : min_fill_order(variables, scopes)) {
      ASSERT_EQ(left.erase(v), 1U);
      const std::size_t pairs = new_pairs(v);
      for (const std::size_t other : left) EXPECT_LE(pairs, new_pairs(other)) << "round " << round;
      const std::set<std::size_t> around = near[v];
      for (const std::size_t other : around) near[other].erase(v);
      connect(around);
    }
    EXPECT_TRUE(left.empty());
  }
}

TEST(Elimination, FindsTheLeastSum) {
  Random random(7);
  for (int round = 0; round < rounds(300); ++round) {
    std::vector<std::size_t> domains;
    for (std::size_t v = 0; v < 6; ++v) domains.push_back(1 + below(random, 3));
    std::vector<CostTable> tables;
    for (std::size_t t = 0; t < 7; ++t) {
      CostTable table;
      std::size_t entries = 1;
      for (std::size_t v = 0; v < domains.size(); ++v) {
        if (!random.chance(0.4)) continue;
        table.variables.push_back(v);
        entries *= domains[v];
      }
      for (std::size_t e = 0; e < entries; ++e) table.costs.push_back(static_cast<double>(below(random, 100)));
      tables.push_back(table);
    }
    const auto sum_at = [&](const std::vector<std::size_t>& values) {
      double sum = 0;
      for (const CostTable& table : tables) {
        std::size_t at = 0;
        for (const std::size_t v : table.variables) at = at * domains[v] + values[v];
        sum += table.costs[at];
      }
      return sum;
    };
    double least = INFINITY;
    std::vector<std::size_t> values(domains.size(), 0);
    const std::function<void(std::size_t)> try_from = [&](std::size_t v) {
      if (v == domains.size()) {
        least = std::min(least, sum_at(values));
        return;
      }
      for (values[v] = 0; values[v] < domains[v]; ++values[v]) try_from(v + 1);
    };
    try_from(0);
    std::vector<std::vector<std::size_t>> scopes;
    for (const CostTable& table : tables) scopes.push_back(table.variables);
    const std::vector<std::size_t> order = min_fill_order(domains.size(), scopes);
    const Assignment exact = least_assignment(domains, tables, order);
    EXPECT_TRUE(exact.is_least);
    EXPECT_EQ(exact.cost, least);
    EXPECT_EQ(sum_at(exact.values), least);
    const Assignment narrow = least_assignment(domains, tables, order, 4);
    EXPECT_EQ(sum_at(narrow.values), narrow.cost);
    EXPECT_GE(narrow.cost, least);
  }
}

// 7 samples can be halved, and then not be cut into five; but into five.
TEST(KCut, UsesAsManySitesAsDivideALabel) {
  for (const std::int64_t sites : {6, 10, 12, 14, 15, 18, 20, 30}) {
    for (std::int64_t extent = 1; extent <= 40; ++extent) {
      const EinGraph graph =
          einrel::graph_of("dims b=" + std::to_string(extent) + "\ninput X[b]\nY[b] = relu(X[b])\noutput Y\n");
      std::int64_t most = 1;
      for (std::int64_t number = 1; number <= std::min(extent, sites); ++number) {
        if (sites % number == 0) most = number;
      }
      for (const char* const planner : {"kcut", "model"}) {
        const Planned planned = planner_named(planner).plan(graph, {sites, {}, CostKind::bytes, {}});
        EXPECT_EQ(sites_used(std::get<Plan>(planned).vertices[1]), most) << planner << " " << extent << " on " << sites;
      }
    }
  }
}

TEST(KCut, UsesAllSites) {
  const EinGraph graph = training_step(3, 64, 256);
  for (const std::int64_t sites : {1, 2, 4, 6, 8, 16}) {
    const Planned planned = planner_named("kcut").plan(graph, {sites, {}, CostKind::bytes, {}});
    const Plan& plan = std::get<Plan>(planned);
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      const Vertex& vertex = graph.vertices[v];
      EXPECT_TRUE(is_input(vertex) || sites_used(plan.vertices[v]) == sites) << vertex.name;
    }
  }
}

}  // namespace
}  // namespace einrel::test
