#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <string>

#include "run/choose_plan.h"
#include "run/compile.h"
#include "run/forecast_memory.h"
#include "run/kernels.h"
#include "run/random_input.h"
#include "run/scalars.h"
#include "run/session.h"
#include "run/summary.h"
#include "support/program.h"
#include "support/run_whole.h"

namespace einrel {
namespace {

using testing::HasSubstr;

std::int64_t peak_of(const std::string& text, const LayoutBindings& layouts = {}) {
  return forecast_memory(whole_tasks(compile("test.ein", graph_of(text))), layouts).bytes;
}

std::string scalar_error(const std::string& text, const ScalarBindings& given) {
  try {
    bind_scalars(graph_of(text).scalars, given);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

Tensor run_text(const std::string& text, const TensorBindings& inputs) {
  return test::run_whole(compile("test.ein", graph_of(text)), inputs, {}).at("Z");
}

TEST(MemoryForecast, CountsInputsOutputsAndLiveIntermediates) {
  // X, A, B and C take 400 bytes each; while C is computed A is gone, but B is needed. Reversed, they cannot run
  // together.
  EXPECT_EQ(peak_of("dims i=100\ninput X[i]\nA[i] = X[i] + 1\nB[i] = A[99-i] + 1\nC[i] = B[99-i] + 1\n"), 1200);
  // Here A is needed to the end.
  EXPECT_EQ(peak_of("dims i=100\ninput X[i]\nA[i] = X[i] + 1\nB[i] = A[99-i] + 1\nC[i] = B[99-i] + A[i]\n"), 1600);
  EXPECT_EQ(peak_of("dims i=100\ninput X[i]\nA[i] = X[i] + 1\nB[i] = X[i] + 2\n"), 1200);
}

TEST(MemoryForecast, CountsNoTensorForWhatLivesInsideAFusion) {
  const std::string chain = "dims i=100\ninput X[i]\nA[i] = X[i] + 1\nB[i] = A[i] + 1\nC[i] = B[i] + A[i]\n";
  EXPECT_EQ(peak_of(chain), 800);
  EXPECT_EQ(peak_of(chain + "output A, C\n"), 1200);
  EXPECT_EQ(peak_of(chain + "D[i] = A[99-i]\noutput C, D\n"), 1600);
}

TEST(MemoryForecast, KnowsThatAViewSharesItsOperandAndKeepsItAlive) {
  const std::string view = "dims i=10 j=10\ninput X[i,j]\nA[i,j] = X[i,j] + 1\nV[(i j)] = view A[i,j]\n";
  EXPECT_EQ(peak_of(view + "C[k] = V[k] + 1\n"), 1200);
  EXPECT_EQ(peak_of(view + "C[k] = V[k] + 1\nD[k] = C[99-k] + V[k]\n"), 1600);
}

TEST(MemoryForecast, CountsAnOutputThatIsAViewByItself) {
  const std::string view = "dims i=10 j=10\ninput X[i,j]\nV[(i j)] = view X[i,j]\n";
  EXPECT_EQ(peak_of(view), 800);
  EXPECT_EQ(peak_of(view + "W[j,i] = view X[i,j]\noutput V, W\n"), 1200);
}

TEST(MemoryForecast, CountsTheCopyOfAnInputWhoseElementsLieScatteredForAView) {
  const std::string program =
      "dims i=10 j=10\ninput X[i,j]\nV[(i j)] = view X[i,j]\nR[] = sum[k] V[k]\nS[] = max[k] V[k]\noutput R, S\n";
  EXPECT_LT(peak_of(program), 450);
  EXPECT_GT(peak_of(program, {{"X", {1, 10}}}), 800);
  EXPECT_LT(peak_of(program, {{"X", {1, 10}}}), 850);
}

TEST(MemoryForecast, NamesTheTensorWhoseBytesAreBeyondCounting) {
  try {
    peak_of("dims i=922337203685477580\ninput X[i] : f64\nY[i] = X[i] + 1\n");
    FAIL() << "2^63 bytes are too many";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("while 'Y' is computed"));
  }
}

TEST(MemoryCheck, RefusesWhatCannotFitAndNamesTheVertex) {
  const Compiled compiled = compile("test.ein", graph_of("dims i=100000000000000\ninput X[i]\nY[i] = X[i] + 1\n"));
  try {
    check_room(
        {whole_tasks(compiled), 1}, {}, {}, [](const StoredRelation&) { return true; }, "--memory");
    FAIL() << "no machine has 400 TB";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("computing 'Y' needs 400 TB"));
  }
}

TEST(Run, ComputesOutputsAndTellsProgress) {
  const Compiled compiled = compile("test.ein", graph_of("dims i=3\ninput X[i]\nA[i] = X[i] * 2\nZ[] = sum[i] A[i]\n"));
  const PlannedTasks tasks = whole_tasks(compiled);
  std::map<std::string, Tensor> outputs = output_tensors(tasks.graph);
  Session session(tasks, {1, {}});
  RunProgress last;
  session.step({{"X", tensor_of(DType::f32, make_shape({3}), {1, 2, 3})}}, writers_to(outputs, tasks.graph), {},
               {.listener = [&](const RunProgress& progress) { last = progress; }});
  EXPECT_EQ(values_of(outputs.at("Z")), std::vector<double>{12});
  EXPECT_EQ(last.done, last.total);
  EXPECT_EQ(last.flops_done, 6);
  EXPECT_EQ(last.flops_total, 6);
}

TEST(Run, SumsOverNothingToZeroWhateverTheFactorsAre) {
  const Tensor z = run_text("dims i=0\ninput X[i], Y[i]\nZ[] = sum[i] X[i] * Y[i] * inf\n",
                            {{"X", Tensor(DType::f32, make_shape({0}))}, {"Y", Tensor(DType::f32, make_shape({0}))}});
  EXPECT_EQ(values_of(z), std::vector<double>{0});
}

TEST(Run, AppliesAScalingFactorBeforeTheSumCanOverflow) {
  const Tensor z = run_text("dims i=4\ninput X[i], Y[i]\nZ[] = sum[i] X[i] * (Y[i] * 1e-30)\n",
                            {{"X", tensor_of(DType::f32, make_shape({4}), {1e19, 1e19, 1e19, 1e19})},
                             {"Y", tensor_of(DType::f32, make_shape({4}), {3e19, 3e19, 3e19, 3e19})}});
  EXPECT_NEAR(values_of(z)[0], 1.2e9, 1e3);
}

TEST(Compile, KeepsAProductWholeWhoseIntermediatesWouldBeBeyondCounting) {
  const Compiled compiled =
      compile("test.ein", graph_of("dims a=3000000000 b=3000000000 c=3000000000\ninput X[a], Y[b], W[c]\n"
                                   "Z[a] = sum[b,c] X[a] * Y[b] * sq(W[c] + X[a] + Y[b])\n"));
  verify(compiled.graph);
}

TEST(Compile, SurvivesFlopsBeyondTheRangeOfDoubles) {
  std::string dims = "dims";
  std::string labels;
  std::string sum;
  for (char name = 'a'; name <= 'r'; ++name) {
    dims += std::string(" ") + name + "=4000000000000000000";
    labels += (labels.empty() ? "" : ",") + std::string(1, name);
    sum += (sum.empty() ? "" : "+") + std::string(1, name);
  }
  const Compiled compiled =
      compile("test.ein", graph_of(dims + "\nZ[] = sum[" + labels + "] (" + sum + ")*(" + sum + ")*(" + sum + ")\n"));
  verify(compiled.graph);
}

TEST(ChosenKernels, NameWhatCopiesAViewAndNothingForOneThatKernelsSeeThrough) {
  const Compiled compiled =
      compile("test.ein", graph_of("dims i=10 j=10\ninput X[i,j]\nS[(i j)] = view X[i,j]\nR[] = sum[k] S[k]\n"
                                   "C[(j i)] = view X[i,j]\nO[(i j)] = view X[i,j]\noutput R, C, O\n"));
  const std::vector<std::vector<KernelCall>> kernels = kernel_calls(compiled.graph, whole_tasks(compiled));
  ASSERT_EQ(kernels.size(), 5U);
  EXPECT_TRUE(kernels[1].empty());
  for (const std::size_t copied : {std::size_t{3}, std::size_t{4}}) {  // scattered elements; an output
    ASSERT_EQ(kernels[copied].size(), 1U);
    EXPECT_EQ(kernels[copied].front().kernel, "copy");
  }
}

TEST(Scalars, AreCheckedTogether) {
  const std::string program = "dims i=2\nscalar a, b = 2\ninput X[i] : i64\nY[i] = X[i] * a + X[i] * b\n";
  EXPECT_EQ(scalar_error(program, {{"a", 3}}), "");
  const std::string error = scalar_error(program, {{"b", 0.5}, {"bb", 1}});
  EXPECT_THAT(error, HasSubstr("scalar 'a' has no value"));
  EXPECT_THAT(error, HasSubstr("scalar 'b' meets integers: 0.5 is no i64"));
  EXPECT_THAT(error, HasSubstr("no scalar 'bb'; did you mean 'b'?"));
  EXPECT_THAT(scalar_error(program, {{"a", 1e300}}), HasSubstr("is no i64"));
  EXPECT_THAT(scalar_error(program, {{"a", std::numeric_limits<double>::infinity()}}), HasSubstr("is no i64"));
}

std::string line_of(const std::string& name, const Tensor& tensor) {
  return summary_line(name, tensor.dtype(), tensor.shape(), summarize(tensor));
}

TEST(Summary, OfValuesNanAndNothing) {
  const Summary summary = summarize(tensor_of(DType::i32, make_shape({4}), {3, -1, 2, 4}));
  EXPECT_EQ(summary.min, -1);
  EXPECT_EQ(summary.max, 4);
  EXPECT_EQ(summary.mean, 2);
  EXPECT_EQ(summary.sum, 8);
  const Summary broken = summarize(tensor_of(DType::f32, make_shape({3}), {1, std::nan(""), 2}));
  EXPECT_TRUE(std::isnan(broken.min) && std::isnan(broken.max) && std::isnan(broken.sum));
  EXPECT_TRUE(std::isnan(summarize(Tensor(DType::f32, make_shape({0}))).max));
  EXPECT_EQ(line_of("Z", tensor_of(DType::f32, {}, {-std::nan("")})), "Z  f32  nan");
  EXPECT_EQ(line_of("Z", tensor_of(DType::f32, {}, {-1.5})), "Z  f32  -1.5");
  EXPECT_EQ(line_of("n", tensor_of(DType::i64, {}, {12345678})), "n  i64  12345678");
  EXPECT_EQ(line_of("Z", tensor_of(DType::f32, make_shape({1}), {std::nan("")})),
            "Z  f32 (1,)  min nan  max nan  mean nan  sum nan");
}

TEST(Summary, OfAScalarHasTheFewestDigitsThatReadBackAsIt) {
  const auto text_of = [](DType dtype, double value) {
    return scalar_text(dtype, summarize(tensor_of(dtype, {}, {value})));
  };
  EXPECT_EQ(text_of(DType::f64, 0.1), "0.1");
  EXPECT_EQ(text_of(DType::f32, 0.1), "0.1");
  EXPECT_EQ(text_of(DType::f64, 400), "400");
  EXPECT_EQ(text_of(DType::f16, 0.1), "0.1");
  EXPECT_EQ(text_of(DType::boolean, 1), "1");
  EXPECT_EQ(text_of(DType::f64, -std::numeric_limits<double>::infinity()), "-inf");
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    std::size_t most = 0;
    for (const double value : values_of(random_tensor(7, "X", DType::f64, make_shape({200})))) {
      for (const double scale : {1.0, 1e-3, 3e4}) {
        const Tensor scalar = tensor_of(dtype, {}, {value * scale});
        const std::string text = scalar_text(dtype, summarize(scalar));
        EXPECT_EQ(values_of(tensor_of(dtype, {}, {std::stod(text)})), values_of(scalar)) << text;
        most = std::max(most, static_cast<std::size_t>(std::count_if(text.begin(), text.end(),
                                                                     [](unsigned char c) { return std::isdigit(c); })));
      }
    }
    // As many as a type may need, and the zeros of 0.000x.
    const std::map<DType, std::size_t> needed{{DType::f64, 17}, {DType::f32, 9}, {DType::bf16, 4}, {DType::f16, 5}};
    EXPECT_LE(most, needed.at(dtype) + 5) << name_of(dtype);
  }
  for (const std::int64_t value : {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
                                   (std::int64_t{1} << 53) + 1, std::int64_t{0}}) {
    const Tensor scalar(DType::i64, {}, {}, std::as_bytes(std::span(&value, 1)).data(), nullptr);
    EXPECT_EQ(scalar_text(DType::i64, summarize(scalar)), std::to_string(value));
  }
}

TEST(Summary, OfManyElementsInAnyLayout) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const std::int64_t rows : {1, 7, 8, 33, 1025}) {
    const Tensor stored = random_tensor(1, "X", DType::f32, make_shape({5, rows}));
    const std::vector<double> values = values_of(stored.permuted({1, 0}));
    const Tensor row_major = tensor_of(DType::f32, make_shape({rows, 5}), values);
    const Summary summary = summarize(row_major);
    EXPECT_EQ(summary.min, *std::min_element(values.begin(), values.end()));
    EXPECT_EQ(summary.max, *std::max_element(values.begin(), values.end()));
    EXPECT_NEAR(summary.sum, std::accumulate(values.begin(), values.end(), 0.0), 1e-10);
    EXPECT_EQ(summarize(stored.permuted({1, 0})).sum, summary.sum) << "the same bits";
    for (const std::size_t at : {std::size_t{0}, values.size() / 2, values.size() - 1}) {
      std::vector<double> special = values;
      special[at] = infinity;
      const Summary one = summarize(tensor_of(DType::f32, make_shape({rows, 5}), special));
      EXPECT_EQ(one.max, infinity);
      EXPECT_EQ(one.min, *std::min_element(special.begin(), special.end()));
      special[(at + 3) % special.size()] = -infinity;
      const Summary both = summarize(tensor_of(DType::f32, make_shape({rows, 5}), special));
      EXPECT_TRUE(both.min == -infinity && both.max == infinity && std::isnan(both.sum));
      special[(at + 4) % special.size()] = std::nan("");
      const Summary none = summarize(tensor_of(DType::f32, make_shape({rows, 5}), special));
      EXPECT_TRUE(std::isnan(none.min) && std::isnan(none.max));
    }
  }
}

TEST(Summary, OfEveryType) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::boolean}) {
    const Tensor tensor = random_tensor(3, "X", dtype, make_shape({9, 1100}));
    const std::vector<double> values = values_of(tensor);
    const Summary summary = summarize(tensor);
    EXPECT_EQ(summary.min, *std::min_element(values.begin(), values.end())) << name_of(dtype);
    EXPECT_EQ(summary.max, *std::max_element(values.begin(), values.end())) << name_of(dtype);
    EXPECT_NEAR(summary.sum, std::accumulate(values.begin(), values.end(), 0.0), 1e-8) << name_of(dtype);
  }
}

TEST(RandomTensor, DependsOnSeedNameAndPositionOnly) {
  const std::vector<double> longer = values_of(random_tensor(1, "X", DType::f64, make_shape({100})));
  const std::vector<double> shorter = values_of(random_tensor(1, "X", DType::f64, make_shape({5, 10})));
  EXPECT_EQ(std::vector<double>(longer.begin(), longer.begin() + 50), shorter);
  EXPECT_NE(values_of(random_tensor(2, "X", DType::f64, make_shape({100}))), longer);
  EXPECT_NE(values_of(random_tensor(1, "Y", DType::f64, make_shape({100}))), longer);
}

TEST(RandomTensor, IsUniformInsideItsRange) {
  double sum = 0;
  double squares = 0;
  for (const double value : values_of(random_tensor(7, "X", DType::f32, make_shape({100000})))) {
    ASSERT_LT(std::fabs(value), 1);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 100000, 0, 0.01);  // 5 standard errors of the mean of U(-1,1)
  EXPECT_NEAR(squares / 100000, 1.0 / 3, 0.01);
  for (const double value : values_of(random_tensor(7, "I", DType::i32, make_shape({1000}))))
    ASSERT_LE(std::fabs(value), 8);
}

}  // namespace
}  // namespace einrel
