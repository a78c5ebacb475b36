#include "einsum/graph/vertex_parameters.h"

#include <gtest/gtest.h>

#include <string>

#include "einsum/check/check.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel::test {
namespace {

/// What the last statement computes.
Vertex vertex_computing(const std::string& statement) {
  const SourceText source("parameters.ein",
                          "dims i=4\ninput X[i] : f32, T[i], U[i] : i64\nscalar p, q\n" + statement + "\n");
  return parse_and_check(source, {}).graph->vertices.back();
}

/// Whether one is the other but for parameters, and becomes it with these.
bool are_alike_but_for_parameters(const std::string& one, const std::string& other) {
  const Vertex a = vertex_computing("Z[i] = " + one);
  const Vertex b = vertex_computing("Z[i] = " + other);
  const bool becomes = parameters_of(a).size() == parameters_of(b).size() && with_parameters(a, parameters_of(b)) == b;
  EXPECT_EQ(becomes, without_parameters(a) == without_parameters(b)) << one << " and " << other;
  return becomes;
}

TEST(VertexParameters, AreScalarsSeedsAndStreams) {
  EXPECT_TRUE(are_alike_but_for_parameters("p * X[i]", "q * X[i]"));
  EXPECT_TRUE(are_alike_but_for_parameters("where(uniform(1) < p, X[i], 0)", "where(uniform(2) < q, X[i], 0)"));
  EXPECT_TRUE(are_alike_but_for_parameters("normal(1) + normal(1)", "normal(2) + normal(3)"));
  EXPECT_FALSE(are_alike_but_for_parameters("2 * X[i]", "3 * X[i]"));
  EXPECT_FALSE(are_alike_but_for_parameters("p * X[i]", "2 * X[i]"));
  EXPECT_FALSE(are_alike_but_for_parameters("uniform(1) * X[i]", "normal(1) * X[i]"));
  EXPECT_FALSE(are_alike_but_for_parameters("where(uniform(1) < p, X[i], 0)", "where(uniform(1) < p, X[i], 1)"));
}

TEST(VertexParameters, StreamsFollowTheNameOfTheTensor) {
  const Vertex one = vertex_computing("Z[i] = uniform(1)");
  Vertex other = vertex_computing("W[i] = uniform(1)");
  other.name = one.name;
  EXPECT_NE(one, other);
  EXPECT_EQ(without_parameters(one), without_parameters(other));
  EXPECT_EQ(with_parameters(other, parameters_of(one)), one);
}

TEST(VertexParameters, NamesInMessagesAreNone) {
  const auto checked = [](const std::string& index) {
    const SourceText source("parameters.ein",
                            "dims i=4\ninput X[i] : f32, T[i], U[i] : i64\nZ[i] = X[" + index + "[i]]\n");
    const CheckedProgram program = parse_and_check(source, {});
    for (const Vertex& vertex : program.graph->vertices) {
      const EinSum* const einsum = einsum_of(vertex);
      if (einsum != nullptr && may_throw(einsum->body)) return without_parameters(vertex).op;
    }
    ADD_FAILURE() << "no index is checked";
    return decltype(Vertex::op){};
  };
  EXPECT_EQ(checked("T"), checked("U"));
}

}  // namespace
}  // namespace einrel::test
