#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "einsum/graph/vertex_facts.h"
#include "plan/annotations.h"
#include "plan/formats/format_plan.h"
#include "support/program.h"
#include "support/random_matrices.h"
#include "support/rounds.h"

namespace einrel::test {
namespace {

/// So that each of the components decides now and then.
FormatWeights random_weights(RandomMatrices& random) {
  const auto scale = [&](double least, double orders) { return least * std::pow(10, orders * random.real()); };
  return {.workers = static_cast<double>(1 + random.below(4)),
          .most_alone = random.below(2) == 0 ? 0 : most_operations_alone,
          .operation = scale(1e-10, 3),
          .network_byte = scale(1e-10, 3),
          .tuple = scale(1e-8, 4),
          .read_byte = scale(1e-10, 4),
          .intermediate_byte = scale(1e-10, 4),
          .statement = scale(1e-9, 3),
          .piece = scale(1e-8, 4),
          .stored_byte = scale(1e-10, 4)};
}

/// Each tensor's next best format, and what it costs more, are those of the plans with that one change.
void expect_next_best(const Annotations& all, const FormatPlan& plan, const std::string& what) {
  const double rounding = 1e-9 * plan.seconds;
  for (std::size_t v = 0; v < plan.vertices.size(); ++v) {
    double least = std::numeric_limits<double>::infinity();
    double of_the_said = least;
    for (const Annotations::Change& change : all.changes(plan.cuts, v)) {
      if (change.format == plan.vertices[v].format) continue;
      least = std::min(least, change.more_seconds);
      if (plan.others[v] && change.format == plan.others[v]->format)
        of_the_said = std::min(of_the_said, change.more_seconds);
    }
    ASSERT_EQ(plan.others[v].has_value(), std::isfinite(least)) << v << " of " << what;
    if (!plan.others[v]) continue;
    EXPECT_NEAR(plan.others[v]->more_seconds, least, rounding) << v << " of " << what;
    EXPECT_NEAR(of_the_said, least, rounding) << v << " of " << what;
  }
}

/// No plan costs less in which one vertex alone is computed, or one input lies, in another way.
void expect_no_change_to_help(const Annotations& all, const FormatPlan& plan, const std::string& what) {
  for (std::size_t v = 0; v < plan.vertices.size(); ++v) {
    for (const Annotations::Change& change : all.changes(plan.cuts, v))
      ASSERT_GE(change.more_seconds, -1e-9 * plan.seconds) << v << " of " << what;
  }
}

FormatPlan expect_least(const EinGraph& graph, const Annotations& all, const FormatWeights& weights, double least,
                        const std::string& what) {
  const FormatPlan plan = plan_formats(graph, {{}, weights});
  EXPECT_TRUE(plan.is_least) << what;
  EXPECT_NEAR(plan.seconds, least, 1e-9 * least) << what;
  EXPECT_DOUBLE_EQ(costs_of_formats(graph, plan.cuts, weights).seconds, plan.seconds) << what;
  expect_next_best(all, plan, what);
  return plan;
}

/// What random graphs were compared with.
struct Compared {
  int graphs = 0;
  int one_by_one = 0;  ///< with all annotations; all graphs with what branch and bound finds
  std::set<std::string> chosen;
};

/// Both ways to find the least agree, where there are few enough annotations for the first.
double least_of(Annotations& all, double most, Compared& compared) {
  const double least = all.least_by_bounds();
  ++compared.graphs;
  if (all.count() > most) return least;
  ++compared.one_by_one;
  EXPECT_NEAR(all.least(), least, 1e-9 * least);
  return least;
}

void add_chosen(const EinGraph& graph, const FormatPlan& plan, Compared& compared) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v)
    compared.chosen.insert(format_text(plan.vertices[v].format, graph.vertices[v].bound));
}

TEST(Formats, CostNoMoreThanAnyAnnotationOfRandomGraphs) {
  Compared compared;
  int large = 0;  // five vertices that share what they read, and six formats
  int not_proven = 0;
  for (std::uint64_t seed = 0; large < rounds(200); ++seed) {
    RandomMatrices random(seed);
    const EinGraph graph = random.graph(5);
    const FormatWeights weights = random_weights(random);
    const std::string what = fmt::format("seed {}\n{}", seed, random.text());
    SCOPED_TRACE(what);
    Annotations all(graph, weights);
    const double least = least_of(all, 2e6, compared);
    const auto computed = std::count_if(graph.vertices.begin(), graph.vertices.end(),
                                        [](const Vertex& vertex) { return !is_input(vertex); });
    large += computed == 5 && all.has_a_tensor_that_two_read() && all.most_formats() >= 6 ? 1 : 0;
    add_chosen(graph, expect_least(graph, all, weights, least, what), compared);
    const FormatPlan narrow = plan_formats(graph, {{}, weights, 2});  // hardly any table may be made
    EXPECT_GE(narrow.seconds, least * (1 - 1e-9));
    expect_no_change_to_help(all, narrow, what);
    expect_next_best(all, narrow, what);
    EXPECT_FALSE(narrow.is_least && narrow.seconds > least * (1 + 1e-9)) << seed;
    not_proven += narrow.is_least ? 0 : 1;
  }
  RecordProperty("graphs", compared.graphs);
  RecordProperty("one_by_one", compared.one_by_one);
  EXPECT_GE(compared.graphs, rounds(500));
  EXPECT_EQ(compared.one_by_one, compared.graphs);
  EXPECT_GE(not_proven, compared.graphs / 4);
  for (const char* const format : {"single", "row", "column", "row-strip-10", "column-strip-10", "tile-10-10"})
    EXPECT_EQ(compared.chosen.count(format), 1U) << format;
}

/// So that chunks have 100 and 1000 rows or columns, too; with tensors of three dimensions. Nothing is computed.
TEST(Formats, OfLargeMatricesAndOfStacksOfThemCostNoMoreThanAnyAnnotation) {
  Compared compared;
  int stacks = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomMatrices random(seed, {12, 150, 2000}, {1, 5});
    const EinGraph graph = random.graph(4);
    const FormatWeights weights = random_weights(random);
    const std::string what = fmt::format("seed {}\n{}", seed, random.text());
    SCOPED_TRACE(what);
    Annotations all(graph, weights);
    const double least = least_of(all, 3e5, compared);
    add_chosen(graph, expect_least(graph, all, weights, least, what), compared);
    stacks += std::any_of(graph.vertices.begin(), graph.vertices.end(),
                          [](const Vertex& vertex) { return vertex.bound.size() == 3; })
                  ? 1
                  : 0;
  }
  RecordProperty("one_by_one", compared.one_by_one);
  RecordProperty("stacks", stacks);
  EXPECT_EQ(compared.graphs, 200);
  EXPECT_GE(compared.one_by_one, 100);
  EXPECT_GE(stacks, 150);
  for (const char* const format : {"row-strip-100", "column-strip-100", "tile-100-100", "row-strip-1000",
                                   "column-strip-1000", "tile-1000-1000", "chunks of 1 x 100 x all"})
    EXPECT_EQ(compared.chosen.count(format), 1U) << format;
}

TEST(Formats, OfTheGraphOfThePaperThatIsNoTreeCostNoMoreThanAnyAnnotation) {
  const EinGraph graph = einrel::graph_of(
      "dims a=12 b=12 c=12\ninput R[a,b], S[a,b], T[a,b], U[a,b], V[a,b] : f64\n"
      "T1[a,c] = sum[b] S[a,b] * T[b,c]\n"
      "T2[a,c] = sum[b] T1[a,b] * U[b,c]\n"
      "P[a,c] = sum[b] R[a,b] * T1[b,c]\n"
      "Q[a,c] = P[a,c] + T2[a,c]\n"
      "W[a,c] = sum[b] T2[a,b] * V[b,c]\n"
      "O[a,c] = Q[a,c] + W[a,c]\n");
  RandomMatrices random(7);
  for (int round = 0; round < 2; ++round) {
    const FormatWeights weights = random_weights(random);
    Annotations all(graph, weights);
    EXPECT_GT(all.count(), 1e6);
    expect_least(graph, all, weights, all.least(), fmt::format("round {}", round));
  }
}

TEST(Formats, OfAStateAreThoseThatCostLeastStepAfterStep) {
  const EinGraph graph = einrel::graph_of(
      "dims i=30 j=12 k=5\ninput X[i,j], Y[i,k], W0[j,k] : f64\nstate W[j,k] = W0[j,k]\n"
      "P[i,k] = sum[j] X[i,j] * W[j,k]\n"
      "G[j,k] = sum[i] X[i,j] * (P[i,k] - Y[i,k])\n"
      "next W[j,k] = W[j,k] - 0.1 * G[j,k]\n");
  ASSERT_EQ(graph.steps.states.size(), 1U);
  RandomMatrices random(11);
  for (int round = 0; round < 10; ++round) {
    const FormatWeights weights = random_weights(random);
    Annotations all(graph, weights);
    expect_least(graph, all, weights, all.least(), fmt::format("round {}", round));
  }
}

std::size_t vertex_named(const EinGraph& graph, const std::string& name) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (graph.vertices[v].name == name) return v;
  }
  throw std::out_of_range(name);
}

/// The motivating example, chapter 3: 100 x 10^4, 10^4 x 100, 100 x 10^6.
EinGraph motivating_example() {
  return einrel::graph_of(
      "dims i=100 j=10000 k=100 l=1000000\ninput A[i,j], B[j,k], C[k,l] : f64\n"
      "AB[i,k] = sum[j] A[i,j] * B[j,k]\n"
      "ABC[i,l] = sum[k] AB[i,k] * C[k,l]\n");
}

FormatRequest stored_as_in_the_paper(const FormatWeights& weights) {
  return {{{"A", format_named("row-strip-10")},
           {"B", format_named("column-strip-10")},
           {"C", format_named("column-strip-10000")}},
          weights};
}

/// What the first implementation of chapter 3 costs: tiles of 10 x 10 for both products.
FormatPlan in_small_tiles(const EinGraph& graph, const FormatPlan& plan, const FormatWeights& weights) {
  GraphCuts naive = plan.cuts;
  for (const auto& [name, labels, parts] :
       {std::tuple("AB", std::vector<std::string>{"i", "k", "j"}, std::vector<std::int64_t>{10, 10, 1}),
        std::tuple("ABC", std::vector<std::string>{"i", "l", "k"}, std::vector<std::int64_t>{10, 100'000, 10})}) {
    const std::size_t v = vertex_named(graph, name);
    EXPECT_EQ(label_names(graph.vertices[v]), labels);
    naive.parts[v] = parts;
  }
  return costs_of_formats(graph, naive, weights);
}

TEST(Formats, OfTheMotivatingExampleAreSingleAndABroadcastJoin) {
  const EinGraph graph = motivating_example();
  // Weights of a database where bytes that functions take are dear, as in the paper.
  const FormatWeights weights{
      .operation = 7e-11, .tuple = 2.1e-5, .read_byte = 8e-10, .intermediate_byte = 8e-10, .piece = 5.6e-6};
  const FormatPlan plan = plan_formats(graph, stored_as_in_the_paper(weights));
  const std::size_t ab = vertex_named(graph, "AB");
  const std::size_t abc = vertex_named(graph, "ABC");
  EXPECT_TRUE(plan.is_least);
  EXPECT_EQ(format_text(plan.vertices[ab].format, graph.vertices[ab].bound), "single");
  EXPECT_EQ(format_text(plan.vertices[abc].format, graph.vertices[abc].bound), "column-strip-10000");
  EXPECT_TRUE(plan.vertices[abc].transformations.empty());  // AB is joined with each strip of C as it lies
  EXPECT_EQ(plan.vertices[abc].cost.tuples, 100);
  const FormatPlan tiles = in_small_tiles(graph, plan, weights);
  const double transforming = seconds_of(tiles.vertices[abc].transformations.back().cost, weights);
  EXPECT_GE(tiles.seconds - transforming, 5 * plan.seconds);  // even if C came in tiles already
  EXPECT_EQ(tiles.vertices[abc].cost.tuples, 2e7);
}

/// With the weights that hold where nobody calibrated. AB may be computed in another format, and then becomes single.
TEST(Formats, OfTheMotivatingExampleAreABroadcastJoinInBothDatabases) {
  const EinGraph graph = motivating_example();
  const std::size_t ab = vertex_named(graph, "AB");
  const std::size_t c = vertex_named(graph, "C");
  const std::size_t abc = vertex_named(graph, "ABC");
  for (const FormatWeights& weights : {FormatWeights{}, postgres_weights}) {
    SCOPED_TRACE(fmt::format("{} workers", weights.workers));
    const FormatPlan plan = plan_formats(graph, stored_as_in_the_paper(weights));
    EXPECT_TRUE(plan.is_least);
    const Implementation product = implementation_of(graph, abc, plan.cuts.parts[abc]);
    ASSERT_EQ(product.reads.size(), 2U);
    EXPECT_EQ(product.reads[0].tensor, ab);
    EXPECT_EQ(format_text(product.reads[0].format, graph.vertices[ab].bound), "single");
    EXPECT_EQ(product.reads[1].format, plan.vertices[c].format);  // as it lies
    EXPECT_EQ(std::accumulate(product.parts.begin(), product.parts.end(), std::int64_t{1}, std::multiplies<>()), 100);
    EXPECT_EQ(plan.vertices[abc].cost.tuples * weights.workers, 100);  // each strip of C, once
    for (const Transformation& change : plan.vertices[abc].transformations) {
      EXPECT_EQ(change.tensor, ab);
      EXPECT_EQ(change.from, plan.vertices[ab].format);
      EXPECT_EQ(change.to, product.reads[0].format);
    }
    EXPECT_EQ(plan.vertices[abc].transformations.empty(), plan.vertices[ab].format == product.reads[0].format);
    EXPECT_GE(in_small_tiles(graph, plan, weights).seconds, 5 * plan.seconds);
  }
}

TEST(Formats, OfChapter10CostWhatItsFormulasSay) {
  // matrixA d1 x d2 in tiles k1 x k2, matrixB d2 x d3 in tiles k2 x k3, on n workers.
  constexpr double d1 = 400, d2 = 600, d3 = 1000, k1 = 100, k2 = 200, k3 = 500, n = 4;
  const EinGraph graph =
      einrel::graph_of("dims i=400 j=600 k=1000\ninput A[i,j], B[j,k] : f64\nZ[i,k] = sum[j] A[i,j] * B[j,k]\n");
  const Implementation way = implementation_of(graph, 2, {4, 2, 3});  // i, k, j
  const FormatCost cost = cost_of(graph, graph.vertices[2], way, {.workers = n});
  const double joined = d1 * d2 * d3 / (k1 * k2 * k3);
  constexpr double bytes = 8;
  EXPECT_DOUBLE_EQ(cost.compute, 2 * d1 * d2 * d3 / n + d1 * d2 * d3 / k2 / n);
  // Operands all can read where they lie; the paper's workers send them, and partial results, to each other.
  EXPECT_DOUBLE_EQ(cost.network, bytes * d1 * d3);
  EXPECT_DOUBLE_EQ(cost.tuples, 2 * joined / n);  // the aggregate has as many, and both have a function
  // What functions take and give: the paper counts only what goes from the join to the aggregate.
  EXPECT_DOUBLE_EQ(cost.read, bytes * joined / n * (k1 * k2 + k2 * k3));
  EXPECT_DOUBLE_EQ(cost.intermediate,
                   bytes * (joined / n * (k1 * k2 + k2 * k3) + 2 * joined / n * k1 * k3 + 2 * k1 * k3));
  EXPECT_DOUBLE_EQ(cost.stored, bytes * d1 * d3);
  EXPECT_EQ(cost.statements, shared_statements);
  EXPECT_EQ(cost.pieces, 0);
}

TEST(Formats, AreSharedByWorkersWhereThatIsWorthIt) {
  const auto cost = [](const char* dims, const std::vector<std::int64_t>& parts) {
    const EinGraph graph =
        einrel::graph_of(fmt::format("dims {}\ninput A[i,j], B[j,k] : f64\nZ[i,k] = sum[j] A[i,j] * B[j,k]\n", dims));
    return cost_of(graph, graph.vertices[2], implementation_of(graph, 2, parts), {.workers = 2});
  };
  EXPECT_EQ(cost("i=600 j=600 k=600", {5, 1, 1}).compute, 3.0 / 5 * 2 * 600 * 600 * 600);  // one of them has three
  EXPECT_EQ(cost("i=600 j=600 k=600", {1, 1, 1}).network, 0);  // a single chunk is one worker's
  EXPECT_EQ(cost("i=600 j=600 k=600", {1, 1, 5}).compute, 2.0 * 600 * 600 * 600 + 5 * 600 * 600);
  EXPECT_EQ(cost("i=50 j=50 k=50", {5, 1, 1}).compute, 2.0 * 50 * 50 * 50);  // too little
}

TEST(Formats, ThatAreGivenAreKeptAndOthersChosen) {
  const EinGraph graph = einrel::graph_of(
      "dims i=300 j=200 k=250\ninput X[i,j], Y[j,k] : f64\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\nS[i] = sum[k] Z[i,k]\n");
  const FormatPlan plan =
      plan_formats(graph, {{{"X", format_named("tile-37-1")}, {"Z", format_named("row-strip-70")}}});
  EXPECT_EQ(plan.vertices[0].format, (TensorFormat{{9, 1}, {200, 1}}));
  EXPECT_EQ(plan.vertices[vertex_named(graph, "Z")].format, (TensorFormat{{5, 1}, {1, 1}}));
  EXPECT_THROW(plan_formats(graph, {{{"Q", format_named("row")}}}), UserError);
}

TEST(Formats, OfAResultAreAnyTilesThatAreGiven) {
  const auto expect = [](const std::string& text, const char* tensor, const char* format) {
    const EinGraph graph = einrel::graph_of("dims k=7 l=3\ninput A[k,l], B[l,k] : f64\n" + text);
    const FormatPlan plan = plan_formats(graph, {{{tensor, format_named(format)}}});
    const std::size_t v = vertex_named(graph, tensor);
    EXPECT_EQ(plan.vertices[v].format, cuts_in(format_named(format), graph.vertices[v].bound)) << text << format;
  };
  for (const char* const format : {"tile-1-2", "tile-2-1", "tile-1-1", "tile-2-2", "row", "column", "tile-1-100"}) {
    expect("T[k,l] = A[k,l] * 2\n", "T", format);
    expect("T[k,l] = A[k,l] + B[l,k]\n", "T", format);
    expect("T[l,k] = A[k,l]\n", "T", format);
    expect("T[k,l] = A[k,l]\n", "T", format);
    expect("T[k,l] = A[k,l] * 2\nU[k,l] = sq(T[k,l])\nV[k] = sum[l] U[k,l]\n", "T", format);
    expect("T[k,l] = A[k,l] * 2\nU[k,l] = sq(T[k,l])\nV[k] = sum[l] U[k,l]\n", "U", format);
    expect("U[k,l] = A[k,l] * 2\n", "A", format);
  }
}

TEST(Formats, RefuseWhatNoneCanHold) {
  const EinGraph huge = einrel::graph_of("dims i=30000000 j=30000000\ninput X[i], Y[j] : f64\nZ[i,j] = X[i] * Y[j]\n");
  try {
    plan_formats(huge, {});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("Z f64"), std::string::npos) << error.what();
  }
}

TEST(Formats, AreNineteenAndHoldWhatAValueAndARelationCan) {
  EXPECT_EQ(all_formats().size(), 19U);
  const Shape matrix{Extent(100'000), Extent(100'000)};
  const auto holds = [&](const char* name) {
    return can_hold(cuts_in(format_named(name), matrix), matrix, DType::f32);
  };
  EXPECT_FALSE(holds("single"));  // the example of chapter 4: 40 GB
  EXPECT_TRUE(holds("row"));
  EXPECT_TRUE(holds("row-strip-1000"));
  EXPECT_TRUE(holds("tile-1000-1000"));
  EXPECT_FALSE(holds("tile-10-10"));
  EXPECT_FALSE(holds("element"));
  for (const Format& format : all_formats()) {
    const Shape small{Extent(2500), Extent(3500)};
    EXPECT_EQ(format_text(cuts_in(format, small), small), format.name);
    EXPECT_EQ(format_named(format.name).rows, format.rows);
    EXPECT_EQ(format_named(format.name).columns, format.columns);
  }
}

}  // namespace
}  // namespace einrel::test
