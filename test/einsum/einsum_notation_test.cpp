#include "einsum/check/einsum_notation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "einsum/graph/print.h"

namespace einrel {
namespace {

using testing::HasSubstr;

EinsumRequest request(const std::string& subscripts, const std::vector<std::vector<std::int64_t>>& shapes) {
  EinsumRequest result{subscripts, {}, std::nullopt, std::nullopt};
  for (const auto& shape : shapes) result.operands.push_back({make_shape(shape), "f32", {DType::f32}, "file"});
  return result;
}

std::string formula_of(const EinsumRequest& einsum) {
  const EinGraph graph = einsum_graph(einsum);
  return formula(graph[graph.outputs.front()], graph);
}

std::string error_of(const EinsumRequest& einsum) {
  try {
    einsum_graph(einsum);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(EinsumNotation, ReadsExplicitAndImplicitOutput) {
  EXPECT_EQ(formula_of(request("ij,jk->ki", {{2, 3}, {3, 4}})), "result[k,i] = sum[j] x[i,j] * y[j,k]");
  EXPECT_EQ(formula_of(request("cb,ba", {{2, 3}, {3, 4}})), "result[a,c] = sum[b] x[c,b] * y[b,a]");
  EXPECT_EQ(formula_of(request("ii", {{3, 3}})), "result[] = sum[i] x[i,i]");
}

TEST(EinsumNotation, AlignsEllipsesAtTheRight) {
  EXPECT_EQ(formula_of(request("...ij,...jk->...ik", {{7, 6, 2, 3}, {6, 3, 4}})),
            "result[e1,e0,i,k] = sum[j] x[e1,e0,i,j] * y[e0,j,k]");
}

TEST(EinsumNotation, BroadcastsExtentOne) {
  EXPECT_EQ(formula_of(request("ij,ij->ij", {{3, 1}, {3, 4}})), "result[i,j] = x[i,0] * y[i,j]");
}

TEST(EinsumNotation, TakesAJoinAndAReduction) {
  EinsumRequest einsum = request("ij,jk->ik", {{2, 3}, {3, 4}});
  einsum.join = "abs(x - y)";
  einsum.reduce = "max";
  EXPECT_EQ(formula_of(einsum), "result[i,k] = max[j] abs(x[i,j] - y[j,k])");
}

TEST(EinsumNotation, CountsBoolsAsTheNumbersBesideThem) {
  EinsumRequest einsum = request("i,i,i->i", {{2}, {2}, {2}});
  einsum.operands[0].readable_as = {DType::boolean};
  einsum.operands[1].readable_as = {DType::boolean};
  einsum.operands[2].readable_as = {DType::i32};
  EXPECT_EQ(einsum_graph(einsum).vertices.back().dtype, DType::i32);
  einsum.operands[2].readable_as = {DType::boolean};
  EXPECT_EQ(einsum_graph(einsum).vertices.back().dtype, DType::boolean);
}

TEST(EinsumNotation, NamesMoreThanThreeOperandsByNumber) {
  EinsumRequest einsum = request("i,i,i,i->i", {{2}, {2}, {2}, {2}});
  einsum.join = "x1 + x2 * x3 - x4";
  EXPECT_EQ(formula_of(einsum), "result[i] = x1[i] + x2[i] * x3[i] - x4[i]");
}

TEST(EinsumNotation, PointsAtWhatIsWrong) {
  EXPECT_THAT(error_of(request("ij,jk->il", {{2, 3}, {3, 4}})), HasSubstr("output label 'l' is in no operand"));
  EXPECT_THAT(error_of(request("ij,jk->ii", {{2, 3}, {3, 4}})), HasSubstr("label 'i' stands twice in the output"));
  EXPECT_THAT(error_of(request("ij,jk", {{2, 3}, {5, 4}})),
              HasSubstr("label 'j' has extent 3 before, but 5 in operand 2"));
  EXPECT_THAT(error_of(request("ij", {{2, 3}, {3, 4}})), HasSubstr("name 1 operand, but 2 are given"));
  EXPECT_THAT(error_of(request("ij", {{2}})), HasSubstr("operand 1 has 1 dimension"));
  EXPECT_THAT(error_of(request("i!", {{2, 3}})), HasSubstr("'!' is not a subscript"));
  EXPECT_THAT(error_of(request("......", {{2, 3}})), HasSubstr("one '...' per operand"));
  EXPECT_THAT(error_of(request("ii", {{2, 3}})), HasSubstr("label 'i' has extents 2 and 3 in operand 1"));
  EXPECT_THAT(error_of(request("...i->i", {{2, 3}})), HasSubstr("the output needs '...'"));
  EXPECT_THAT(error_of(request("i->j->k", {{2}})), HasSubstr("'-' is not a subscript"));
}

TEST(EinsumNotation, PointsIntoTheJoin) {
  EinsumRequest einsum = request("i,i->i", {{2}, {2}});
  einsum.join = "x + 1";
  EXPECT_THAT(error_of(einsum), HasSubstr("the join does not use operand 2, 'y'"));
  einsum.join = "x + y + w";
  EXPECT_THAT(error_of(einsum), HasSubstr("unknown name 'w'"));
  einsum.join = "x + sum[i] y";
  EXPECT_THAT(error_of(einsum), HasSubstr("a join combines single values"));
}

}  // namespace
}  // namespace einrel
