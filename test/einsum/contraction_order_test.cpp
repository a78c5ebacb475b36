#include "einsum/passes/contraction_order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <limits>
#include <random>
#include <set>

#include "einsum/graph/contraction_tree.h"
#include "einsum/graph/print.h"
#include "einsum/reference.h"
#include "support/program.h"
#include "support/random_integers.h"
#include "support/rounds.h"

namespace einrel {
namespace {

/// All labels and dimensions small; a random sum of a product of `factors` tensors with integer values.
std::string random_product(std::mt19937& random, std::size_t factors) {
  const std::string names = "abcdefg";
  std::string text = "dims";
  for (const char name : names) text += std::string(" ") + name + "=" + std::to_string(1 + random() % 3);
  std::string product;
  std::set<char> used;
  for (std::size_t f = 0; f < factors; ++f) {
    std::string labels;
    for (std::size_t d = random() % 4; d > 0; --d) {
      const char name = names[random() % names.size()];
      used.insert(name);
      labels += (labels.empty() ? "" : ",") + std::string(1, name);
    }
    text += "\ninput T" + std::to_string(f) + "[" + labels + "] : i64";
    product += (f > 0 ? " * " : "") + std::string("T") + std::to_string(f) + "[" + labels + "]";
  }
  std::string left;
  std::string reduced;
  for (const char name : used) {
    std::string& list = random() % 3 == 0 ? left : reduced;
    list += (list.empty() ? "" : ",") + std::string(1, name);
  }
  return text + "\nZ[" + left + "] = " + (reduced.empty() ? "" : "sum[" + reduced + "] ") + product + "\n";
}

TEST(ContractionOrder, KeepsTheValuesOfRandomProducts) {
  std::mt19937 random(1);
  std::size_t rewritten = 0;
  for (int round = 0; round < 400; ++round) {
    const std::string text = random_product(random, 1 + random() % 6);
    SCOPED_TRACE(text);
    const EinGraph graph = graph_of(text);
    std::vector<OrderedContraction> report;
    const EinGraph ordered = order_contractions(graph, report);
    verify(ordered);
    rewritten += report.size();
    const TensorBindings inputs = test::random_integers(graph, random);
    const Tensor expected = evaluate_reference(graph, inputs, {}).front();
    const Tensor found = evaluate_reference(ordered, inputs, {}).front();
    ASSERT_EQ(found.shape(), expected.shape());
    ASSERT_EQ(values_of(found), values_of(expected));
  }
  EXPECT_GT(rewritten, 200U);
}

TEST(ContractionOrder, MultipliesAMatrixChainFromTheCheapEnd) {
  const EinGraph graph = graph_of(
      "dims i=100 j=100 k=100\ninput A[i,j], B[j,k], x[k]\nscalar eta = 2\nZ[i] = sum[j,k] A[i,j] * B[j,k] * x[k] * "
      "eta\n");
  std::vector<OrderedContraction> report;
  const EinGraph ordered = order_contractions(graph, report);
  ASSERT_EQ(report.size(), 1U);
  EXPECT_TRUE(report[0].optimal);
  EXPECT_EQ(report[0].flops_as_written, 4e6);         // three products and one sum for each i, j, k
  EXPECT_EQ(report[0].flops_ordered, 2 * 2e4 + 100);  // two matrix-vector products, then eta
}

TEST(ContractionOrder, LaysIntermediatesOutAsTheirOperandsLie) {
  const auto first_step = [](const std::string& inputs, const std::string& product) {
    const EinGraph graph = graph_of("dims a=8 b=9 c=10 d=11 n=2 s=3\ninput " + inputs + "\n" + product + "\n");
    std::vector<OrderedContraction> report;
    const EinGraph ordered = order_contractions(graph, report);
    for (const Vertex& vertex : ordered.vertices) {
      if (vertex.name == "Z_1") return formula(vertex, ordered);
    }
    return std::string("not replaced");
  };
  // d is written first in the result, but lies innermost in C.
  EXPECT_EQ(first_step("A[a,b], B[a,s,c], C[b,s,d]", "Z[d,c] = sum[a,b,s] A[a,b] * B[a,s,c] * C[b,s,d]"),
            "Z_1[a,s,d] = sum[b] A[a,b] * C[b,s,d]");
  // n is in both; b is contiguous in B, but summed over, so that A comes last.
  EXPECT_EQ(first_step("A[n,b,a], B[n,c,b], C[n,c,d]", "Z[d,a] = sum[n,b,c] A[n,b,a] * B[n,c,b] * C[n,c,d]"),
            "Z_1[n,c,a] = sum[b] A[n,b,a] * B[n,c,b]");
}

TEST(ContractionOrder, SumsOverPrivateLabelsFirst) {
  const EinGraph graph = graph_of("dims i=100 j=100\ninput A[i], B[j]\nZ[] = sum[i,j] A[i] * B[j]\n");
  std::vector<OrderedContraction> report;
  order_contractions(graph, report);
  ASSERT_EQ(report.size(), 1U);
  EXPECT_LE(report[0].flops_ordered, 301);
}

TEST(ContractionOrder, LeavesOtherReductionsAlone) {
  const EinGraph graph = graph_of(
      "dims i=3 j=4\ninput A[i], B[j], C[i,j]\nZ[] = max[i,j] A[i] * B[j] * C[i,j]\nW[] = sum[i,j] (A[i] + B[j] + "
      "C[i,j])\n");
  std::vector<OrderedContraction> report;
  EXPECT_EQ(order_contractions(graph, report), graph);
  EXPECT_TRUE(report.empty());
}

/// The cheapest flops over every sequence of pairwise products, by recursion over sets of nodes. Written apart from the
/// program's search: each node carries its labels; private labels of a factor may be summed first.
double brute_force(const Contraction& contraction) {
  const std::size_t labels = contraction.extents.size();
  const auto size = [&](const LabelSet& set) {
    double product = 1;
    for (std::size_t l = 0; l < labels; ++l) product *= set[l] ? contraction.extents[l] : 1;
    return product;
  };
  std::function<double(std::vector<LabelSet>)> best = [&](std::vector<LabelSet> nodes) {
    if (nodes.size() == 1) return 0.0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t a = 0; a < nodes.size(); ++a) {
      for (std::size_t b = a + 1; b < nodes.size(); ++b) {
        LabelSet kept = contraction.output;
        for (std::size_t other = 0; other < nodes.size(); ++other) {
          for (std::size_t l = 0; l < labels; ++l) kept[l] = kept[l] || (other != a && other != b && nodes[other][l]);
        }
        for (int reduce = 0; reduce < 4; ++reduce) {
          LabelSet left = nodes[a];
          LabelSet right = nodes[b];
          double flops = 0;
          const LabelSet whole_left = left;
          if ((reduce & 1) != 0) {
            flops += size(left);
            for (std::size_t l = 0; l < labels; ++l) left[l] = left[l] && (kept[l] || right[l]);
          }
          if ((reduce & 2) != 0) {
            flops += size(right);
            for (std::size_t l = 0; l < labels; ++l) right[l] = right[l] && (kept[l] || whole_left[l]);
          }
          LabelSet loop(labels);
          LabelSet result(labels);
          for (std::size_t l = 0; l < labels; ++l) {
            loop[l] = left[l] || right[l];
            result[l] = loop[l] && kept[l];
          }
          flops += size(loop) * (loop == result ? 1 : 2);
          std::vector<LabelSet> rest;
          for (std::size_t other = 0; other < nodes.size(); ++other) {
            if (other != a && other != b) rest.push_back(nodes[other]);
          }
          rest.push_back(result);
          least = std::min(least, flops + best(rest));
        }
      }
    }
    return least;
  };
  return best(contraction.factors);
}

Contraction random_contraction(std::mt19937& random, std::size_t factors, std::size_t labels) {
  Contraction contraction;
  for (std::size_t l = 0; l < labels; ++l) {
    contraction.extents.push_back(static_cast<double>(1 + random() % 9));
    contraction.output.push_back(random() % 4 == 0);
  }
  for (std::size_t f = 0; f < factors; ++f) {
    LabelSet set;
    for (std::size_t l = 0; l < labels; ++l) set.push_back(random() % 3 == 0);
    contraction.factors.push_back(set);
  }
  return contraction;
}

/// All factors multiplied and summed for every binding of all labels.
double flops_of_one_loop(const Contraction& contraction) {
  double bindings = 1;
  for (std::size_t l = 0; l < contraction.extents.size(); ++l) {
    bool used = contraction.output[l];
    for (const LabelSet& factor : contraction.factors) used = used || factor[l];
    bindings *= used ? contraction.extents[l] : 1;
  }
  return bindings * static_cast<double>(contraction.factors.size());
}

TEST(ContractionTree, IsAsCheapAsBruteForce) {
  std::mt19937 random(2);
  for (int round = 0; round < test::rounds(200); ++round) {
    const Contraction contraction = random_contraction(random, 2 + random() % 4, 5);
    const ContractionTree tree = find_contraction_tree(contraction);
    EXPECT_TRUE(tree.optimal);
    EXPECT_DOUBLE_EQ(tree.flops, brute_force(contraction));
  }
}

TEST(ContractionTree, IsGreedyBeyondTwelveFactorsAndNeverFarFromALoop) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    const Contraction contraction = random_contraction(random, 13 + random() % 30, 12);
    const ContractionTree tree = find_contraction_tree(contraction);
    EXPECT_FALSE(tree.optimal);
    EXPECT_EQ(tree.steps.size(), contraction.factors.size() - 1);
    EXPECT_LE(tree.flops, 2 * flops_of_one_loop(contraction));
  }
}

/// Seconds of the processor for `work`.
double cpu_seconds(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

constexpr double generous_seconds = 15;  // for what takes a fraction of one

TEST(ContractionOrder, OrdersThousandsOfFactorsInARing) {
  constexpr std::size_t count = 3000;
  std::string dims = "dims";
  std::string inputs;
  std::string labels;
  std::string product;
  for (std::size_t f = 0; f < count; ++f) {
    dims += fmt::format(" n{}=2", f);
    const std::string factor = fmt::format("A{}[n{},n{}]", f, f, (f + 1) % count);
    inputs += (f == 0 ? "" : ", ") + factor;
    labels += fmt::format("{}n{}", f == 0 ? "" : ",", f);
    product += (f == 0 ? "" : " * ") + factor;
  }
  const EinGraph graph = graph_of(dims + "\ninput " + inputs + "\nZ[] = sum[" + labels + "] " + product + "\n");
  std::vector<OrderedContraction> report;
  EXPECT_LT(cpu_seconds([&] { verify(order_contractions(graph, report)); }), generous_seconds);
  ASSERT_EQ(report.size(), 1U);
  // All but the last are products of matrices: 8 multiplications and as many additions.
  EXPECT_EQ(report[0].flops_ordered, (count - 2) * 16 + 8);
}

TEST(ContractionTree, OfThousandsOfFactorsIsFoundSoon) {
  constexpr std::size_t count = 3000;
  const auto contraction_of = [&](std::size_t labels, const std::function<std::set<std::size_t>(std::size_t)>& of) {
    Contraction contraction{std::vector<double>(labels, 2), LabelSet(labels, false), {}};
    for (std::size_t f = 0; f < count; ++f) {
      LabelSet factor(labels, false);
      for (const std::size_t label : of(f)) factor[label] = true;
      contraction.factors.push_back(std::move(factor));
    }
    return contraction;
  };
  const std::vector<Contraction> contractions{
      contraction_of(count + 1,
                     [](std::size_t f) {
                       return std::set{f, f + 1};
                     }),  // a chain
      contraction_of(count + 1,
                     [](std::size_t f) {
                       return std::set{f, count};
                     }),                                                         // a star
      contraction_of(count, [](std::size_t f) { return std::set{f}; }),          // side by side
      contraction_of(1, [](std::size_t) { return std::set<std::size_t>{0}; })};  // all of one label
  for (const Contraction& contraction : contractions) {
    ContractionTree tree;
    EXPECT_LT(cpu_seconds([&] { tree = find_contraction_tree(contraction); }), generous_seconds);
    EXPECT_EQ(tree.steps.size(), count - 1);
    EXPECT_LE(tree.flops, 16.0 * count);
  }
}

}  // namespace
}  // namespace einrel
