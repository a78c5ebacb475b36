#include "einsum/passes/common_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/wide_program.h"

namespace einrel::test {
namespace {

using testing::ElementsAre;

std::vector<std::string> relabelled(const std::string& text) {
  const EinGraph graph = with_common_labels(einrel::graph_of(text));
  verify(graph);
  std::vector<std::string> all;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) all.push_back(formula(vertex, graph));
  }
  return all;
}

TEST(CommonLabels, FollowADimensionThroughStatements) {
  EXPECT_THAT(relabelled("dims i=5 j=3 k=4 m=5\ninput X[i,j], W[j,k], V[k,m]\nT[i,k] = sum[j] X[i,j] * W[j,k]\n"
                         "R[p,q] = relu(T[p,q])\nY[r,s] = sum[t] R[r,t] * V[t,s]\nZ[i,m] = Y[i,m] + Y[i,m]\n"),
              ElementsAre("T[i,k] = sum[j] X[i,j] * W[j,k]", "R[i,k] = relu(T[i,k])", "Y[i,s] = sum[k] R[i,k] * V[k,s]",
                          "Z[i,s] = Y[i,s] + Y[i,s]"));
}

TEST(CommonLabels, StayDifferentWithinAStatement) {
  EXPECT_THAT(relabelled("dims i=3 j=4 a=3 b=3\ninput X[i,j]\nD[i] = sum[j] X[i,j]\n"
                         "G[a,b] = sum[j] X[a,j] * X[b,j]\nH[b,a] = G[a,b] * D[b]\n"),
              ElementsAre("D[i] = sum[j] X[i,j]", "G[i,b] = sum[j] X[i,j] * X[b,j]", "H[b,i] = G[i,b] * D[b]"));
}

TEST(CommonLabels, GoThroughViewsAndTheirGroups) {
  EXPECT_THAT(relabelled("dims b=2 h=3 d=4 p=2 q=3 r=4\ninput X[b,h,d]\nY[b,(h d)] = view X[b,h,d]\n"
                         "Z[p,q,r] = view Y[p,(q r)]\nS[p,r] = sum[q] Z[p,q,r]\n"),
              ElementsAre("Y[b,(h d)] = view X[b,h,d]", "Z[b,h,d] = view Y[b,(h d)]", "S[b,d] = sum[h] Z[b,h,d]"));
}

TEST(CommonLabels, AreNotThoseOfShiftedOrPaddedReads) {
  EXPECT_THAT(
      relabelled(
          "dims i=8 j=7 k=9\ninput X[i]\nA[j] = X[j+1]\nB[k] = pad(X[k], 0)\nC[i] = X[i] * 2\nD[k] = pad(X[k], 1)\n"),
      ElementsAre("A[j] = X[j+1]", "B[k] = pad(X[k], 0)", "C[i] = X[i] * 2", "D[k_2] = pad(X[k_2], 1)"));
}

/// Every label has its own name in a vertex, a name one extent.
void expect_consistent(const EinGraph& graph) {
  std::map<std::string, Extent> extents;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) continue;
    std::set<std::string> names;
    for (const Label& label : labels_of(vertex)) {
      EXPECT_TRUE(names.insert(label.name).second) << label.name << " twice in " << formula(vertex, graph);
      const auto known = extents.emplace(label.name, label.extent).first;
      EXPECT_EQ(known->second, label.extent) << label.name << " in " << formula(vertex, graph);
    }
  }
}

TEST(CommonLabels, KeepTheValuesOfRandomVertices) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const std::string text = wide_program(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const EinGraph graph = einrel::graph_of(text);
    const EinGraph common = with_common_labels(graph);
    verify(common);
    expect_consistent(common);
    const TensorBindings inputs = counted_inputs(graph);
    EXPECT_EQ(values_of(evaluate_reference(common, inputs, {}).front()),
              values_of(evaluate_reference(graph, inputs, {}).front()));
  }
}

}  // namespace
}  // namespace einrel::test
