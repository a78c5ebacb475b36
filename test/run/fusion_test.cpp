#include "kernel/fusion/fusion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "kernel/evaluate.h"
#include "kernel/fusion/softmax.h"
#include "run/compile.h"
#include "run/kernels.h"
#include "run/random_input.h"
#include "run/scalars.h"
#include "run/session.h"
#include "support/compare.h"
#include "support/program.h"
#include "support/rounds.h"
#include "support/run_whole.h"

namespace einrel::test {
namespace {

/// The members of every fusion, by name.
std::vector<std::vector<std::string>> fusions_of(const std::string& text) {
  const EinGraph graph = graph_of(text);
  std::vector<std::vector<std::string>> names;
  for (const Fusion& fusion : find_fusions(graph)) {
    names.emplace_back();
    for (const std::size_t member : fusion.members) names.back().push_back(graph.vertices[member].name);
  }
  return names;
}

/// Runs the program on random inputs with each number of threads and compares every output with the reference, to 16
/// units in the last place of the largest value.
void expect_right(const std::string& text, const std::vector<std::size_t>& numbers_of_threads) {
  const Compiled compiled = compile("test.ein", graph_of(text));
  TensorBindings inputs;
  for (const Vertex& vertex : compiled.graph.vertices) {
    if (std::holds_alternative<Input>(vertex.op)) {
      inputs[vertex.name] = random_tensor(1, vertex.name, vertex.dtype, vertex.bound);
    }
  }
  const ScalarBindings scalars = bind_scalars(compiled.graph.scalars, {});
  const std::vector<Tensor> want = evaluate_reference(compiled.graph, inputs, scalars);
  for (const std::size_t threads : numbers_of_threads) {
    const std::map<std::string, Tensor> got = run_whole(compiled, inputs, scalars, threads);
    for (std::size_t o = 0; o < want.size(); ++o) {
      const std::vector<double> values = values_of(want[o]);
      double largest = 0;
      for (const double value : values) largest = std::max(largest, std::abs(value));
      const std::vector<double> allowed(values.size(), 16 * epsilon(want[o].dtype()) * largest);
      EXPECT_TRUE(agree(got.at(compiled.graph[compiled.graph.outputs[o]].name), want[o], allowed)) << text;
    }
  }
}

using Names = std::vector<std::vector<std::string>>;

const char* const normalised =
    "dims i=301 j=777\ninput X[i,j], G[j]\nM[i] = mean[j] X[i,j]\nC[i,j] = X[i,j] - M[i]\nV[i] = mean[j] sq(C[i,j])\n"
    "Z[i,j] = C[i,j] * rsqrt(V[i] + 1e-5) * G[j]\noutput Z\n";

TEST(Fusions, HoldWhatWorksInProportionToItsData) {
  EXPECT_EQ(fusions_of(normalised), (Names{{"M", "C", "V", "Z"}}));
  EXPECT_EQ(fusions_of("dims i=9\ninput X[i]\nA[i] = X[i] + 1\nB[i] = exp(A[i])\n"), (Names{{"A", "B"}}));
}

TEST(Fusions, LeaveMatrixMultiplicationsOut) {
  EXPECT_EQ(
      fusions_of("dims i=90 j=90 k=90\ninput X[i,j], Y[j,k]\nA[i,k] = sum[j] X[i,j] * Y[j,k]\nB[i,k] = relu(A[i,k])\n"),
      (Names{}));
}

/// A product whose result, of `rows` x `columns` in f32, is read by an element-wise vertex.
std::string step_down(int rows, int columns, int inner, const std::string& more = "") {
  return fmt::format(
      "dims b={} f={} h={}\ninput X[b,f], D[b,h], W[f,h]\nG[f,h] = sum[b] X[b,f] * D[b,h]\n"
      "V[f,h] = W[f,h] - 0.1 * G[f,h]\n{}",
      inner, rows, columns, more.empty() ? "output V\n" : more);
}

TEST(Fusions, HoldProductsThatTakeNotMuchLongerThanTheirResultToMemoryAndBack) {
  EXPECT_EQ(fusions_of(step_down(20000, 300, 100)), (Names{{"G", "V"}}));
  EXPECT_EQ(fusions_of(step_down(4000, 1000, 30)), (Names{{"G", "V"}}));
  const std::string scores =
      "dims h=64 s=512 t=512 d=16\ninput Q[h,s,d], K[h,t,d]\nL[h,s,t] = sum[d] Q[h,s,d] * K[h,t,d]\n";
  EXPECT_EQ(fusions_of(scores + "P[h,s,t] = softmax[t](L[h,s,t])\noutput P\n").at(0).front(), "L");
  const std::string two = "dims i=4000 j=1000 k=30\ninput X[i,k], Y[k,j]\nA[i,j] = sum[k] X[i,k] * Y[k,j]\n";
  EXPECT_EQ(fusions_of(two + "B[i,j] = relu(A[i,j])\nC[i,j] = exp(B[i,j])\noutput C\n"), (Names{{"A", "B", "C"}}));
  EXPECT_EQ(fusions_of(two + "B[i,j] = sum[k] sq(X[i,k] - Y[k,j])\nC[i,j] = A[i,j] - exp(B[i,j])\noutput C\n"),
            (Names{{"A", "B", "C"}}));
  // The result stays in a cache, or takes long.
  EXPECT_EQ(fusions_of(step_down(2000, 300, 100)), (Names{}));
  EXPECT_EQ(fusions_of(step_down(20000, 300, 400)), (Names{}));
  // What every slab would read again stays in no cache, or slabs would be short pieces of long rows.
  EXPECT_EQ(fusions_of(step_down(4000, 4000, 100)), (Names{}));
  EXPECT_EQ(fusions_of(step_down(300, 20000, 100)), (Names{}));
  // Too few slabs for several threads.
  EXPECT_EQ(fusions_of("dims b=3 i=1000 j=1000 k=200\ninput X[b,i,k], Y[b,k,j]\nP[b,i,j] = sum[k] X[b,i,k] * Y[b,k,j]\n"
                       "R[b,j] = max[i] P[b,i,j]\nS[b,i] = max[j] P[b,i,j]\nZ[b,i,j] = P[b,i,j] - R[b,j] - S[b,i]\n"
                       "output Z\n"),
            (Names{{"R", "S", "Z"}}));
  // What it is computed from would have to stay until then, and is more.
  EXPECT_EQ(fusions_of("dims i=80000 k=250 j=20\ninput X[i,k], Y[k,j]\nA[i,k] = exp(X[i,k])\n"
                       "P[i,j] = sum[k] A[i,k] * Y[k,j]\nZ[i,j] = relu(P[i,j])\noutput Z\n"),
            (Names{}));
  // Others read it, all of it, or it is wanted.
  EXPECT_EQ(fusions_of(step_down(20000, 300, 100, "output V, G\n")), (Names{}));
  EXPECT_EQ(fusions_of(step_down(20000, 300, 100, "S[f] = sum[h] V[f,h]\nT[h] = sum[f] G[f,h]\noutput S, T\n")),
            (Names{{"V", "S"}}));
  EXPECT_EQ(fusions_of(step_down(20000, 300, 100, "M[] = max[f,h] G[f,h]\nU[f,h] = G[f,h] / M[]\noutput U\n")),
            (Names{}));
}

TEST(Fusions, SayWhatComputesASlabOfAProduct) {
  const Compiled compiled = compile("test.ein", graph_of(step_down(20000, 300, 100)));
  const auto kernels = kernel_calls(compiled.graph, whole_tasks(compiled));
  ASSERT_EQ(kernels.at(3).size(), 1U);
  const KernelCall* const product = &kernels.at(3).front();
  EXPECT_NE(product->path.find("slab by slab"), std::string::npos) << product->path;
  EXPECT_EQ(product->together, std::vector<std::string>{"V"});
  const auto is_chosen = [&](const Considered& one) { return one.kernel == product->kernel; };
  const auto chosen = std::find_if(product->considered.begin(), product->considered.end(), is_chosen);
  ASSERT_NE(chosen, product->considered.end());
  EXPECT_DOUBLE_EQ(std::get<double>(chosen->outcome), product->seconds);
  EXPECT_EQ(kernels.at(4).front().path.find("slab by slab"), std::string::npos);
}

TEST(Fusions, OfProductsKeepTheBoundOfAWorkspace) {
  for (const std::string& text : {step_down(20000, 300, 100), step_down(60000, 60, 200), step_down(4000, 1000, 30)}) {
    const std::vector<Fusion> fusions = find_fusions(graph_of(text));
    ASSERT_EQ(fusions.size(), 1U) << text;
    std::vector<ArrayLayout> operands;
    for (std::size_t v = 0; v < fusions[0].operands.size(); ++v) {
      const Vertex& operand = fusions[0].program.vertices[v];
      operands.push_back(row_major_layout(operand.dtype, operand.bound));
    }
    const PreparedKernel kernel = prepare_fusion(fusions[0], operands, {});
    EXPECT_LE(kernel.own_bytes, most_workspace_bytes) << text;
    EXPECT_GE(kernel.stages.at(0).parts, 8) << text;
  }
}

TEST(Fusions, NeedOneLabelThatAllKeepInPlace) {
  EXPECT_EQ(fusions_of("dims i=9 j=9\ninput X[i,j]\nA[i] = sum[j] X[i,j]\nB[] = sum[i] A[i]\n"), (Names{}));
  EXPECT_EQ(fusions_of("dims i=9\ninput X[i]\nA[i] = X[i] + 1\nB[i] = A[8-i]\n"), (Names{}));
  EXPECT_EQ(fusions_of("dims i=9 j=9\ninput X[i,j]\nA[i,j] = X[i,j] + 1\nB[j,i] = A[i,j] + A[j,i]\n"), (Names{}));
  EXPECT_EQ(fusions_of("dims i=9 j=9\ninput X[i,j]\nA[i,j] = X[i,j] + 1\nB[j,i] = A[i,j] * 2\n"), (Names{{"A", "B"}}));
}

TEST(Fusions, AreNotCutAlongALabelWhoseValueCounts) {
  EXPECT_EQ(fusions_of("dims i=9\ninput X[i]\nA[i] = X[i] + i\nB[i] = A[i] * 2\n"), (Names{}));
  const EinGraph graph =
      graph_of("dims s=9 t=9\ninput X[s,t]\nA[s,t] = where(t < 4, X[s,t], 0)\nB[s,t] = A[s,t] * 2\n");
  const std::vector<Fusion> fusions = find_fusions(graph);
  ASSERT_EQ(fusions.size(), 1U);
  EXPECT_EQ(fusions[0].cuts.at(0).back(), 0U);
}

TEST(Fusions, AreNotCutAlongAWindowWithPadding) {
  const std::string blur = "B[y,x] = pad(X[y-1,x], 0) + X[y,x]\nC[y,x] = B[y,x] * 2\n";
  const std::vector<Fusion> fusions = find_fusions(graph_of("dims y=9 x=9\ninput X[y,x]\n" + blur));
  ASSERT_EQ(fusions.size(), 1U);
  EXPECT_EQ(fusions[0].cuts.at(0).back(), 1U);
}

TEST(Fusions, AreCutAlongSeveralLabelsWhereOnePositionIsTooMuchForTheCache) {
  const std::vector<Fusion> fusions =
      find_fusions(graph_of("dims b=2 h=3 s=201 t=700\ninput X[b,h,s,t]\nZ[b,h,s,t] = softmax[t](X[b,h,s,t])\n"));
  ASSERT_EQ(fusions.size(), 1U);
  ASSERT_EQ(fusions[0].cuts.size(), 3U);
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(fusions[0].cuts[c].back(), c);
}

TEST(Fusions, AreNotCutAlongALabelThatReadsOnlySomeOfAPaddedOperand) {
  for (const std::string extents : {"n=10 i=5", "n=5 i=10"}) {
    const std::string text =
        "dims " + extents + "\ninput X[n]\nA[n] = X[n] * 2\nB[i] = pad(A[i], 0) + 1\noutput A, B\n";
    EXPECT_EQ(fusions_of(text), (Names{}));
    expect_right(text, {1});
  }
}

TEST(Fusions, RunWhereTheLastMemberStandsAndSoNotAroundWhatDependsOnThem) {
  // S needs all of A, and B needs S.
  EXPECT_EQ(
      fusions_of("dims i=9\ninput X[i]\nA[i] = X[i] + 1\nS[] = sum[i] A[i]\nB[i] = A[i] / S[]\nC[i] = B[i] + 1\n"),
      (Names{{"B", "C"}}));
}

TEST(Fusions, ShareWhatIsCostly) {
  const EinGraph graph = graph_of("dims i=9 j=9\ninput X[i,j]\nZ[i,j] = softmax[j](X[i,j])\n");
  const std::vector<Fusion> fusions = find_fusions(graph);
  ASSERT_EQ(fusions.size(), 1U);
  std::size_t exponentials = 0;
  for (const Vertex& vertex : fusions[0].program.vertices) {
    const EinSum* const einsum = einsum_of(vertex);
    if (einsum == nullptr) continue;
    for (const ScalarStep& step : einsum->body.steps) {
      const auto* const unary = std::get_if<ApplyUnary>(&step.op);
      exponentials += unary != nullptr && unary->function == UnaryFunction::exp ? 1U : 0U;
    }
  }
  EXPECT_EQ(exponentials, 1U);
}

std::size_t softmaxes_in(const std::string& text) {
  std::size_t count = 0;
  for (const Fusion& fusion : find_fusions(graph_of(text))) count += find_softmaxes(fusion.program).size();
  return count;
}

TEST(Fusions, ComputeASoftmaxAtOnceWhereNobodyReadsWhatLiesInside) {
  const std::string dims = "dims i=90 j=80 k=7\ninput X[i,j]\n";
  const std::string by_hand = "M[i] = max[j] X[i,j]\nE[i,j] = exp(X[i,j] - M[i])\nS[i] = sum[j] E[i,j]\n";
  EXPECT_EQ(softmaxes_in(dims + "Z[i,j] = softmax[j](X[i,j])\n"), 1U);
  EXPECT_EQ(softmaxes_in(dims + "Y[i,j] = X[i,j] * 2\nZ[i,j] = softmax[j](Y[i,j])\n"), 1U);
  EXPECT_EQ(softmaxes_in(dims + by_hand + "Z[i,j] = E[i,j] / S[i]\noutput Z\n"), 1U);
  EXPECT_EQ(softmaxes_in(dims + by_hand + "Z[i,j] = E[i,j] / S[i]\noutput Z, S\n"), 0U);
  EXPECT_EQ(softmaxes_in(dims + by_hand + "Z[i,j] = E[i,j] / S[i] + M[i]\noutput Z\n"), 0U);
  EXPECT_EQ(softmaxes_in(dims + by_hand + "Z[i,j] = E[i,j] / S[i]\nY[i,j] = E[i,j] + 1\noutput Z, Y\n"), 0U);
  EXPECT_EQ(softmaxes_in(dims + by_hand + "Z[i,j] = S[i] / E[i,j]\noutput Z\n"), 0U);
  // The scores are shared between the maximum and the exponentials, whatever they are.
  EXPECT_EQ(softmaxes_in(dims + "Z[i,j] = softmax[j](X[i,j] * 2)\n"), 1U);
  EXPECT_EQ(softmaxes_in("dims b=9 s=8 t=8\ninput X[b,s,t]\nZ[b,s,t] = softmax[t](where(t <= s, X[b,s,t], -inf))\n"),
            1U);
  EXPECT_EQ(softmaxes_in(dims + "Z[j,i] = softmax[j](X[i,j])\n"), 0U);
  EXPECT_EQ(softmaxes_in(dims + "Z[i,j] = softmax[i](X[i,j])\n"), 0U);
}

TEST(Fusions, ShareCheapScoresForASoftmaxOnly) {
  const std::string text =
      "dims i=90 j=80\ninput X[i,j]\nM[i] = max[j] X[i,j] * 2\nS[i] = sum[j] exp(X[i,j] * 2 - M[i])\n";
  const std::vector<Fusion> alone = find_fusions(graph_of(text + "output S\n"));
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_EQ(alone[0].program.vertices.size(), 3U);
  const std::vector<Fusion> all = find_fusions(graph_of(text + "Z[i,j] = exp(X[i,j] * 2 - M[i]) / S[i]\noutput Z\n"));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].program.vertices.size(), 6U);  // with the scores and their exponentials
}

TEST(Fusions, SayWhichSoftmaxIsComputedRowByRow) {
  const auto said_of = [](const Strides& strides) {
    const Compiled compiled =
        compile("test.ein", graph_of("dims i=90 j=80\ninput X[i,j]\nZ[i,j] = softmax[j](X[i,j])\n"));
    std::vector<std::string> names;
    const auto kernels = kernel_calls(compiled.graph, whole_tasks(compiled), {{"X", strides}});
    for (std::size_t v = 0; v < kernels.size(); ++v) {
      if (!kernels[v].empty() && kernels[v].front().row_by_row) names.push_back(compiled.graph.vertices[v].name);
    }
    return names;
  };
  EXPECT_EQ(said_of({80, 1}), std::vector<std::string>{"Z"});
  EXPECT_EQ(said_of({1, 90}), std::vector<std::string>{});
}

/// What the members of a fusion's program give one after another.
std::vector<Tensor> by_themselves(const Fusion& fusion, std::vector<Tensor> tensors) {
  Workers workers(1);
  for (std::size_t v = tensors.size(); v < fusion.program.vertices.size(); ++v) {
    const Vertex& vertex = fusion.program.vertices[v];
    std::vector<Tensor> operands;
    for (const VertexId input : vertex.inputs) operands.push_back(tensors[input.index]);
    tensors.push_back(evaluate(vertex, operands, {}, workers));
  }
  return tensors;
}

/// Every third value so much less than others that its exponential is below the normal range, or nothing.
template <class T>
void lower_some(Tensor& x) {
  auto* const values = reinterpret_cast<T*>(x.mutable_data());
  const T least = std::log(std::numeric_limits<T>::min());
  for (std::int64_t i = 0; i < x.count(); i += 3) values[i] = values[i] * 8 + least - 8;
  values[1] = -std::numeric_limits<T>::infinity();
  values[2] = least * 2;  // far below every number
}
Tensor with_small_exponentials(Tensor x) {
  x.dtype() == DType::f32 ? lower_some<float>(x) : lower_some<double>(x);
  return x;
}

TEST(Fusions, GiveTheBitsOfASoftmaxInFourVertices) {
  for (const std::string type : {"f32", "f64"}) {
    for (const std::string dims : {"i=301 j=777", "i=50 j=2500", "i=900 j=32", "i=900 j=3", "i=4 j=9000"}) {
      const std::string text = fmt::format("dims {}\ninput X[i,j] : {}\nZ[i,j] = softmax[j](X[i,j])\n", dims, type);
      const Compiled compiled = compile("test.ein", graph_of(text));
      const Vertex& input = compiled.graph.vertices[0];
      const Tensor x = with_small_exponentials(random_tensor(1, "X", input.dtype, input.bound));
      ASSERT_EQ(softmaxes_in(text), 1U);
      const Tensor got = run_whole(compiled, {{"X", x}}, {}, 2).at("Z");
      const Tensor want = by_themselves(find_fusions(compiled.graph).at(0), {x}).back();
      EXPECT_TRUE(agree(got, want, std::vector<double>(values_of(want).size(), 0))) << text;
    }
  }
}

TEST(Fusions, AgreeWithTheReference) {
  const std::vector<std::string> programs{
      normalised,
      "dims i=301 j=777\ninput X[i,j]\nZ[i,j] = softmax[j](X[i,j])\n",
      "dims i=777 j=301\ninput X[i,j]\nZ[i,j] = softmax[i](X[i,j])\n",
      "dims b=3 i=123 j=501\ninput X[b,i,j]\nZ[j,b,i] = softmax[i](X[b,i,j])\n",
      "dims b=2 h=3 s=201 t=700\ninput X[b,h,s,t]\nZ[b,h,s,t] = softmax[t](X[b,h,s,t])\n",
      "dims i=200000\ninput X[i], Y[i]\nA[i] = X[i] * Y[i]\nB[i] = exp(A[i])\nC[i] = B[i] + A[i]\noutput A, C\n",
      "dims i=100000\ninput X[i] : bf16\nA[i] = X[i] * X[i]\nB[i] = A[i] + 1\n",
      "dims i=100000\ninput X[i] : i32\nA[i] = X[i] * X[i]\nB[i] = where(A[i] > 2, A[i], -X[i])\n",
      "dims b=5 h=6 s=40 t=70\ninput X[h,b,s,t]\nZ[b,s,h,t] = softmax[t](X[h,b,s,t])\n",
      "dims b=5 s=40 t=70\ninput X[b,t,s]\nY[b,s,t] = X[b,t,s] + 1\nZ[b,s,t] = softmax[t](Y[b,s,t])\noutput Y, Z\n",
      "dims b=300 s=1 t=64\ninput X[b,s,t]\nZ[b,s,t] = softmax[t](X[b,s,t])\n",
      "dims a=20 b=15 s=3 t=70\ninput X[a,b,s,t]\nZ[a,b,s,t] = softmax[t](X[a,b,s,t])\n",
      "dims a=20 b=15 s=3 t=70\ninput X[b,a,s,t]\nZ[a,b,s,t] = softmax[t](X[b,a,s,t])\n",
      "dims b=7 s=90 t=80\ninput X[b,s,t]\nZ[b,s,t] = softmax[t](where(t <= s, X[b,s,t] * 3, -inf))\n",
      "dims b=7 s=90 t=80\ninput X[t,b,s]\nZ[b,s,t] = softmax[t](where(t <= s, X[t,b,s] - s, -inf))\n",
      "dims b=3 i=100 j=90\ninput X[b,i]\nZ[b,i,j] = softmax[j](X[b,i] * j)\n",
      "dims i=100 j=90\ninput X[i]\nZ[i,j] = softmax[j](j * 0.01)\nY[i,j] = Z[i,j] * X[i]\noutput Y\n",
      "dims i=9 j=90\ninput X[i,j], Y[i]\nA[i,j] = exp(X[i,j] * 2 - Y[i])\nB[i] = max[j] X[i,j] * 2\noutput A, B\n",
      "dims i=90 j=80 k=7\ninput X[i,j]\nZ[k,i,j] = softmax[j](where(j <= k, X[i,j] + k, -inf))\n",
      "dims i=300 j=300\ninput X[i,j] : f64\nZ[i,j] = softmax[j](X[i,j])\n",
      "dims i=300 j=300\ninput X[i,j] : bf16\nZ[i,j] = softmax[j](X[i,j])\n",
      "dims s=211 t=999\ninput X[s,t]\nM[s,t] = where(t <= 500, X[s,t], -inf)\nZ[s,t] = softmax[t](M[s,t])\n",
      "dims y=400 x=500\ninput X[y,x]\nB[y,x] = pad(X[y-1,x], 0) + X[y,x]\nC[y,x] = B[y,x] * 2\n",
      "dims i=300 j=400 k=4\ninput X[i,j,k]\nA[i,k] = max[j] X[i,j,k]\nB[k,i] = A[i,k] + 1\nC[i,k] = B[k,i] * A[i,k]\n",
  };
  for (const std::string& program : programs) {
    expect_right(program, {1, 3});
  }
}

TEST(Fusions, OfProductsAgreeWithTheReference) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> programs{
      {"dims b=3 h=4 s=301 t=300 d=5\ninput Q[b,h,s,d], K[b,h,t,d]\nL[b,h,s,t] = sum[d] Q[b,h,s,d] * K[b,h,t,d] * 0.5\n"
       "P[b,h,s,t] = softmax[t](where(t <= s, L[b,h,s,t], -inf))\noutput P\n",
       {"L"}},
      {step_down(301, 4101, 5), {"G"}},
      {step_down(2101, 501, 5), {"G"}},
      {"dims i=1500 j=1400 k=3\ninput X[i,k] : i32, Y[k,j] : i32\nM[i,j] = max[k] (X[i,k] + Y[k,j])\n"
       "Z[i,j] = where(M[i,j] > 2, M[i,j], -M[i,j])\noutput Z\n",
       {"M"}},
      {"dims i=2100 j=1400 k=3\ninput X[i,k] : bf16, Y[k,j] : bf16\nA[i,j] = sum[k] X[i,k] * Y[k,j]\n"
       "R[i] = max[j] A[i,j]\nZ[j,i] = A[i,j] - R[i]\noutput Z\n",
       {"A"}},
      {"dims i=1100 j=1001 k=4 l=5\ninput X[i,k], Y[k,j], U[i,l], V[l,j]\nA[i,j] = sum[k] X[i,k] * Y[k,j]\n"
       "B[i,j] = sum[l] sq(U[i,l] - V[l,j])\nZ[i,j] = exp(A[i,j]) - B[i,j]\noutput Z\n",
       {"A", "B"}},
  };
  for (std::size_t p = 0; p < static_cast<std::size_t>(rounds(static_cast<int>(programs.size()))); ++p) {
    const auto& [program, products] = programs[p];
    const Names fusions = fusions_of(program);
    ASSERT_EQ(fusions.size(), 1U) << program;
    for (const std::string& product : products) {
      EXPECT_EQ(std::count(fusions[0].begin(), fusions[0].end(), product), 1) << program;
    }
    expect_right(program, {1, 3});
  }
}

}  // namespace
}  // namespace einrel::test
