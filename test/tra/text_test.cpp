#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "einsum/graph/print.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "tra/from_einsum.h"
#include "tra/infer.h"
#include "tra/mistakes.h"
#include "tra/named_kernels.h"
#include "tra/text/parse.h"
#include "tra/text/print.h"

namespace einrel::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ParsedTra read(const std::string& text) { return parse_tra(SourceText("test.tra", text)); }

/// The same operations over the same nodes, whatever the nodes are called and wherever they stand; kernels but for
/// their names and the order of operands.
void expect_same(const TraExpr& got, const TraExpr& want) {
  const auto bare = [](TraOp op) {
    const auto strip = [](Kernel& kernel) {
      kernel = in_reading_order(std::move(kernel));
      kernel.name.clear();
    };
    if (auto* aggregate = std::get_if<Aggregate>(&op)) strip(aggregate->kernel);
    if (auto* join = std::get_if<Join>(&op)) strip(join->kernel);
    if (auto* transform = std::get_if<Transform>(&op)) strip(transform->kernel);
    return op;
  };
  ASSERT_EQ(got.nodes.size(), want.nodes.size());
  for (std::size_t i = 0; i < got.nodes.size(); ++i) {
    EXPECT_TRUE(bare(got.nodes[i].op) == bare(want.nodes[i].op)) << "node " << i;
    EXPECT_EQ(got.nodes[i].inputs, want.nodes[i].inputs) << "node " << i;
  }
  ASSERT_EQ(got.outputs.size(), want.outputs.size());
  for (std::size_t i = 0; i < got.outputs.size(); ++i) {
    EXPECT_EQ(got.outputs[i].name, want.outputs[i].name);
    EXPECT_EQ(got.outputs[i].id, want.outputs[i].id);
  }
  EXPECT_EQ(got.scalars, want.scalars);
}

void expect_round_trip(const TraExpr& program) {
  const std::string text = to_text(program);
  SCOPED_TRACE(text);
  TraExpr again;
  ASSERT_NO_THROW(again = read(text).program);
  expect_same(again, program);
  EXPECT_EQ(to_text(again), text);
}

// --- what the form means ----------------------------------------------------------------------------

TEST(TraText, InputsSayHowTheyAreCutAndStored) {
  const ParsedTra parsed = read(R"(
    input A[4,5] cut <2,5>           # one key position per dimension
    input B[2,8] : f64 cut <1: 2>    # key position 0 cuts dimension 1
    input H[8,12] cut <2, 3 by 4>
    input X[100,6] : i32 cut <4,1> on <0>
    input Y[3] on all
    input S[] : bool
    input T[2,3,4] cut <2: 4, 0: 2>
    input U[2,2] cut <>
    output A, B, H, X, Y, S, T, U
  )");
  std::vector<StoredRelation> stored;
  for (const TraNode& node : parsed.program.nodes) stored.push_back(std::get<StoredRelation>(node.op));
  EXPECT_EQ(stored[0], (StoredRelation{"A", DType::f32, make_shape({4, 5}), {{0, 1}, {{2, 1}, {5, 1}}}}));
  EXPECT_EQ(stored[1], (StoredRelation{"B", DType::f64, make_shape({2, 8}), {{1}, {{2, 1}}}}));
  EXPECT_EQ(stored[2], (StoredRelation{"H", DType::f32, make_shape({8, 12}), {{0, 1}, {{2, 1}, {3, 4}}}}));
  EXPECT_EQ(stored[3].dtype, DType::i32);
  EXPECT_EQ(stored[4], (StoredRelation{"Y", DType::f32, make_shape({3}), {{0}, {{1, 1}}}}));
  EXPECT_EQ(stored[5], (StoredRelation{"S", DType::boolean, {}, {}}));
  EXPECT_EQ(stored[6].cut, (TensorCut{{2, 0}, {{4, 1}, {2, 1}}}));
  EXPECT_EQ(stored[7].cut, TensorCut{});
  EXPECT_EQ(parsed.layouts, (InputLayouts{{"X", KeyPositions{0}}, {"Y", Everywhere{}}}));
}

TEST(TraText, EveryOperationIsRead) {
  const TraExpr program = read(R"(
    input A[4,4] cut <2,2>
    a = aggregate(<0>, matAdd)(A)
    j = join(<1>, <0>, matMul)(A, A)
    r = rekey(<x,y> -> <y, x>)(A)
    f = filter(k0 >= 0)(A)
    t = transform(relu)(A)
    l = tile(1, 2)(A)
    c = concat(1, 0)(A)
    p = repartition(<2,2> -> <4,1>)(A)
    n = positions(10, <2 by 5>)
  )")
                              .program;
  const auto& op = [&](std::size_t i) -> const TraOp& { return program.nodes[i].op; };
  const auto kernel = [](const char* name, std::size_t count) {
    return named_kernel(name, std::vector<DType>(count, DType::f32), std::vector<std::size_t>(count, 2));
  };
  EXPECT_TRUE(op(1) == TraOp(Aggregate{{0}, kernel("matAdd", 2)}));
  EXPECT_TRUE(op(2) == TraOp(Join{{1}, {0}, kernel("matMul", 2)}));
  EXPECT_TRUE(op(3) == TraOp(ReKey{projection_map({1, 0})}));
  EXPECT_TRUE(op(4) == TraOp(Filter{key_call(KeyFunction::greater_equal, key_position(0), key_constant(0))}));
  EXPECT_TRUE(op(5) == TraOp(Transform{kernel("relu", 1)}));
  EXPECT_TRUE(op(6) == TraOp(Tile{1, 2}));
  EXPECT_TRUE(op(7) == TraOp(Concat{1, 0}));
  EXPECT_TRUE(op(8) == TraOp(Repartition{{{2, 1}, {2, 1}}, {{4, 1}, {1, 1}}}));
  EXPECT_TRUE(op(9) == TraOp(LabelPositions{Extent(10), {2, 5}}));
  EXPECT_EQ(program.outputs.size(), 9U) << "every name that nothing reads";
  EXPECT_EQ(program.outputs.front().name, "a");
}

TEST(TraText, CallsNestAndLinesGoOnInsideParentheses) {
  const TraExpr program = read(R"(
    input A[4,4] cut <2,2>
    C = aggregate(<0,2>,
                  matAdd)(
      join(<1>, <0>, matMul)(A, A)  # the products
    )
  )")
                              .program;
  ASSERT_EQ(program.nodes.size(), 3U);
  EXPECT_EQ(program.nodes[1].name, "");
  EXPECT_EQ(program.nodes[2].name, "C");
  EXPECT_THAT(program.nodes[2].inputs, ElementsAre(TraId{1}));
}

TEST(TraText, KeyExpressionsBindAsInArithmetic) {
  const auto value = [](const std::string& expression, const Key& key) {
    const std::string left = key.size() == 2 ? "<k0,k1>" : "<k0>";
    const std::string cut = key.size() == 2 ? "<100,100>" : "<100>";
    const std::string extents = key.size() == 2 ? "100,100" : "100";
    SourceText source("test.tra", fmt::format("input A[{}] cut {}\nB = filter({})(A)", extents, cut, expression));
    try {
      const TraExpr program = parse_tra(source).program;
      return evaluate(std::get<Filter>(program.nodes[1].op).predicate, key);
    } catch (const ProgramError& error) {
      ADD_FAILURE() << error.what();
      return std::int64_t{-1};
    }
  };
  EXPECT_EQ(value("k0 + 0*k1 + 1 or 1", {7, 1}), 1);
  EXPECT_EQ(value("(k0 + 2*k1) % 5 == 4 or 1 == 1 and 2 < 1 or k0 >= 0", {7, 1}), 1);
  EXPECT_EQ(value("max(1 + k0*2 - 10/3, 1)", {5}), 8);
  EXPECT_EQ(value("1 + min(k0, 3)", {5}), 4);
  EXPECT_EQ(value("-(k0) + 1 - -k0 + - -k0", {5}), 6);
  EXPECT_EQ(value("100 - k0 - (2 - 1)", {5}), 94);
}

TEST(TraText, KernelsAreMadeForTheTypesTheyAreUsedWith) {
  const TraExpr program = read(R"(
    kernel twice(X[i]) -> [i] = 2 * X[i]
    input A[4] : f64 cut <2>
    input B[4] : i32 cut <2>
    a = transform(twice)(A)
    b = transform(twice)(B)
    c = transform(twice . relu . twice)(A)
  )")
                              .program;
  const std::vector<RelationType> types = infer(program);
  EXPECT_EQ(types[2].dtype, DType::f64);
  EXPECT_EQ(types[3].dtype, DType::i32);
  EXPECT_EQ(std::get<Transform>(program.nodes[4].op).kernel.steps.size(), 3U);
}

TEST(TraText, ScalarsThatMeetIntegersSaySo) {
  const TraExpr program = read(R"(
    scalar s = 3
    scalar t
    kernel times(X[i]) -> [i] = s * X[i]
    input A[4] : i32 cut <2>
    a = transform(times)(A)
  )")
                              .program;
  EXPECT_EQ(program.scalars,
            (std::vector<ScalarDeclaration>{{"s", 3.0, DType::i32}, {"t", std::nullopt, std::nullopt}}));
}

TEST(TraText, OutputsMayHaveOtherNames) {
  const TraExpr program = read("input A[4] cut <2>\nB = transform(relu)(A)\noutput C = B, A").program;
  EXPECT_EQ(program.outputs[0].name, "C");
  EXPECT_EQ(program.outputs[0].id, TraId{1});
  EXPECT_EQ(program.outputs[1].id, TraId{0});
}

TEST(TraText, WordsOfStatementsCanNameRelations) {
  const TraExpr program =
      read("input kernel[4] cut <2>\ninput = transform(relu)(kernel)\noutput = transform(exp)(input)").program;
  EXPECT_EQ(program.outputs.size(), 1U);
  EXPECT_EQ(program.outputs[0].name, "output");
}

// --- there and back ---------------------------------------------------------------------------------

TEST(TraText, HandWrittenProgramsAreReadBackAsTheyWere) {
  const char* programs[] = {
      R"(
        scalar eta = 0.125
        kernel step2(A[i,j], G[i,j]) -> [i,j] = A[i,j] - eta * G[i,j]
        kernel conv(X[y+dy], W[dy]) -> [y] with y=6, dy=3 = sum[dy] X[y+dy] * W[dy]
        kernel split(A[b,(h d)]) -> [b,h,d] with d=4 = view
        kernel centre(A[i]) -> [i] = A[i] - mean[j] A[j]
        kernel mixed(A[i], N[i]) -> [i] = where(A[i] > 0 , N[i] * i, 2) + f64(1)
        kernel spread(A[i,j], P[k]) -> [i,k,j] = A[i,j]
        input A[4,4] cut <2,2>
        input X[8] cut <1>
        input W[3] cut <1>
        input H[6,8] cut <2,1>
        input V[4] : f64 cut <2>
        input N[4] : i64 cut <2>
        a = join(<0,1>, <0,1>, step2)(A, A)
        b = join(<0>, <0>, conv)(X, W)
        c = transform(split)(H)
        d = transform(centre)(V)
        e = join(<0>, <0>, mixed)(V, N)
        f = join(<>, <>, spread)(A, positions(3, <3>))
        g = transform(diag . transpose)(A)
        h = transform(id)(A)
      )",
      R"(
        input A[7,9] : f64 cut <3,2>
        t1 = rekey(<a,b> -> <(a < 5) * a, b, a + 2*b - min(a, b) + (a / 2) * (a % 2)>)(A)
        B = filter(k2 != 100 and not_there or k0 == k1)(t1)
      )",
      "input A[7] cut <0: 2>\ninput B[7,7] cut <1: 2>\nC = join(<0>, <0>, k)(A, B)\nkernel k(A[i], B[j,i]) -> [j] = "
      "logsumexp[i] (A[i] + B[j,i])",
  };
  expect_round_trip(read(programs[0]).program);
  EXPECT_THAT(mistakes(programs[1]), ElementsAre(HasSubstr("unknown name 'not_there'")));
  expect_round_trip(read(programs[2]).program);
}

TEST(TraText, KeyFunctionsAreReadBackAsTheyWere) {
  expect_round_trip(read(R"(
    input A[7,9] : f64 cut <3,2>
    B = rekey(<a,b> -> <a, b, (a < 5), (a <= b and b != 1 or a == 0), 3*(a + b)>)(A)
    C = rekey(<a,b,c,d,e> -> <a, b>)(B)
    D = filter((k0 < k1) == (k1 > k0) and 5 - (k0 - k1) > 2 and max(k0, min(k1, 3)) / 2 % 7 <= 10 - -2)(A)
    E = transform(relu)(C)
    output E, D
  )")
                        .program);
}

TEST(TraText, ProgramsWithoutNamesGetSome) {
  TraExpr program;
  const TraId a = program.add(StoredRelation{"t1", DType::f32, make_shape({4, 4}), cut_of_all({{2, 1}, {2, 1}})});
  const std::vector<DType> types(2, DType::f32);
  const TraId products = program.add(Join{{1}, {0}, named_kernel("matMul", types, {2, 2})}, {a, a});
  const TraId sums = program.add(Aggregate{{0, 2}, named_kernel("matAdd", types, {2, 2})}, {products});
  Kernel other = named_kernel("matMul", types, {2, 2});
  other.name = "matAdd";  // not what the registry calls so
  const TraId again = program.add(Join{{1}, {0}, other}, {a, a});
  other.name = "(odd) name!";
  program.output("C", sums);
  program.output("same", sums);
  program.output("D", program.add(Join{{0, 1, 2}, {0, 1, 2}, other}, {products, again}));
  const std::string text = to_text(program);
  EXPECT_EQ(text, R"(kernel matAdd_2(A[i,j], B[j,k]) -> [i,k] = sum[j] A[i,j] * B[j,k]
kernel odd_name(A[i,j], B[j,k]) -> [i,k] = sum[j] A[i,j] * B[j,k]
input t1[4,4] : f32 cut <2,2>
t2 = join(<1>, <0>, matMul)(t1, t1)
C = aggregate(<0,2>, matAdd)(t2)
t3 = join(<1>, <0>, matAdd_2)(t1, t1)
D = join(<0,1,2>, <0,1,2>, odd_name)(t2, t3)
output C, same = C, D
)");
  expect_round_trip(program);
}

// Label values, windows and padding, scalars, several operands of one argument, views, types, repartitions.
TEST(TraText, ProgramsMadeFromEinSumsAreReadBackAsTheyWere) {
  const std::vector<std::string> programs{
      "dims i=5, j=6, k=7\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]",
      "dims s=6, t=6, d=4\ninput Q[s,d], K[t,d], V[t,d]\n"
      "S[s,t] = softmax[t](where(t <= s, sum[d] Q[s,d] * K[t,d] / 2, -inf))\nO[s,d] = sum[t] S[s,t] * V[t,d]",
      "dims n=2, c=3, y=5, x=6, k=4, dy=3, dx=3, oy=5, ox=6\ninput I[n,c,y,x], W[k,c,dy,dx]\n"
      "O[n,k,oy,ox] = sum[c,dy,dx] pad(I[n,c,oy+dy-1,ox+dx-1], 0) * W[k,c,dy,dx]",
      "dims b=4, h=3, d=2, q=6\ninput X[b,q] : f64\nH[b,h,d] = view X[b,(h d)]\nM[b,(h d)] = view H[b,h,d]",
      "dims i=6, j=4\nscalar s = 3\nscalar r\ninput X[i,j] : bf16, N[i,j] : i32\n"
      "A[i] = argmax[j] X[i,j] * r\nB[i,j] = s * N[i,j] + i\nC[i,j] = X[i,j] ** 2 + N[i,j]\nD[] = mean[i,j] C[i,j]\n"
      "E[] = logsumexp[i,j] C[i,j] - r",
      "dims i=6, l=6\ninput X[i,l], Y[i]\nT[] = sum[i] X[i,i] * Y[i]\nU[i,m] = X[i,m] * X[m,i]\nV[o] = Y[o+1] - "
      "Y[o]\ndims o=5, m=6",
  };
  for (const std::string& text : programs) {
    EinGraph graph;
    ASSERT_NO_THROW(graph = einrel::graph_of(text));
    for (const std::int64_t sites : {1, 3, 4}) expect_round_trip(from_einsum(graph, default_cuts(graph, sites)));
  }
}

/// The vertex as the language's own checks make it again from its formula; nullopt for those that no text makes.
std::optional<Vertex> written_and_read(const RandomEinsum& random) {
  EinGraph graph = graph_of(random);
  std::string text = "scalar s\n";
  for (const Label& label : random.einsum().labels)
    text += fmt::format("dims {}={}\n", label.name, label.extent.value());
  for (const Vertex& vertex : graph.vertices) {
    if (!std::holds_alternative<Input>(vertex.op)) continue;
    std::vector<std::string> labels;
    for (std::size_t d = 0; d < vertex.bound.size(); ++d) {
      labels.push_back(fmt::format("{}_{}", vertex.name, d));
      text += fmt::format("dims {}={}\n", labels.back(), vertex.bound[d].value());
    }
    text += fmt::format("input {}[{}] : {}\n", vertex.name, fmt::join(labels, ","), name_of(vertex.dtype));
  }
  try {
    const EinGraph checked = einrel::graph_of(text + formula(graph.vertices.back(), graph));
    if (checked.vertices.size() == graph.vertices.size()) return checked.vertices.back();
  } catch (const ProgramError&) {
  }
  return std::nullopt;
}

// Windows, padding, label values, scalars, constants, reductions, all types.
TEST(TraText, KernelsOfRandomEinSumsAreReadBackAsTheyWere) {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const RandomEinsum random = random_einsum(seed);
    if (random.operands.empty() || random.operands.size() > 2) continue;
    const std::optional<Vertex> vertex = written_and_read(random);
    if (!vertex || vertex->inputs.size() > 2) continue;
    ++tried;
    SCOPED_TRACE(describe(random));
    TraExpr program;
    program.scalars.push_back({"s", std::nullopt, std::nullopt});
    std::vector<DType> dtypes;
    std::vector<std::size_t> reads;
    std::vector<TraId> inputs;
    for (const VertexId input : vertex->inputs) reads.push_back(input.index);
    for (std::size_t i = 0; i < random.operands.size(); ++i) {
      const Tensor& operand = random.operands[i];
      dtypes.push_back(operand.dtype());
      inputs.push_back(program.add(StoredRelation{fmt::format("X{}", i), operand.dtype(), operand.shape(), {}}));
    }
    const Kernel kernel = kernel_of("random", *vertex, dtypes, reads);
    const TraOp op = inputs.size() == 1 ? TraOp(Transform{kernel}) : TraOp(Join{{}, {}, kernel});
    program.output("Z", program.add(op, inputs));
    for (const ScalarStep& step : std::get<EinSum>(vertex->op).body.steps) {
      const bool is_integer_scalar = std::holds_alternative<ScalarValue>(step.op) && !is_float(step.type);
      if (is_integer_scalar && program.scalars[0].integer_type != DType::i32)
        program.scalars[0].integer_type = step.type;
    }
    expect_round_trip(program);
  }
  EXPECT_GT(tried, 100);
}

}  // namespace
}  // namespace einrel::test
