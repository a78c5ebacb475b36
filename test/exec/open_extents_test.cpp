// Kernels tell an extent of 0 from one that arrays give: built, written, read, interpreted and run.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "einsum/reference.h"
#include "exec/tasks/from_ia.h"
#include "ia/from_tra.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/run_tasks.h"
#include "tra/from_einsum.h"
#include "tra/interpret.h"
#include "tra/text/parse.h"
#include "tra/text/print.h"

namespace einrel::test {
namespace {

using Outputs = std::map<std::string, Tensor>;

Outputs interpreted(const TraExpr& program, const EinGraph& graph, const TensorBindings& inputs) {
  Outputs outputs;
  for (const auto& [name, relation] : interpret(program, inputs, {})) {
    for (const VertexId id : graph.outputs) {
      if (graph[id].name == name) outputs.emplace(name, assemble(relation, graph[id].dtype, graph[id].bound.size()));
    }
  }
  return outputs;
}

Outputs run(const TraExpr& program, const TensorBindings& inputs) {
  const IaProgram ia = compile_by_table_1(program, 1);
  const TaskGraph tasks = tasks_of(ia.store, ia.plan, SiteMemory::shared);
  Outputs outputs = output_tensors(tasks);
  TaskBindings bindings;
  for (const StoredRelation& input : tasks.inputs) bindings.inputs.emplace_back(inputs.at(input.name));
  bindings.outputs = writers_to(outputs, tasks);
  run_once(tasks, bindings, SerialExecutor(1));
  return outputs;
}

/// Nothing for a program that no text says: a vertex without elements reduces a number over labels that it lacks.
std::optional<TraExpr> read_back(const std::string& text) {
  try {
    return parse_tra(SourceText("test.tra", text)).program;
  } catch (const ProgramError&) {
    return std::nullopt;
  }
}

/// Checks that the program gives what the reference gives: as it is made and, if there is a text, as that is read.
/// Returns whether there is.
bool check(const EinGraph& graph) {
  const TensorBindings inputs = counted_inputs(graph);
  const std::vector<Tensor> want = evaluate_reference(graph, inputs, {});
  const TraExpr made = from_einsum(graph, default_cuts(graph, 1));
  const std::string text = to_text(made);
  SCOPED_TRACE(text);
  std::vector<Outputs> results{interpreted(made, graph, inputs), run(made, inputs)};
  const std::optional<TraExpr> read = read_back(text);
  if (read) {
    EXPECT_EQ(to_text(*read), text);
    results.push_back(interpreted(*read, graph, inputs));
    results.push_back(run(*read, inputs));
  }
  for (const Outputs& got : results) {
    for (std::size_t i = 0; i < want.size(); ++i) {
      const std::string& name = graph[graph.outputs[i]].name;
      const std::vector<double> exactly(static_cast<std::size_t>(want[i].count()), 0);
      EXPECT_TRUE(agree(got.at(name), want[i], exactly)) << name;
    }
  }
  return read.has_value();
}

struct Program {
  std::vector<std::string> labels;  ///< each has each extent
  std::string text;
};

/// Products, reductions, labels that no array has, windows with and without padding, views that merge and split.
const std::vector<Program>& programs() {
  static const std::vector<Program> all{
      {{"i", "j", "k"}, "input X[i,j], Y[j,k] : f64\nZ[i,k] = sum[j] X[i,j] * Y[j,k]"},
      {{"i", "j"}, "input X[i,j] : f64\nZ[i] = prod[j] X[i,j]\nM[j] = max[i] X[i,j]\nA[i] = argmin[j] X[i,j]"},
      {{"i", "k"}, "input X[i] : f64\nZ[i,k] = X[i] + k\nS[] = sum[i,k] Z[i,k]"},
      {{"y", "d"}, "dims x=3\ninput X[x], W[d] : f64\nZ[y] = sum[d] X[y+d] * W[d]"},
      {{"y", "d", "n"}, "dims x=2\ninput X[n,x], W[d] : f64\nZ[n,y] = sum[d] pad(X[n,y+d-1], 0) * W[d]"},
      {{"b", "h", "d"}, "input X[b,h,d] : f64\nM[b,(h d)] = view X[b,h,d]\nS[h,b,d] = view M[b,(h d)]\noutput M, S"},
      {{"h", "d", "e"}, "input X[h,d,e] : f64\nM[(h d e),1] = view X[h,d,e]\nS[d,(e h)] = view M[(h d e),1]"},
      {{"b", "i"}, "input X[b,i,j] : f64\ndims j=0\nZ[b,i,k] = X[b,i,k] * 2\nT[(b i),j] = view X[b,i,j]"},
  };
  return all;
}

TEST(OpenExtents, AreToldFromZeroInEveryKernel) {
  int tried = 0;
  int read = 0;
  for (const Program& program : programs()) {
    std::int64_t count = 1;
    for (std::size_t i = 0; i < program.labels.size(); ++i) count *= 3;
    for (std::int64_t number = 0; number < count; ++number) {
      std::string dims = "dims";
      std::int64_t rest = number;
      for (const std::string& label : program.labels) {
        dims += fmt::format(" {}={}", label, rest % 3);
        rest /= 3;
      }
      SCOPED_TRACE(dims);
      std::optional<EinGraph> graph;
      try {
        graph = einrel::graph_of(dims + "\n" + program.text);
      } catch (const ProgramError&) {
        continue;  // a window that does not fit, an extreme of nothing
      }
      read += check(*graph) ? 1 : 0;
      ++tried;
    }
  }
  EXPECT_GT(tried, 130);
  EXPECT_GT(read, 80);
}

}  // namespace
}  // namespace einrel::test
