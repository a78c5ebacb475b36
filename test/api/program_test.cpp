#include <einrel/einrel.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "errors.h"

namespace {

using einrel::Input;
using einrel::Inputs;
using einrel::Program;
using einrel::RunResult;
using einrel::Tensor;
using einrel::test::message_of;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* matmul =
    "dims i=7 j=5 k=6\n"
    "input A[i,j], B[j,k]\n"
    "C[i,k] = sum[j] A[i,j] * B[j,k]\n";

/// Whole numbers, so that sums are exact in whatever order.
std::vector<float> whole_numbers(std::size_t count, int seed) {
  std::vector<float> values(count);
  for (std::size_t n = 0; n < count; ++n) values[n] = static_cast<float>((static_cast<int>(n) * 7 + seed) % 11 - 5);
  return values;
}

Tensor random_like(const einrel::Shape& shape, int seed) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return {shape, whole_numbers(static_cast<std::size_t>(count), seed)};
}

/// The product by plain loops.
std::vector<float> product(const Tensor& a, const Tensor& b) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < a.shape()[0]; ++i) {
    for (std::int64_t k = 0; k < b.shape()[1]; ++k) {
      float total = 0;
      for (std::int64_t j = 0; j < b.shape()[0]; ++j) total += a.at<float>({i, j}) * b.at<float>({j, k});
      result.push_back(total);
    }
  }
  return result;
}

testing::Matcher<std::span<const float>> equals(const std::vector<float>& want) {
  return testing::ElementsAreArray(want);
}

class ApiProgram : public testing::Test {
 protected:
  Program program = Program::parse(matmul);
  Tensor a = random_like({7, 5}, 1);
  Tensor b = random_like({5, 6}, 2);
};

TEST_F(ApiProgram, SaysWhatItTakesAndGives) {
  ASSERT_EQ(program.inputs().size(), 2U);
  EXPECT_EQ(program.inputs()[1].name, "B");
  EXPECT_EQ(program.inputs()[1].dtype, einrel::DType::f32);
  EXPECT_THAT(program.inputs()[1].labels, ElementsAre("j", "k"));
  EXPECT_THAT(program.inputs()[1].extents, ElementsAre(5, 6));
  ASSERT_EQ(program.outputs().size(), 1U);
  EXPECT_EQ(program.outputs()[0].name, "C");
  EXPECT_THAT(program.outputs()[0].labels, ElementsAre("i", "k"));
  EXPECT_THAT(program.outputs()[0].extents, ElementsAre(7, 6));
  EXPECT_EQ(program.text(), matmul);
  const Program merged = Program::parse("dims h=2 d=3\ninput X[h,d] : i64\nY[(h d),1] = view X[h,d]\n");
  EXPECT_THAT(merged.outputs()[0].labels, ElementsAre("(h d)", "()"));
  EXPECT_EQ(merged.outputs()[0].dtype, einrel::DType::i64);
}

TEST_F(ApiProgram, ComputesWhatPlainLoopsDo) {
  const RunResult result = program.run({{"A", a}, {"B", b}});
  EXPECT_THAT(result["C"].shape(), ElementsAre(7, 6));
  EXPECT_THAT(result["C"].values<float>(), equals(product(a, b)));
  EXPECT_GE(result.report.seconds, 0);
  EXPECT_EQ(result.report.planner, std::nullopt);
  EXPECT_EQ(result.report.predicted_peak, (7 * 5 + 5 * 6 + 7 * 6) * 4);
}

TEST_F(ApiProgram, ComputesTheSameByAnyPlan) {
  const std::vector<float> want = product(a, b);
  for (const std::int64_t sites : {1, 2, 4, 6}) {
    for (const std::size_t threads : {1U, 2U}) {
      const RunResult result = program.run({{"A", a}, {"B", b}}, {.threads = threads, .sites = sites});
      EXPECT_THAT(result["C"].values<float>(), equals(want)) << sites << " sites";
      EXPECT_EQ(result.report.sites, sites);
      EXPECT_EQ(result.report.planner, "eindecomp");
      EXPECT_EQ(result.report.bytes_moved_to.size(), static_cast<std::size_t>(sites));
    }
  }
  EXPECT_THAT(
      program.run({{"A", a}, {"B", b}}, {.cost = einrel::Cost::bytes, .machine = "laptop"})["C"].at<float>({0, 0}),
      want[0]);
  EXPECT_EQ(program.run({{"A", a}, {"B", b}}, {.sites = 4, .planner = "sqrt"}).report.planner, "sqrt");
}

TEST_F(ApiProgram, KeepsItsPlansFromRunToRun) {
  const Program scaled = Program::parse(
      "dims i=7 j=5 k=6\ninput A[i,j], B[j,k]\nscalar s = 1\n"
      "C[i,k] = s * sum[j] A[i,j] * B[j,k]\n");
  const std::vector<float> want = product(a, b);
  std::vector<float> twice;
  for (const float value : want) twice.push_back(2 * value);
  const auto run = [&](double s, std::size_t threads, std::int64_t sites) {
    return scaled.run({{"A", a}, {"B", b}}, {.scalars = {{"s", s}}, .threads = threads, .sites = sites});
  };
  for (const std::size_t threads : {1U, 3U}) {
    for (const std::int64_t sites : {2, 3}) {
      EXPECT_GT(run(1, threads, sites).report.plan_seconds, 0);
      const RunResult again = run(2, threads, sites);
      EXPECT_EQ(again.report.plan_seconds, 0);
      EXPECT_EQ(again.report.sites, sites);
      EXPECT_THAT(again["C"].values<float>(), equals(twice));
      const RunResult back = run(1, threads, sites);
      EXPECT_THAT(back["C"].values<float>(), equals(want));
    }
  }
  // What was kept gives way to what was asked for later, and comes again.
  for (std::int64_t sites = 1; sites <= 10; ++sites) run(1, 2, sites);
  EXPECT_GT(run(1, 2, 1).report.plan_seconds, 0);
  const RunResult kept = run(2, 2, 10);
  EXPECT_EQ(kept.report.plan_seconds, 0);
  EXPECT_THAT(kept["C"].values<float>(), equals(twice));
}

TEST(ApiProgramOfPieces, TakesInputsThatAreMadePieceByPiece) {
  const Program program = Program::parse("input A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n");
  const Tensor a = random_like({64, 64}, 1);
  const Tensor b = random_like({64, 64}, 2);
  std::mutex mutex;
  std::vector<einrel::Shape> asked;
  const Input made =
      Input::made(einrel::DType::f32, {64, 64}, [&](const auto& begin, const einrel::Shape& extents, auto elements) {
        const std::lock_guard lock(mutex);
        asked.push_back(extents);
        std::size_t at = 0;
        for (std::int64_t i = begin[0]; i < begin[0] + extents[0]; ++i) {
          for (std::int64_t j = begin[1]; j < begin[1] + extents[1]; ++j) {
            const float value = a.at<float>({i, j});
            std::memcpy(elements.data() + 4 * at++, &value, sizeof(value));
          }
        }
        EXPECT_EQ(elements.size(), 4 * at);
      });
  const std::vector<float> want = product(a, b);
  EXPECT_EQ(made.tensor().at<float>({63, 1}), a.at<float>({63, 1}));
  EXPECT_THAT(asked, ElementsAre(einrel::Shape{64, 64}));
  const RunResult whole = program.run({{"A", made}, {"B", b}});
  EXPECT_THAT(whole["C"].values<float>(), equals(want));
  EXPECT_THAT(asked, ElementsAre(einrel::Shape{64, 64}, einrel::Shape{64, 64}));
  asked.clear();
  const RunResult by_plan = program.run({{"A", made}, {"B", b}}, {.sites = 4, .planner = "eindecomp-paper"});
  EXPECT_THAT(by_plan["C"].values<float>(), equals(want));
  EXPECT_GT(asked.size(), 1U);
  for (const einrel::Shape& extents : asked) EXPECT_LT(extents[0] * extents[1], 64 * 64);
  EXPECT_THAT(message_of([] { Input::made(einrel::DType::f32, {-1}, {}); }), HasSubstr("an extent is 0 or more"));
}

TEST_F(ApiProgram, IsOneRankWithoutMpirun) {
  const einrel::Ranks ranks;
  EXPECT_EQ(ranks.rank(), 0);
  EXPECT_EQ(ranks.count(), 1);
  const Program twice = Program::parse("input A[i]\nB[i] = 2 * A[i]\n");
  const RunResult result = twice.run({{"A", Tensor({2}, std::vector<float>{1, 2})}}, {.ranks = ranks});
  EXPECT_EQ(result["B"].at<float>({1}), 4);
}

TEST_F(ApiProgram, TakesEveryPlannerThatIsListed) {
  const Program twice = Program::parse("dims i=8\ninput A[i]\nB[i] = 2 * A[i]\n");
  EXPECT_EQ(einrel::planners().front().name, "eindecomp");
  for (const einrel::PlannerInfo& planner : einrel::planners()) {
    EXPECT_FALSE(planner.summary.empty());
    const std::string why_not = message_of([&] { twice.explain({.sites = 1, .planners = {planner.name}}); });
    EXPECT_THAT(why_not, AnyOf(std::string(), HasSubstr(planner.name + " has no plan for")));
  }
}

/// Twelve tensors of 4 MiB that are alive at a time: a number that all of them give is needed for what they are for.
Program many_tensors() {
  std::string text = "dims i=1024 k=1024\ninput A[i], B[k]\n";
  std::string later = "T0[i,k] = C0[i,k] + N[] * C1[i,k]\n";
  std::string number_of_all = "N[] = 1";
  for (int n = 0; n < 12; ++n) {
    const std::string number = std::to_string(n);
    text += "C" + number + "[i,k] = max(A[i] - " + number + ", B[k])\n";
    number_of_all += " + 0.001 * tanh(sum[i,k] C" + number + "[i,k])";
    if (n > 0) later += "T" + number + "[i,k] = T" + std::to_string(n - 1) + "[i,k] + C" + number + "[i,k]\n";
  }
  return Program::parse(text + number_of_all + "\n" + later + "S[] = sum[i,k] T11[i,k]\n");
}

TEST_F(ApiProgram, RunsUnderLimitsOfMemoryEachItsOwn) {
  const Program many = many_tensors();
  const Inputs inputs{{"A", random_like({1024}, 1)}, {"B", random_like({1024}, 2)}};
  const float want = many.run(inputs)["S"].at<float>({});
  const auto spilled = [&](std::int64_t mebibytes) {
    const RunResult result = many.run(inputs, {.threads = 1, .memory = mebibytes << 20});
    EXPECT_NEAR(result["S"].at<float>({}), want, std::abs(want) * 1e-4) << mebibytes;
    return result.report.spilled;
  };
  const std::int64_t much = spilled(16);
  const std::int64_t less = spilled(40);
  EXPECT_GT(much, less);
  EXPECT_EQ(spilled(1000), 0);
  EXPECT_GT(spilled(16), less);
  EXPECT_EQ(std::getenv("STARPU_LIMIT_CPU_MEM"), nullptr);
}

/// Only a disk that accepts no more, once chunks are on their way there.
TEST_F(ApiProgram, SaysWhyItEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run_on_full_disk = [] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{64 * 1024, 64 * 1024};  // the least that StarPU starts with
    setrlimit(RLIMIT_FSIZE, &none);
    many_tensors().run({{"A", random_like({1024}, 1)}, {"B", random_like({1024}, 2)}},
                       {.threads = 1, .memory = std::int64_t{16} << 20});
  };
  EXPECT_EXIT(run_on_full_disk(), testing::ExitedWithCode(2), "einrel: a run had to end with its process: .*File too");
}

TEST(ApiMemory, IsRefusedBeforeARunThatNeedsMoreThanThereIs) {
  const Program program = Program::parse("dims i=3000000 j=3000000\ninput x[i], y[j]\nC[i,j] = x[i] * y[j]\n");
  const Tensor ones = random_like({3000000}, 1);
  for (const einrel::RunOptions& options : {einrel::RunOptions{}, einrel::RunOptions{.sites = 4}}) {
    EXPECT_THAT(message_of<einrel::RunError>([&] {
                  program.run({{"x", ones}, {"y", ones}}, options);
                }),
                testing::AllOf(HasSubstr("36 TB"), HasSubstr("the option 'memory'")));
  }
}

TEST_F(ApiProgram, ExplainsItselfAndItsPlans) {
  EXPECT_THAT(program.explain(), HasSubstr("C[i,k] = sum[j] A[i,j] * B[j,k]"));
  EXPECT_THAT(program.explain({.sites = 4}), HasSubstr("4 sites"));
  const std::string both =
      program.explain({.sites = 4, .planners = {"eindecomp", "sqrt"}, .cost = einrel::Cost::floats});
  EXPECT_THAT(both, HasSubstr("sqrt"));
  EXPECT_THAT(message_of([&] { program.explain({.sites = 4, .memory = 10}); }), HasSubstr("10 B"));
  EXPECT_THAT(message_of([&] { program.explain({.sites = 0}); }), HasSubstr("0 sites"));
  EXPECT_THAT(message_of([&] { program.explain({.machine = "lapptop"}); }), HasSubstr("laptop"));
  EXPECT_THAT(message_of([&] { program.explain({.planners = {"eindecom"}}); }), HasSubstr("eindecomp"));
  EXPECT_THAT(message_of([&] { program.explain({.planners = {"ia-rules"}}); }), HasSubstr("plans relations"));
}

TEST_F(ApiProgram, TakesExtentsFromDimsAndFromData) {
  const Program wider = Program::parse(matmul, {{"k", 3}});
  EXPECT_THAT(wider.outputs()[0].extents, ElementsAre(7, 3));
  const Program open = Program::parse("input A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n");
  EXPECT_FALSE(open.extents_are_known());
  EXPECT_THAT(open.inputs()[0].extents, ElementsAre(std::nullopt, std::nullopt));
  EXPECT_THAT(message_of([&] { open.outputs(); }), HasSubstr("A[i,j] : f32"));
  EXPECT_THAT(message_of([&] { open.explain(); }), HasSubstr("dims"));
  EXPECT_THAT(message_of([&] { open.labels(); }), HasSubstr("dims"));
  EXPECT_THAT(wider.labels(), ElementsAre("i", "j", "k"));
  for (const std::int64_t rows : {1, 3, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) {
    const Tensor left = random_like({rows, 5}, 1);
    const RunResult result = open.run({{"A", left}, {"B", b}});
    EXPECT_THAT(result["C"].values<float>(), equals(product(left, b)));
  }
  EXPECT_THAT(message_of([&] { open.run({{"A", a}}); }), HasSubstr("B[j,k] : f32"));
}

TEST_F(ApiProgram, NamesEveryMistakeOfAText) {
  const std::string message =
      message_of([] { Program::parse("input A[i]\nB[i] = A[i] +\nC[i] = rleu(A[i])\n", {}, "two.ein"); });
  EXPECT_THAT(message, HasSubstr("two.ein:2"));
  EXPECT_THAT(message, HasSubstr("relu"));
  EXPECT_THAT(message, HasSubstr("^"));
  EXPECT_FALSE(message.ends_with('\n'));
  EXPECT_THAT(message_of([] { Program::parse(matmul, {{"k", -1}}); }), HasSubstr("cannot be negative: -1"));
  EXPECT_THAT(message_of([] { Program::parse(matmul, {{"q", 1}}); }), HasSubstr("q"));
}

TEST_F(ApiProgram, NamesInputsThatAreMissingUnknownOrWrong) {
  EXPECT_THAT(message_of([&] { program.run({{"A", a}}); }), HasSubstr("missing input B[5,6] : f32"));
  EXPECT_THAT(message_of([&] { program.run({{"A", a}, {"B", b}, {"BB", b}}); }), HasSubstr("no input 'BB'"));
  EXPECT_THAT(message_of([&] { program.run({{"A", b}, {"B", b}}); }), HasSubstr("label 'j'"));
  EXPECT_THAT(message_of([&] { program.run({{"A", Tensor()}, {"B", b}}); }), HasSubstr("A[i,j]"));
  const Tensor doubles({7, 5}, std::vector<double>(35));
  EXPECT_THAT(message_of([&] { program.run({{"A", doubles}, {"B", b}}); }), HasSubstr("f64"));
  const RunResult result = program.run({{"A", a}, {"B", b}});
  EXPECT_THAT(message_of([&] { result["c"]; }), HasSubstr("'C'"));
}

TEST_F(ApiProgram, RefusesOptionsThatMakeNoSense) {
  const Inputs inputs{{"A", a}, {"B", b}};
  EXPECT_THAT(message_of([&] { program.run(inputs, {.threads = 0}); }), HasSubstr("0 threads"));
  EXPECT_THAT(message_of([&] { program.run(inputs, {.threads = 100000}); }), HasSubstr("100000 threads"));
  EXPECT_THAT(message_of([&] { program.run(inputs, {.sites = -1}); }), HasSubstr("-1 sites"));
  EXPECT_THAT(message_of([&] { program.run(inputs, {.planner = "sqrrt"}); }), HasSubstr("sqrt"));
  EXPECT_THAT(message_of([&] { program.run(inputs, {.memory = 0}); }), HasSubstr("0 bytes"));
  EXPECT_THAT(message_of([&] { program.run(inputs, {.spill = "/tmp"}); }), HasSubstr("memory"));
  EXPECT_THAT(message_of([&] { program.run(inputs, {.machine = "/absent.json"}); }), HasSubstr("/absent.json"));
}

TEST_F(ApiProgram, RefusesExtentsWhoseProductOverflows) {
  const std::string text =
      "dims i=4000000000 j=4000000000 k=4000000000\ninput A[i], B[j], C[k]\n"
      "D[i,j,k] = A[i] * B[j] * C[k]\n";
  EXPECT_NE(message_of([&] { Program::parse(text); }), "");
}

TEST_F(ApiProgram, SaysThatMemoryDoesNotSuffice) {
  const Program large = Program::parse("dims i=3000000 j=3000000\ninput A[i], B[j]\nC[i,j] = A[i] * B[j]\n");
  const Tensor vector({3000000}, std::vector<float>(3000000));
  EXPECT_THAT(message_of<einrel::RunError>([&] { large.run({{"A", vector}, {"B", vector}}); }), HasSubstr("C"));
}

TEST_F(ApiProgram, LeavesOutInputsThatNoOutputNeeds) {
  const Program partly = Program::parse("dims i=2\ninput A[i], B[i]\nC[i] = A[i] + 1\nD[i] = B[i]\noutput C\n");
  const Tensor two({2}, std::vector<float>{1, 2});
  EXPECT_EQ(partly.run({{"A", two}})["C"].at<float>({1}), 3);
  EXPECT_EQ(partly.run({{"A", two}, {"B", two}})["C"].at<float>({1}), 3);
}

TEST_F(ApiProgram, GivesNothingThatRefersToBorrowedMemory) {
  const Program views = Program::parse(
      "dims i=2 j=3\ninput A[i,j]\nT[j,i] = view A[i,j]\nF[(i j)] = view A[i,j]\n"
      "R[i] = A[i,0] + 1\noutput T, F, R, A\n");
  for (const std::optional<std::int64_t> sites : {std::optional<std::int64_t>(), std::optional<std::int64_t>(2)}) {
    auto values = std::make_unique<std::vector<float>>(std::vector<float>{1, 2, 3, 4, 5, 6});
    const RunResult result = views.run({{"A", Tensor::borrow({2, 3}, *values)}}, {.sites = sites});
    std::fill(values->begin(), values->end(), -1.0F);
    values.reset();
    EXPECT_THAT(result["T"].values<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
    EXPECT_THAT(result["F"].values<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(result["A"].values<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(result["R"].values<float>(), ElementsAre(2, 5));
  }
}

TEST_F(ApiProgram, GivesOutputsThatOutliveIt) {
  Tensor result;
  {
    const Program gone = Program::parse(matmul);
    result = gone.run({{"A", a}, {"B", b}})["C"];
  }
  EXPECT_THAT(result.values<float>(), equals(product(a, b)));
}

TEST_F(ApiProgram, MayBeCopiedMovedAndRunBesideAnother) {
  Program copy = program;
  const Program moved = std::move(copy);
  const Program other = Program::parse("dims i=7 k=6\ninput C[i,k]\nS[i] = max[k] C[i,k]\n");
  const RunResult first = moved.run({{"A", a}, {"B", b}});
  const RunResult second = other.run({{"C", first["C"]}});
  const RunResult third = copy.run({{"A", a}, {"B", b}});  // NOLINT(bugprone-use-after-move): that is what is tested
  const std::vector<float> want = product(a, b);
  EXPECT_THAT(third["C"].values<float>(), equals(want));
  EXPECT_EQ(second["S"].at<float>({0}), *std::max_element(want.begin(), want.begin() + 6));
}

TEST_F(ApiProgram, RunsOnSeveralThreadsAtATime) {
  const std::vector<float> want = product(a, b);
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int n = 0; n < 4; ++n) {
      threads.emplace_back([&, n] {
        for (int round = 0; round < 5; ++round) {
          const bool planned = (n + round) % 2 == 0;
          const RunResult result =
              program.run({{"A", a}, {"B", b}}, {.threads = 2, .sites = planned ? std::optional(2) : std::nullopt});
          const std::span<const float> got = result["C"].values<float>();
          if (std::equal(got.begin(), got.end(), want.begin(), want.end())) ++right;
        }
      });
    }
  }
  EXPECT_EQ(right, 20);
}

TEST_F(ApiProgram, IsReadFromAFile) {
  EXPECT_THAT(message_of([] { Program::load("/absent/x.ein"); }), HasSubstr("/absent/x.ein"));
  EXPECT_THAT(message_of([] { Program::load(std::string(5000, 'x')); }), HasSubstr("File name too long"));
  EXPECT_THAT(message_of([] { Program::load("/tmp"); }), HasSubstr("folder"));
  EXPECT_THAT(message_of([] { Program::load(EINREL_EXAMPLES "/matmul.tra"); }), HasSubstr("einrel explain"));
  const Program read = Program::load(EINREL_EXAMPLES "/matmul.ein", {{"i", 7}, {"j", 5}, {"k", 6}});
  const RunResult result = read.run({{"A", a}, {"B", b}});
  EXPECT_THAT(result["C"].values<float>(), equals(product(a, b)));
}

TEST(ApiProgramByPlan, FollowsAPlanThatWasWrittenDown) {
  const Program program = Program::parse(matmul);
  const std::string plan = program.plan({.sites = 4, .planners = {"sqrt"}});
  const Inputs inputs{{"A", random_like({7, 5}, 1)}, {"B", random_like({5, 6}, 2)}};
  const RunResult result = Program::parse(matmul).run(inputs, {.plan = plan});
  EXPECT_EQ(result.report.sites, 4);
  EXPECT_EQ(result.report.planner, "file");
  EXPECT_THAT(result["C"].values<float>(), equals(product(inputs.at("A").tensor(), inputs.at("B").tensor())));
  EXPECT_THAT(message_of([&] { program.run(inputs, {.sites = 4, .plan = plan}); }), HasSubstr("is a plan already"));
  EXPECT_THAT(message_of([&] { program.run(inputs, {.plan = "{}"}); }), HasSubstr("the option 'plan'"));
  EXPECT_THAT(program.html({.sites = 4}), HasSubstr("<html"));
}

TEST(ApiProgramStopped, StopsARunWhenItIsAskedTo) {
  const Program program = Program::parse("input A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]");
  const Inputs inputs{{"A", random_like({64, 64}, 1)}, {"B", random_like({64, 64}, 2)}};
  std::stop_source stop;
  const einrel::RunOptions whole{.stop = stop.get_token()};
  const einrel::RunOptions planned{.sites = 2, .stop = stop.get_token()};
  const auto is_right = equals(product(inputs.at("A").tensor(), inputs.at("B").tensor()));
  const Tensor before = program.run(inputs, whole)["C"];
  EXPECT_THAT(before.values<float>(), is_right);
  stop.request_stop();
  for (const einrel::RunOptions& options : {whole, planned})
    EXPECT_THAT(message_of<einrel::RunError>([&] { program.run(inputs, options); }), HasSubstr("was stopped"));
  const Tensor after = program.run(inputs)["C"];
  EXPECT_THAT(after.values<float>(), is_right);
}

TEST(ApiEinsum, ComputesWhatPlainLoopsDo) {
  const Tensor a = random_like({3, 4}, 1);
  const Tensor b = random_like({4, 2}, 2);
  const Tensor c = einrel::einsum("ij,jk->ik", {a, b});
  EXPECT_THAT(c.shape(), ElementsAre(3, 2));
  EXPECT_THAT(c.values<float>(), equals(product(a, b)));
  EXPECT_EQ(einrel::einsum("ij->", {a}, {.reduce = "max", .threads = 1}).at<float>({}),
            std::ranges::max(a.values<float>()));
  const Tensor distances = einrel::einsum("ik,jk->ij", {a, a}, {.join = "abs(x-y)", .reduce = "max"});
  EXPECT_EQ(distances.at<float>({1, 1}), 0);
  EXPECT_EQ(einrel::einsum("ij->ji", {a}).at<float>({3, 1}), a.at<float>({1, 3}));
}

TEST(ApiEinsum, PointsIntoSubscriptsThatAreWrong) {
  const Tensor a = random_like({3, 4}, 1);
  EXPECT_THAT(message_of([&] { einrel::einsum("ij,jk->iq", {a, a}); }), HasSubstr("^"));
  EXPECT_NE(message_of([&] { einrel::einsum("ij,jk", {a}); }), "");
  EXPECT_NE(message_of([&] { einrel::einsum("ij", {a}, {.reduce = "mxa"}); }), "");
  EXPECT_NE(message_of([&] { einrel::einsum("ij,jk", {a, a}); }), "");
}

/// y = W x + s, and then s is y.
constexpr const char* stepping =
    "dims i=6 j=5\n"
    "input W[i,j], x[j]\n"
    "state s[i] = 0\n"
    "y[i] = (sum[j] W[i,j] * x[j]) + s[i]\n"
    "next s[i] = y[i]\n"
    "output y\n";

TEST(Stepper, GivesWhatRunsOneAfterTheOtherGive) {
  const Program program = Program::parse(stepping);
  const Tensor w = random_like({6, 5}, 1);
  for (const std::optional<std::int64_t> sites : {std::optional<std::int64_t>(), std::optional<std::int64_t>(3)}) {
    einrel::Stepper steps = program.stepper({{"W", w}, {"x", random_like({5}, 0)}}, {"x"}, {.sites = sites});
    RunResult one;
    for (int step = 0; step < 4; ++step) {
      const Tensor x = random_like({5}, step);
      one = program.run({{"W", w}, {"x", x}},
                        {.sites = sites, .state = step == 0 ? std::nullopt : std::optional(one.state)});
      const RunResult result = step == 0 ? steps.step() : steps.step({{"x", x}});
      EXPECT_THAT(result["y"].values<float>(), testing::ElementsAreArray(one["y"].values<float>()));
      const einrel::State state = steps.state();
      EXPECT_EQ(state.steps_done, step + 1);
      EXPECT_THAT(state.tensors.at("s").values<float>(), testing::ElementsAreArray(one["y"].values<float>()));
    }
    const einrel::State before = steps.state();
    const std::vector<float> values(before.tensors.at("s").values<float>().begin(),
                                    before.tensors.at("s").values<float>().end());
    for (int step = 0; step < 3; ++step) steps.step();  // x as before
    EXPECT_THAT(before.tensors.at("s").values<float>(), testing::ElementsAreArray(values)) << "it is a copy";
    const RunResult more = program.run({{"W", w}, {"x", random_like({5}, 3)}}, {.steps = 3, .state = before});
    EXPECT_THAT(steps.state().tensors.at("s").values<float>(),
                testing::ElementsAreArray(more.state.tensors.at("s").values<float>()));
  }
}

/// The plan has W elsewhere than where it lies: only the first step moves it, and says so.
TEST(Stepper, ReportsOfEachStepWhatItMoves) {
  const Program program = Program::parse(stepping, {{"i", 60}, {"j", 50}});
  const Inputs inputs{{"W", random_like({60, 50}, 1)}, {"x", random_like({50}, 0)}};
  for (const char* const planner : {"eindecomp", "data", "kcut"}) {
    const einrel::ExplainOptions how{.sites = 3, .planners = {planner}, .steps = 1000, .fed = {"x"}};
    einrel::Stepper steps = program.stepper(inputs, {"x"}, {.sites = 3, .planner = planner, .plan = {}, .steps = 1000});
    const std::int64_t first = steps.step().report.bytes_moved;
    const std::int64_t second = steps.step().report.bytes_moved;
    EXPECT_EQ(second, steps.step().report.bytes_moved);
    const std::string plan = program.plan(how);
    const auto number = [&](const std::string& of, const std::string& name) {
      const std::size_t begin = plan.find("\"" + name + "\":", of.empty() ? 0 : plan.find("\"" + of + "\":"));
      return std::stoll(plan.substr(begin + name.size() + 3));
    };
    EXPECT_EQ(second, number("each_step", "bytes")) << planner;
    EXPECT_EQ(first - second, number("once", "bytes")) << planner;
  }
}

/// Every site has all of W once it is brought. Another program takes it from there.
TEST(Stepper, SaysWhereItBringsInputs) {
  const Program program = Program::parse(
      "dims i=60 j=50 k=40\n"
      "input W[i,j], x[k,j]\n"
      "state s[k,i] = 0\n"
      "y[k,i] = (sum[j] W[i,j] * x[k,j]) + s[k,i]\n"
      "next s[k,i] = y[k,i]\n"
      "output y\n");
  const Inputs inputs{{"W", random_like({60, 50}, 1)}, {"x", random_like({40, 50}, 0)}};
  einrel::Stepper steps = program.stepper(inputs, {"x"}, {.sites = 3, .planner = "data", .batch = "k", .plan = {}});
  const einrel::Placements lie = steps.placements();
  EXPECT_EQ(lie, (einrel::Placements{{"W", {{"copies", 3}}}}));
  EXPECT_EQ(lie, program.placements({.sites = 3, .planners = {"data"}, .batch = "k", .steps = 1000, .fed = {"x"}}));
  const Program other = Program::parse("dims i=60 j=50\ninput W[i,j]\nz[i] = max[j] W[i,j]\n");
  const RunResult there = other.run({{"W", inputs.at("W")}}, {.sites = 3, .placements = lie});
  const RunResult whole = other.run({{"W", inputs.at("W")}});
  EXPECT_THAT(there["z"].values<float>(), testing::ElementsAreArray(whole["z"].values<float>()));
  EXPECT_EQ(there.report.bytes_moved, 0);
  EXPECT_THAT(other.explain({.sites = 3, .placements = lie}), HasSubstr("on 3 sites, as is given"));
}

TEST(Stepper, ReadsInputsOnceThatStay) {
  const Program program = Program::parse(stepping);
  std::atomic<int> made = 0;
  const Input w = Input::made(
      einrel::DType::f32, {6, 5},
      [&](const std::vector<std::int64_t>& /*begin*/, const einrel::Shape& extents, std::span<std::byte> elements) {
        made += static_cast<int>(extents[0] * extents[1]);
        std::fill(elements.begin(), elements.end(), std::byte{0});
      });
  einrel::Stepper steps = program.stepper({{"W", w}, {"x", random_like({5}, 0)}}, {"x"}, {.sites = 2});
  for (int step = 0; step < 4; ++step) steps.step();
  EXPECT_EQ(made, 30);
  einrel::Stepper fed = program.stepper({{"W", w}, {"x", random_like({5}, 0)}}, {"x", "W"}, {.sites = 2});
  for (int step = 0; step < 4; ++step) fed.step({{"W", w}});
  EXPECT_EQ(made, 30 + 4 * 30);
}

/// Also where states lie in memory that is written again, as within a limit of memory.
TEST(Stepper, GivesValuesThatStay) {
  for (const char* const written : {"output x\n", "output next_x\n", "y[i] = x[i]\noutput x, y, next_x\n"}) {
    for (const std::optional<std::int64_t> memory :
         {std::optional<std::int64_t>(), std::optional<std::int64_t>(200'000'000)}) {
      SCOPED_TRACE(written);
      const Program program =
          Program::parse(std::string("dims i=4000\nstate x[i] = 1.0\nnext x[i] = 2 * x[i]\n") + written);
      einrel::Stepper steps = program.stepper({}, {}, {.memory = memory});
      std::vector<RunResult> results;
      for (int step = 0; step < 5; ++step) results.push_back(steps.step());
      for (std::size_t step = 0; step < results.size(); ++step) {
        for (const auto& [name, tensor] : results[step].outputs) {
          const float wanted = std::ldexp(1.0F, static_cast<int>(step) + (name == "next_x" ? 1 : 0));
          EXPECT_THAT(tensor.values<float>(), testing::Each(wanted)) << name << " of step " << step;
        }
      }
    }
  }
}

TEST(Stepper, SaysAfterWhichStepUntilHolds) {
  einrel::Stepper steps = Program::parse("state x[] = 1.0\nnext x[] = 2 * x[]\nuntil x[] > 5\noutput x\n").stepper({});
  std::vector<bool> last;
  for (int step = 0; step < 4; ++step) last.push_back(steps.step().report.is_last);
  EXPECT_EQ(last, (std::vector<bool>{false, false, false, true}));  // of x = 8
}

/// `where` chooses by a position: kernels that compute each range by itself may not leave checks out.
TEST(Program, ChecksPositionsThatAreNotChosen) {
  const std::vector<std::int32_t> outside{0, 1, 2, 3, 4, 9};
  for (const char* const body :
       {"where(s < 3, in_range_at(T[s], s, T[6], E[5]), U[s])", "where(s >= 3, U[s], in_range_at(T[s], s, T[6], E[5]))",
        "where(U[s] < 3, in_range_at(T[s], s, T[6], E[5]), U[s])"}) {
    const Program program = Program::parse(std::string("input T[s], U[s] : i32\nZ[s] = ") + body + "\noutput Z\n");
    EXPECT_THAT(message_of<einrel::RunError>([&] {
                  program.run({{"T", Tensor({6}, outside)}, {"U", Tensor({6}, outside)}});
                }),
                HasSubstr("T[5] is 9"))
        << body;
  }
}

TEST(Stepper, SaysWhatIsWrong) {
  const Program program = Program::parse(stepping);
  const Inputs inputs{{"W", random_like({6, 5}, 1)}, {"x", random_like({5}, 0)}};
  EXPECT_THAT(message_of([&] {
                Program::parse(matmul).stepper({{"A", random_like({7, 5}, 0)}, {"B", random_like({5, 6}, 0)}});
              }),
              HasSubstr("programs with state"));
  EXPECT_THAT(message_of([&] {
                program.stepper({{"x", random_like({5}, 0)}}, {"x"});
              }),
              HasSubstr("missing input W[6,5]"));
  EXPECT_THAT(message_of([&] { program.stepper(inputs, {"X"}); }),
              HasSubstr("'X' is to be fed to each step, and no input is given by that name"));
  einrel::Stepper steps = program.stepper(inputs, {"x"});
  EXPECT_THAT(message_of([&] { steps.state(); }), HasSubstr("before the first step"));
  steps.step();
  EXPECT_THAT(message_of([&] {
                steps.step({{"W", random_like({6, 5}, 1)}});
              }),
              HasSubstr("the input 'W' stays from step to step: name it among the inputs that are fed"));
  EXPECT_THAT(message_of([&] { steps.step({{"x", random_like({4}, 1)}}); }), HasSubstr("x"));
  EXPECT_THAT(message_of([&] { steps.step(); }), HasSubstr("a step has failed, so there is none after it"));
  einrel::Stepper moved = std::move(steps);
  EXPECT_THAT(message_of([&] { steps.step(); }), HasSubstr("moved from"));  // NOLINT(bugprone-use-after-move)
}

}  // namespace
