// Plans that are placed by strides and copies: what they compute, where their tuples lie, and the bytes that move.

#include <gmock/gmock.h>

#include <array>
#include <map>

#include "einsum/reference.h"
#include "ia/check_run.h"
#include "ia/from_tra.h"
#include "ia/parse.h"
#include "ia/parse_error.h"
#include "ia/print.h"
#include "ia/random_plan.h"
#include "support/compare.h"
#include "support/program.h"
#include "support/rounds.h"

namespace einrel::test {
namespace {

using einrel::graph_of;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor random_integers(Random& random, DType dtype, const Shape& bound) {
  std::vector<double> values;
  for (std::int64_t i = element_count(bound); i > 0; --i) values.push_back(static_cast<double>(random.between(-3, 3)));
  return tensor_of(dtype, bound, values);
}

testing::AssertionResult equal(const Tensor& a, const Tensor& b) {
  return agree(a, b, std::vector<double>(static_cast<std::size_t>(b.count()), 0));
}

/// What a run of the plan gives for its one output, after all that inference says of it was found to be so.
Tensor result_of(const IaStore& store, const IaPlan& plan, const TensorBindings& inputs) {
  const std::string fault = fault_of(store, plan);
  if (!fault.empty()) {
    ADD_FAILURE() << fault;
    return {};
  }
  const IaRun run = interpret(store, plan, inputs, {});
  EXPECT_EQ(wrong_inference(store, plan, run), "") << to_text(store, plan);
  const RelationType& type = store[plan.front().id].type.relation;
  return assemble(run.outputs.begin()->second, type.dtype, type.rank);
}

// Repart

TEST(Repart, MovesOnlyWhatChunksHaveInCommon) {
  // 10 elements cut 4,3,3 on sites 0,1,2; then 3,3,2,2 on sites 0,1,2,3.
  IaProgram program = parse_ia(SourceText("p.ia", "input X[10] cut <3> on <0>\nZ = repart(<3> -> <4>)(X)"), 4);
  const Traffic traffic = bytes_of(program.store, program.plan);
  EXPECT_THAT(traffic.received, ElementsAre(0, 4, 4, 8));
  EXPECT_THAT(traffic.sent, ElementsAre(4, 4, 8, 0));
  EXPECT_EQ(traffic.total, 16);
  EXPECT_EQ(cost_of(program.store, program.plan).moved, 10);
  Random random(1);
  const Tensor x = random_integers(random, DType::f32, make_shape({10}));
  EXPECT_TRUE(equal(result_of(program.store, program.plan, {{"X", x}}), x));
}

TEST(Repart, GivesTheTensorWhateverTheCutsAndGrids) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    IaStore store(random.between(1, 9));
    Shape bound;
    for (std::int64_t d = random.between(0, 3); d > 0; --d) bound.emplace_back(random.between(0, 10));
    std::vector<DimensionCut> cuts = random_cuts(random, bound);
    const auto positions = all_positions(bound.size());
    const auto grid = [&] { return random_grid(random, parts_of(cuts), store.sites()); };
    const StoredRelation stored{"X", DType::i32, bound, cut_of_all(cuts)};
    IaId id = store.add(PlacedRelation{
        stored, random.chance(0.1) ? Placement(Everywhere{}) : Placement(Partitioned{positions, grid()})});
    double moved = 0;
    for (std::int64_t step = random.between(1, 3); step > 0; --step) {
      const std::vector<DimensionCut> from = cuts;
      cuts = random_cuts(random, bound);
      const Repart op{from, cuts, grid()};
      id = store.add(op, {id});
      if (store.sites() > 1) moved += static_cast<double>(element_count(bound) * copies_of(op.grid));
    }
    const Tensor x = random_integers(random, DType::i32, bound);
    const IaPlan plan{{"Z", id}};
    ASSERT_TRUE(equal(result_of(store, plan, {{"X", x}}), x)) << "seed " << seed;
    ASSERT_EQ(cost_of(store, plan).moved, moved);
    const std::string text = to_text(store, plan);
    const IaProgram again = parse_ia(SourceText("printed", text), store.sites());
    ASSERT_EQ(to_text(again.store, again.plan), text);
    ASSERT_EQ(bytes_of(again.store, again.plan).received, bytes_of(store, plan).received) << text;
  }
}

TEST(Repart, RefusesWhatIsNotThatTensor) {
  const std::string x = "input X[4,4] cut <2,2> on <0>\n";
  EXPECT_EQ(error_of(x + "Z = repart(<2,2> -> <1,4>)(X)"), "");
  EXPECT_THAT(error_of(x + "Z = repart(<2,1> -> <1,4>)(X)"), HasSubstr("not a tensor (4, 4) cut as the repartition"));
  EXPECT_THAT(error_of(x + "Z = repart(<2,2,1> -> <1,4>)(X)"), HasSubstr("one cut per dimension"));
  EXPECT_THAT(error_of(x + "Z = repart(<2,2> -> <1>, <1>, <1>)(X)"), HasSubstr("one cut per dimension"));
  EXPECT_THAT(error_of(x + "Z = repart(<2,2> -> <1,5>)(X)"), HasSubstr("cannot be cut into 5 parts"));
  EXPECT_THAT(error_of(x + "Z = repart(<2,2> -> <4,1>, <2,1>, <2,1>)(X)"), HasSubstr("does not fit position 0"));
  EXPECT_THAT(error_of(x + "Z = repart(<2,2> -> <4,1>, <4,1>, <4,1>, <2 by 4>)(X)"), HasSubstr("on 4 sites"));
  EXPECT_THAT(error_of(x + "Z = repart(<2,2>)(X)"), HasSubstr("two cuts are expected here"));
  EXPECT_THAT(error_of(x + "Z = repart(<2> -> <1>)(local_aggregate(<1>, matAdd)(X))"),
              HasSubstr("a repartition of partial aggregates"));
  EXPECT_THAT(error_of(x + "Z = repart(<2> -> <1>)(local_aggregate(<0>, matAdd)(X))"), HasSubstr("one key position"));
  EXPECT_THAT(error_of(x + "Z = repart(<2,2> -> <1,4>)(local_filter(k0 == k1)(X))"), HasSubstr("not a tensor"));
  EXPECT_THAT(error_of("input X[65536,65536] cut <65536,1>\nZ = repart(<65536,1> -> <1,65536>)(X)"),
              HasSubstr("it moves 4294967296 pieces"));
}

// Random plans

/// The same operations in a store of one site, where nothing is apart.
IaPlan on_one_site(const IaStore& store, const IaPlan& plan, IaStore& one) {
  const auto alone = [](SiteGrid& grid) { grid = spread(grid.parts, 1); };
  std::map<IaId, IaId> made;
  for (const IaId id : nodes_of(store, plan)) {
    IaOp op = store[id].op;
    if (auto* input = std::get_if<PlacedRelation>(&op)) {
      if (auto* part = std::get_if<Partitioned>(&input->placement)) alone(part->grid);
    }
    if (auto* shuffle = std::get_if<Shuf>(&op)) alone(shuffle->grid);
    if (auto* repartition = std::get_if<Repart>(&op)) alone(repartition->grid);
    std::vector<IaId> inputs;
    for (const IaId input : store[id].inputs) inputs.push_back(made.at(input));
    made[id] = one.add(std::move(op), std::move(inputs));
  }
  return {{plan.front().name, made.at(plan.front().id)}};
}

bool has_copies(const IaNode& node) {
  return !node.type.partial && node.type.tuples.size() > node.type.relation.chunks.size();
}

TEST(RandomSitePlans, ComputeOnSitesWhatTheyComputeOnOne) {
  constexpr std::array<std::string_view, 5> patterns{"agg(shuf(join(X,Y)))", "join(shuf(X),Y)", "agg(shuf(agg(X)))",
                                                     "shuf(map(X))", "agg(join(X,bcast(Y)))"};
  int plans = 0;
  std::map<std::string, std::size_t> seen;
  for (std::uint64_t seed = 0; seed < 60'000 && plans < rounds(4000); ++seed) {
    PlanGenerator generator(seed);
    const std::optional<IaId> root = generator.instance(patterns[seed % patterns.size()]);
    if (!root) continue;
    ++plans;
    const IaStore& store = generator.store();
    const IaPlan plan{{"Z", *root}};
    const IaRun run = interpret(store, plan, generator.inputs(), {});
    ASSERT_EQ(wrong_inference(store, plan, run), "") << "seed " << seed << "\n" << to_text(store, plan);
    IaStore one(1);
    const IaRun alone = interpret(one, on_one_site(store, plan, one), generator.inputs(), {});
    const Relation& wanted = alone.outputs.at("Z");
    const Relation& got = run.outputs.at("Z");
    ASSERT_EQ(got.size(), wanted.size());
    for (const auto& [key, array] : wanted) ASSERT_TRUE(equal(got.at(key), array)) << "seed " << seed;
    for (const IaId id : nodes_of(store, plan)) {
      const IaNode& node = store[id];
      seen["repart"] += std::holds_alternative<Repart>(node.op) ? 1U : 0U;
      if (!has_copies(node)) continue;
      seen["join of copies"] += std::holds_alternative<LocalJoin>(node.op) ? 1U : 0U;
      seen["aggregate of copies"] += std::holds_alternative<LocalAggregate>(node.op) ? 1U : 0U;
      seen["placed join of copies"] +=
          std::holds_alternative<LocalJoin>(node.op) && std::holds_alternative<Partitioned>(node.type.placement) ? 1U
                                                                                                                 : 0U;
    }
  }
  for (const char* what : {"repart", "join of copies", "aggregate of copies", "placed join of copies"})
    EXPECT_TRUE(came_up(seen[what], 30)) << what << " hardly ever occurs";
}

// Matrix multiplication on a three-dimensional grid of sites

struct GridMultiplication {
  std::vector<std::int64_t> extents;  ///< of i, j, k
  std::vector<DimensionCut> cuts;
  std::vector<std::int64_t> sites;  ///< per label
  std::vector<Site> strides;
};

GridMultiplication random_multiplication(Random& random) {
  GridMultiplication result;
  for (int label = 0; label < 3; ++label) {
    result.extents.push_back(random.between(1, 10));
    result.cuts.push_back({random.between(1, std::min<std::int64_t>(4, result.extents.back())), 1});
    result.sites.push_back(random.between(1, std::min<std::int64_t>(3, result.cuts.back().parts)));
  }
  std::vector<std::size_t> order{0, 1, 2};
  random.shuffle(order);
  result.strides.resize(3);
  Site next = 1;
  for (const std::size_t label : order) {
    result.strides[label] = next;
    next *= result.sites[label];
  }
  return result;
}

/// The grid of a tensor with these labels; along the label `copied` if it is one.
SiteGrid grid_of(const GridMultiplication& m, const std::vector<std::size_t>& labels, std::size_t copied) {
  std::vector<std::int64_t> parts;
  std::vector<std::int64_t> sites;
  std::vector<Site> strides;
  for (const std::size_t label : labels) {
    parts.push_back(m.cuts[label].parts);
    sites.push_back(m.sites[label]);
    strides.push_back(m.strides[label]);
  }
  std::vector<SiteCopies> copies;
  if (copied < 3) copies.push_back({m.sites[copied], m.strides[copied]});
  return site_grid(parts, sites, strides, copies);
}

constexpr std::size_t i = 0;
constexpr std::size_t j = 1;
constexpr std::size_t k = 2;
constexpr std::size_t none = 3;

TEST(MatrixMultiplicationOnAGrid, MovesWhatTheClosedFormSays) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const GridMultiplication m = random_multiplication(random);
    IaStore store(m.sites[i] * m.sites[j] * m.sites[k]);
    const auto extents = [&](std::size_t a, std::size_t b) { return make_shape({m.extents[a], m.extents[b]}); };
    const auto input = [&](const char* name, std::size_t a, std::size_t b) {
      return store.add(PlacedRelation{{name, DType::f32, extents(a, b), cut_of_all({m.cuts[a], m.cuts[b]})},
                                      Partitioned{{0, 1}, grid_of(m, {a, b}, none)}});
    };
    const std::vector<DType> f32(2, DType::f32);
    const Kernel add = named_kernel("matAdd", f32, {2, 2});
    const IaId x = store.add(Shuf{{0, 1}, grid_of(m, {i, j}, k)}, {input("X", i, j)});
    const IaId y = store.add(Shuf{{0, 1}, grid_of(m, {j, k}, i)}, {input("Y", j, k)});
    const IaId products = store.add(LocalJoin{{1}, {0}, named_kernel("matMul", f32, {2, 2}), identity_map(3)}, {x, y});
    const IaId on_sites = store.add(LocalAggregate{{0, 2}, add, std::nullopt}, {products});
    const IaId at_owner = store.add(Shuf{{0, 1}, grid_of(m, {i, k}, none)}, {on_sites});
    const IaPlan plan{{"Z", store.add(LocalAggregate{{0, 1}, add, std::nullopt}, {at_owner})}};

    const TensorBindings inputs{{"X", random_integers(random, DType::f32, extents(i, j))},
                                {"Y", random_integers(random, DType::f32, extents(j, k))}};
    const EinGraph graph = graph_of("input X[i,j]\ninput Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]",
                                    {{{"i", m.extents[i]}, {"j", m.extents[j]}, {"k", m.extents[k]}}, {}});
    ASSERT_TRUE(equal(result_of(store, plan, inputs), evaluate_reference(graph, inputs, {})[0])) << "seed " << seed;
    const std::int64_t floats = (m.sites[k] - 1) * element_count(extents(i, j)) +
                                (m.sites[i] - 1) * element_count(extents(j, k)) +
                                (m.sites[j] - 1) * element_count(extents(i, k));
    ASSERT_EQ(bytes_of(store, plan).total, floats * 4) << "seed " << seed;
    const SiteGrid whole = grid_of(m, {i, j, k}, none);
    const PhysicalType& type = store[products].type;
    ASSERT_TRUE(std::holds_alternative<Partitioned>(type.placement)) << to_string(type.placement);
    for (const PlacedChunk& tuple : type.tuples)
      ASSERT_EQ(tuple.site, site_of(whole, type.relation.chunks[tuple.chunk].key)) << seed;
  }
}

TEST(MatrixMultiplicationOnAGrid, StartsFromAnyCut) {
  // Four sites, i and k in two: X by rows is cut anew to squares that both columns of sites have.
  IaProgram program = parse_ia(SourceText("p.ia", R"(
    input X[10,7] : f32 cut <3,1> on <0>
    input Y[7,9] : f32 cut <2,2> on <1>, <2 by 1>, <2>, <2 by 2>
    C = repart(<3,1> -> <4,2>, <2 by 2,1>, <4,2>, <2 by 1>)(X)
    Z = local_aggregate(<0,2>, matAdd)(local_join(<1>, <0>, matMul)(C, Y))
  )"),
                               4);
  Random random(1);
  const TensorBindings inputs{{"X", random_integers(random, DType::f32, make_shape({10, 7}))},
                              {"Y", random_integers(random, DType::f32, make_shape({7, 9}))}};
  const EinGraph graph = graph_of("dims i=10, j=7, k=9\ninput X[i,j]\ninput Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]");
  EXPECT_TRUE(equal(result_of(program.store, program.plan, inputs), evaluate_reference(graph, inputs, {})[0]));
  // Rows 0-5 go to sites 0 and 1, 6-9 to 2 and 3; 0-3, 4-6 and 7-9 lie on 0, 1 and 2.
  EXPECT_THAT(bytes_of(program.store, program.plan).received, ElementsAre(2 * 7 * 4, 4 * 7 * 4, 1 * 7 * 4, 4 * 7 * 4));
}

TEST(BytesOfPlans, CountWhatIsNotThereYet) {
  const auto received = [](const std::string& text) {
    IaProgram program = parse_ia(SourceText("p.ia", text), 4);
    return bytes_of(program.store, program.plan).received;
  };
  const std::string x = "input X[4] : f64 cut <4> on <0>\n";
  EXPECT_THAT(received(x + "Z = bcast(X)"), ElementsAre(24, 24, 24, 24));
  EXPECT_THAT(received(x + "Z = bcast(bcast(X))"), ElementsAre(24, 24, 24, 24));
  EXPECT_THAT(received(x + "Z = shuf(<0>, <2>, <4>, <2 by 2>)(X)"), ElementsAre(8, 16, 16, 8));
  EXPECT_THAT(received(x + "Z = shuf(<>)(bcast(X))"), ElementsAre(24, 24, 24, 24));
  EXPECT_THAT(received("P = positions(4, <4>)\nZ = shuf(<0>)(bcast(P))"), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(received("input X[4] : f64 cut <4> on <0>, <2 by 2>, <4>, <2 by 1>\nZ = bcast(X)"),
              ElementsAre(16, 16, 16, 16));
  // Two sites fold two tuples each; site 0 has its own part of the sum.
  EXPECT_THAT(received("input X[4] : f64 cut <4> on <0>, <2 by 2>, <4>\n"
                       "Z = local_aggregate(<>, matAdd)(shuf(<>)(local_aggregate(<>, matAdd)(X)))"),
              ElementsAre(8, 0, 0, 0));
  // The copies that a map makes are tuples of their own.
  EXPECT_THAT(received(x + "Z = shuf(<1>)(local_duplicate(<k0,k1> -> <k0,k1>, 2)(X))"), ElementsAre(24, 24, 0, 0));
}

TEST(BytesOfPlans, AreRefusedAbove63Bits) {
  IaStore store(most_sites);
  const Shape bound = make_shape({std::int64_t{1} << 47U});
  const IaId x =
      store.add(PlacedRelation{{"X", DType::f32, bound, cut_of_all({{1, 1}})}, Partitioned{{}, spread({}, 1)}});
  EXPECT_THROW(bytes_of(store, {{"Z", store.add(Bcast{}, {x})}}), UserError);
}

TEST(SitePlans, FaultyOnesHaveNoBytes) {
  IaStore store(2);
  const IaId x = store.add(PlacedRelation{{"X", DType::f32, make_shape({4}), cut_of_all({{2, 1}})}, Everywhere{}});
  EXPECT_THROW(bytes_of(store, {{"Z", store.add(Shuf{{3}, spread({1}, 2)}, {x})}}), Bug);
}

}  // namespace
}  // namespace einrel::test
