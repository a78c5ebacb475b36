// The plans and figures of the TRA paper: tables 4, 6 and 9, and the derivation of section 5.2.1.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "ia/from_tra.h"
#include "ia/print.h"
#include "ia/rules/rewrite.h"
#include "ia/search.h"
#include "tra/text/parse.h"

namespace einrel::test {
namespace {

IaProgram table_1(const std::string& text, std::int64_t sites) {
  const ParsedTra parsed = parse_tra(SourceText("paper.tra", text));
  return compile_by_table_1(parsed.program, sites, parsed.layouts);
}

/// "1.6e+10": the figures of the paper have two digits.
std::string two_digits(double value) { return fmt::format("{:.1e}", value); }

/// The plan after the rule at the first place where `accept` wants it and it applies.
IaPlan applied(
    const char* rule, IaStore& store, const IaPlan& plan,
    const std::function<bool(const IaNode&)>& accept = [](const IaNode&) { return true; }) {
  std::string reasons;
  for (const IaId at : nodes_of(store, plan)) {
    if (!accept(store[at])) continue;
    const Rewritten rewritten = apply(rule_named(rule), store, plan, at);
    if (!rewritten.alternatives.empty()) return rewritten.alternatives.front().plan;
    reasons += rewritten.reason + "\n";
  }
  ADD_FAILURE() << rule << " does not apply: " << reasons;
  return plan;
}

/// The rule wherever it applies, until it does not any more.
IaPlan exhausted(const char* rule, IaStore& store, IaPlan plan) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (const IaId at : nodes_of(store, plan)) {
      const Rewritten rewritten = apply(rule_named(rule), store, plan, at);
      if (rewritten.alternatives.empty()) continue;
      plan = rewritten.alternatives.front().plan;
      changed = true;
      break;
    }
  }
  return plan;
}

template <class Op>
bool uses(const IaStore& store, const IaPlan& plan) {
  const std::vector<IaId> nodes = nodes_of(store, plan);
  return std::any_of(nodes.begin(), nodes.end(), [&](IaId id) { return std::holds_alternative<Op>(store[id].op); });
}

/// Whether some input of this name is broadcast.
bool broadcasts(const IaStore& store, const IaPlan& plan, const std::string& name) {
  const std::vector<IaId> nodes = nodes_of(store, plan);
  return std::any_of(nodes.begin(), nodes.end(), [&](IaId id) {
    if (!std::holds_alternative<Bcast>(store[id].op)) return false;
    const auto* input = std::get_if<PlacedRelation>(&store[store[id].inputs[0]].op);
    return input != nullptr && input->stored.name == name;
  });
}

// diag(X + Y), section 5.2.1

std::string written(const IaStore& store, const IaPlan& plan) {
  return nested_text(store, plan[0].id, {}, names_of(store, {plan}));
}

TEST(DiagonalOfASum, IsDerivedAsInThePaper) {
  IaProgram program = table_1(R"(
    input X[6,6] cut <3,3> on <0>
    input Y[6,6] cut <3,3> on <1>
    Z = transform(diag)(rekey(<k0,k1> -> <k0>)(filter(k0 == k1)(join(<0,1>, <0,1>, matAdd)(X, Y))))
  )",
                              3);
  IaStore& store = program.store;
  const auto is_filter = [](const IaNode& node) { return std::holds_alternative<LocalFilter>(node.op); };
  EXPECT_EQ(written(store, program.plan),
            "local_map(<k0> -> <k0>, diag)(local_map(<k0,k1> -> <k0>, id)(local_filter(k0 == k1)("
            "local_join(<0,1>, <0,1>, matAdd)(bcast(X), Y))))");
  EXPECT_EQ(cost_of(store, program.plan).moved, 3 * 36);
  IaPlan plan = applied("R1-2", store, program.plan);
  EXPECT_EQ(written(store, plan),
            "local_map(<k0,k1> -> <k0>, diag)(local_filter(k0 == k1)(local_join(<0,1>, <0,1>, matAdd)(bcast(X), Y)))");
  plan = applied("R1-6", store, plan);
  EXPECT_EQ(written(store, plan),
            "local_map(<k0,k1> -> <k0>, diag)(local_join(<0,1>, <0,1>, matAdd)("
            "local_filter(k0 == k1)(bcast(X)), local_filter(k0 == k1)(Y)))");
  plan = applied("R2-2b", store, plan, is_filter);
  EXPECT_EQ(written(store, plan),
            "local_map(<k0,k1> -> <k0>, diag)(local_join(<0,1>, <0,1>, matAdd)("
            "bcast(local_filter(k0 == k1)(X)), local_filter(k0 == k1)(Y)))");
  EXPECT_EQ(cost_of(store, plan).moved, 3 * 12);
  EXPECT_EQ(written(store, applied("R1-7a", store, plan)),
            "local_join(<0,1>, <0,1>, diag . matAdd, <k0,k1> -> <k0>)("
            "bcast(local_filter(k0 == k1)(X)), local_filter(k0 == k1)(Y))");
  EXPECT_EQ(written(store, applied("R1-7b", store, plan)),
            "local_join(<0>, <0>, matAdd)(local_map(<k0,k1> -> <k0>, diag)(bcast(local_filter(k0 == k1)(X))), "
            "local_map(<k0,k1> -> <k0>, diag)(local_filter(k0 == k1)(Y)))");
}

TEST(DiagonalOfASum, IsFoundBySearch) {
  IaProgram program = table_1(R"(
    input X[6,6] cut <3,3> on <0>
    input Y[6,6] cut <3,3> on <0>
    Z = transform(diag)(rekey(<k0,k1> -> <k0>)(filter(k0 == k1)(join(<0,1>, <0,1>, matAdd)(X, Y))))
  )",
                              3);
  EXPECT_EQ(cheapest_plan(program.store, program.plan).cost().moved, 0);
}

// Matrix multiplication, table 4

struct Multiplication {
  const char* name;
  double i, j, k;
  const char* bmm;
  const char* cmm;
  const char* rmm;
};
const std::vector<Multiplication>& multiplications() {
  static const std::vector<Multiplication> rows{
      {"two general matrices", 4e4, 4e4, 4e4, "1.6e+10", "1.6e+10", "1.6e+10"},
      {"a common large dimension", 1e4, 1e4, 6.4e5, "6.4e+10", "1.0e+09", "6.4e+10"},
      {"two large dimensions", 8e4, 8e4, 1e4, "8.0e+09", "6.4e+10", "8.0e+09"},
  };
  return rows;
}

/// A is I x K, B is K x J; `parts` is that of I and J. Ten sites.
IaProgram multiplication(const Multiplication& row, int parts, int a_on, int b_on) {
  return table_1(fmt::format("input A[{0},{2}] cut <{3},10> on <{4}>\ninput B[{2},{1}] cut <10,{3}> on <{5}>\n"
                             "C = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A, B))",
                             row.i, row.j, row.k, parts, a_on, b_on),
                 10);
}

TEST(MatrixMultiplication, PlansCostWhatThePaperSays) {
  for (const Multiplication& row : multiplications()) {
    IaProgram by_rows = multiplication(row, 10, 0, 0);
    const IaPlan turned = applied("R2-6a", by_rows.store, by_rows.plan);
    EXPECT_EQ(two_digits(cost_of(by_rows.store, applied("R2-4", by_rows.store, turned)).moved), row.bmm) << row.name;

    IaProgram by_common = multiplication(row, 10, 1, 0);
    EXPECT_EQ(two_digits(cost_of(by_common.store, applied("R2-8c", by_common.store, by_common.plan)).moved), row.cmm)
        << row.name;

    IaProgram replicated = multiplication(row, 5, 0, 1);  // xDups + yDups = 5 + 5 = s
    EXPECT_EQ(two_digits(cost_of(replicated.store, applied("RMM", replicated.store, replicated.plan)).moved), row.rmm)
        << row.name;
  }
}

TEST(MatrixMultiplication, CommonLargeDimensionFromRowsShufflesThenCrosses) {
  IaProgram by_rows = multiplication(multiplications()[1], 10, 0, 0);
  const IaPlan crossed = applied("R2-6c", by_rows.store, by_rows.plan);
  EXPECT_EQ(two_digits(cost_of(by_rows.store, crossed).moved), "1.4e+10");  // A, B and s partial products
}

/// What a plan for C = A B does.
std::string scheme(const IaStore& store, const IaPlan& plan) {
  for (const IaId id : nodes_of(store, plan)) {
    const auto* map = std::get_if<LocalMap>(&store[id].op);
    if (map != nullptr && std::holds_alternative<Duplicate>(map->arrays)) return "RMM";
  }
  return broadcasts(store, plan, "A") || broadcasts(store, plan, "B") ? "BMM" : "CMM";
}

TEST(MatrixMultiplication, SearchFindsTheCheapestSchemeOfEachRow) {
  using testing::AnyOf;
  const std::vector<std::pair<const char*, testing::Matcher<std::string>>> wanted{
      {"1.6e+10", AnyOf("BMM", "CMM", "RMM")}, {"1.0e+09", testing::Eq("CMM")}, {"8.0e+09", AnyOf("BMM", "RMM")}};
  for (std::size_t r = 0; r < multiplications().size(); ++r) {
    std::optional<double> least;
    std::string best;
    for (const int parts : {10, 5}) {
      for (const auto& [a_on, b_on] : {std::pair(0, 0), std::pair(1, 0), std::pair(0, 1)}) {
        IaProgram program = multiplication(multiplications()[r], parts, a_on, b_on);
        const Derivation found = cheapest_plan(program.store, program.plan);
        EXPECT_TRUE(found.complete);
        if (least && found.cost().moved >= *least) continue;
        least = found.cost().moved;
        best = scheme(program.store, found.plan());
      }
    }
    EXPECT_EQ(two_digits(*least), wanted[r].first) << multiplications()[r].name;
    EXPECT_THAT(best, wanted[r].second) << multiplications()[r].name;
  }
}

TEST(MatrixMultiplication, RowsAloneDecideTheScheme) {
  // Both matrices stored by rows: CMM has to move A first and is still the cheapest of the second row.
  const std::vector<std::string> schemes{"BMM", "CMM", "BMM"};
  for (std::size_t r = 0; r < schemes.size(); ++r) {
    IaProgram program = multiplication(multiplications()[r], 10, 0, 0);
    EXPECT_EQ(scheme(program.store, cheapest_plan(program.store, program.plan).plan()), schemes[r]);
  }
}

// Nearest neighbour search, table 6: eight sites

IaProgram nearest_neighbour(double n, double d, int x_on) {
  return table_1(fmt::format(R"(
    input xq[1,{1}] cut <1,8> on <0>
    input X[{0},{1}] cut <8,8> on <{2}>
    input A[{1},{1}] cut <8,8> on <0>
    diff = rekey(<q,d,n> -> <n,d>)(join(<1>, <1>, matVecSub)(xq, X))
    proj = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(diff, A))
    dist = transform(rowSum)(aggregate(<0>, matAdd)(join(<0,1>, <0,1>, elemMul)(proj, diff)))
  )",
                             n, d, x_on),
                 8);
}

TEST(NearestNeighbour, SearchFindsHorizontalForWideAndVerticalForLarge) {
  struct Row {
    double n, d;
    const char* horizontal;
    const char* vertical;
  };
  // The paper prints the third and the second figure in each other's place.
  for (const Row& row : {Row{1.5e6, 6e3, "2.9e+08", "7.2e+10"}, Row{6e3, 1e5, "8.0e+10", "4.8e+09"}}) {
    IaProgram by_rows = nearest_neighbour(row.n, row.d, 0);
    IaProgram by_columns = nearest_neighbour(row.n, row.d, 1);
    const Derivation from_rows = cheapest_plan(by_rows.store, by_rows.plan);
    const Derivation from_columns = cheapest_plan(by_columns.store, by_columns.plan);
    const bool wide = row.n > row.d;
    if (wide) {
      EXPECT_LT(from_rows.cost().moved, from_columns.cost().moved);
      EXPECT_EQ(two_digits(from_rows.cost().moved), row.horizontal);
      EXPECT_TRUE(broadcasts(by_rows.store, from_rows.plan(), "A"));
    } else {
      EXPECT_LT(from_columns.cost().moved, from_rows.cost().moved);
      EXPECT_FALSE(broadcasts(by_columns.store, from_columns.plan(), "A"));
    }
    EXPECT_EQ(two_digits(from_columns.cost().moved), row.vertical);
  }
}

TEST(NearestNeighbour, HorizontalCostsWhatThePaperSaysForLargeToo) {
  IaProgram program = nearest_neighbour(6e3, 1e5, 0);
  IaStore& store = program.store;
  const auto reads = [&](const char* name) {
    return [&store, name](const IaNode& node) {
      if (!std::holds_alternative<LocalJoin>(node.op)) return false;
      const auto* input = std::get_if<PlacedRelation>(&store[node.inputs[1]].op);
      return input != nullptr && input->stored.name == name;
    };
  };
  IaPlan plan = applied("R2-6a", store, program.plan, reads("A"));
  plan = exhausted("R2-4", store, plan);
  plan = exhausted("R2-8c", store, plan);
  plan = exhausted("R2-4", store, plan);
  EXPECT_EQ(two_digits(cost_of(store, plan).moved), "8.0e+10");
}

// One training step of a network with two layers, table 9: five sites

struct Network {
  double n, d, h, l;
  const char* data_parallel;
  const char* model_parallel;
};
const std::vector<Network>& networks() {
  static const std::vector<Network> rows{
      {1e4, 1600, 1e5, 10, "9.7e+08", "1.0e+10"},      {1e4, 1600, 1.5e5, 10, "1.4e+09", "1.5e+10"},
      {1e4, 1600, 2e5, 10, "1.9e+09", "2.0e+10"},      {1e3, 597540, 1e3, 14588, "3.7e+09", "1.0e+07"},
      {1e3, 597540, 3e3, 14588, "1.1e+10", "3.0e+07"}, {1e3, 597540, 5e3, 14588, "1.8e+10", "5.0e+07"},
      {1e3, 597540, 7e3, 14588, "2.6e+10", "7.0e+07"},
  };
  return rows;
}

/// X and Y lie by the batch (0) or by features and labels (1); the hidden layer is not cut.
IaProgram training_step(const Network& row, int data_on) {
  return table_1(fmt::format(R"(
    scalar eta = 0.01
    kernel update(W[i,j], G[i,j]) -> [i,j] = W[i,j] - eta * G[i,j]
    input X[{0},{1}] cut <5,5> on <{4}>
    input W1[{1},{2}] cut <5,1> on <0>
    input W2[{2},{3}] cut <1,5> on <1>
    input Y[{0},{3}] cut <5,5> on <{4}>
    A1 = transform(relu)(aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(X, W1)))
    A2 = transform(sigmoid)(aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A1, W2)))
    D2 = join(<0,1>, <0,1>, matSub)(A2, Y)
    G2 = aggregate(<1,2>, matAdd)(join(<0>, <0>, matTranMulL)(A1, D2))
    E1 = aggregate(<0,2>, matAdd)(join(<1>, <1>, matTranMulR)(D2, W2))
    D1 = join(<0,1>, <0,1>, elemMul)(E1, transform(step)(A1))
    G1 = aggregate(<1,2>, matAdd)(join(<0>, <0>, matTranMulL)(X, D1))
    V1 = join(<0,1>, <0,1>, update)(W1, G1)
    V2 = join(<0,1>, <0,1>, update)(W2, G2)
  )",
                             row.n, row.d, row.h, row.l, data_on),
                 5);
}

/// Joins whose left or right side is this input (a broadcast left side is looked through).
std::function<bool(const IaNode&)> joins_input(const IaStore& store, std::size_t side, const std::string& name) {
  return [&store, side, name](const IaNode& node) {
    if (!std::holds_alternative<LocalJoin>(node.op)) return false;
    IaId id = node.inputs[side];
    if (std::holds_alternative<Bcast>(store[id].op)) id = store[id].inputs[0];
    const auto* input = std::get_if<PlacedRelation>(&store[id].op);
    return input != nullptr && input->stored.name == name;
  };
}

/// Everything stays with its part of the batch; weights are broadcast, gradients folded in two phases.
IaPlan data_parallel(IaStore& store, IaPlan plan) {
  plan = exhausted("R2-8c", store, plan);
  plan = applied("R2-6a", store, plan, joins_input(store, 1, "W1"));
  plan = exhausted("R2-4", store, plan);
  plan = applied("R2-6a", store, plan, joins_input(store, 1, "W2"));
  plan = exhausted("R2-4", store, plan);
  plan = applied("R2-6a", store, plan, joins_input(store, 1, "W2"));
  plan = exhausted("R2-4", store, plan);
  plan = exhausted("R2-8c", store, plan);
  plan = exhausted("R2-5", store, plan);
  return exhausted("R2-8c", store, plan);
}

/// Weights stay where they are; activations of the hidden layer and their gradients are broadcast.
IaPlan model_parallel(IaStore& store, IaPlan plan) {
  plan = exhausted("R2-8c", store, plan);
  plan = exhausted("R2-4", store, plan);
  plan = exhausted("R2-8c", store, plan);
  plan = applied("R2-6a", store, plan, joins_input(store, 0, "X"));
  plan = exhausted("R2-4", store, plan);
  return exhausted("R2-8c", store, plan);
}

TEST(TrainingStep, PlansCostWhatThePaperSays) {
  const double s = 5;
  for (const Network& row : networks()) {
    IaProgram by_batch = training_step(row, 0);
    const PlanCost data = cost_of(by_batch.store, data_parallel(by_batch.store, by_batch.plan));
    const double weights = row.d * row.h + row.h * row.l;
    EXPECT_DOUBLE_EQ(data.moved_each_key_once, (s + 1) * weights);
    EXPECT_EQ(two_digits(data.moved_each_key_once), row.data_parallel);
    EXPECT_DOUBLE_EQ(data.moved, 2 * s * weights);  // each site sends a whole partial gradient

    IaProgram by_features = training_step(row, 1);
    const IaPlan plan = model_parallel(by_features.store, by_features.plan);
    double broadcast = 0;
    for (const IaId id : nodes_of(by_features.store, plan)) {
      const IaNode& node = by_features.store[id];
      if (std::holds_alternative<Bcast>(node.op)) broadcast += node.cost.moved;
    }
    EXPECT_DOUBLE_EQ(broadcast, 2 * s * row.n * row.h);
    EXPECT_EQ(two_digits(broadcast), row.model_parallel);
    EXPECT_DOUBLE_EQ(cost_of(by_features.store, plan).moved, 4 * s * row.n * row.h);
  }
}

TEST(TrainingStep, SearchFindsDataParallelForSpeechAndModelParallelForXml) {
  for (const Network& row : networks()) {
    IaProgram by_batch = training_step(row, 0);
    IaProgram by_features = training_step(row, 1);
    const double data = cheapest_plan(by_batch.store, by_batch.plan).cost().moved;
    const double model = cheapest_plan(by_features.store, by_features.plan).cost().moved;
    if (row.l == 10) {
      EXPECT_LT(data, model);
      EXPECT_DOUBLE_EQ(data, 10 * (row.d * row.h + row.h * row.l));
    } else {
      EXPECT_LT(model, data);
      EXPECT_DOUBLE_EQ(model, 20 * row.n * row.h);
    }
  }
}

}  // namespace
}  // namespace einrel::test
