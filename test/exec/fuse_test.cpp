#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "exec/tasks/from_ia.h"
#include "plan/lower.h"
#include "plan/refine/numbering.h"
#include "run/compile.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/random_plan.h"
#include "support/run_tasks.h"

namespace einrel::test {
namespace {

std::string pick(Random& random, const std::vector<std::string>& from) {
  return from[static_cast<std::size_t>(random.between(0, std::ssize(from) - 1))];
}

/// A program of element-wise statements, reductions, softmaxes, short products and transposes of tensors with labels i,
/// j and k, each of what stands before it.
std::string light_program(std::uint64_t seed) {
  Random random(seed);
  std::string text = "dims i=12 j=10 k=6\ninput X0[i,j], Y0[i], Z0[j], W0[j,i], V0[k,j]\nscalar a = 0.5\n";
  std::vector<std::string> ij{"X0[i,j]", "W0[j,i]"};
  std::vector<std::string> i{"Y0[i]"};
  std::vector<std::string> j{"Z0[j]"};
  std::vector<std::string> made;
  const auto add = [&](std::vector<std::string>& like, const std::string& labels, const std::string& body) {
    const std::string name = "T" + std::to_string(made.size());
    text += name + "[" + labels + "] = " + body + "\n";
    like.push_back(name + "[" + labels + "]");
    made.push_back(name);
  };
  for (int statement = 0; statement < 9; ++statement) {
    const std::string x = pick(random, ij);
    switch (random.between(0, 8)) {
      case 0: add(ij, "i,j", "tanh(" + x + ") * " + pick(random, i)); break;
      case 1: add(ij, "i,j", x + " / (1 + exp(-" + x + ")) - " + pick(random, ij)); break;
      case 2: add(ij, "i,j", "softmax[j](" + x + ")"); break;
      case 3: add(ij, "i,j", "where(" + x + " > " + pick(random, ij) + ", a, " + pick(random, j) + ")"); break;
      case 4: add(i, "i", "sum[j] " + x + " * " + pick(random, j)); break;
      case 5: add(i, "i", "max[j] " + x + " + " + pick(random, i)); break;
      case 6: add(j, "j", "mean[i] abs(" + x + ")"); break;
      case 7: add(ij, "i,j", "relu(sum[k] V0[k,j] * " + pick(random, i) + ") + " + x); break;
      default: add(ij, "i,j", x + " + i * 0.5 + " + pick(random, j)); break;
    }
  }
  text += "output " + made.back();
  for (std::size_t m = 0; m + 1 < made.size(); ++m) {
    if (random.chance(0.25)) text += ", " + made[m];
  }
  return text + "\n";
}

/// Every vertex cut along one label, where it has it: what follows lies where it is needed.
Plan aligned_plan(const EinGraph& graph, const std::string& label, std::int64_t sites, bool two_parts) {
  Plan plan{"along " + label, sites, {}};
  for (const Vertex& vertex : graph.vertices) {
    const std::vector<std::string> labels = label_names(vertex);
    PartitionVector grid(labels.size(), 1);
    for (std::size_t l = 0; l < labels.size(); ++l) grid[l] = labels[l] == label ? sites : 1;
    VertexPlan& cut = plan.vertices.emplace_back(one_part_per_site(grid));
    for (std::size_t l = 0; l < labels.size() && two_parts && !is_input(vertex); ++l) {
      if (labels[l] == label) cut.parts[l] = 2 * sites;
    }
  }
  number_sites(graph, plan);
  return plan;
}

/// Of kernels whose steps are several statements.
int fused_calls(const TaskGraph& graph) {
  return static_cast<int>(std::count_if(graph.tasks.begin(), graph.tasks.end(), [&](const Task& task) {
    const auto* const call = std::get_if<CallKernel>(&task.op);
    return call != nullptr && (task.makes.size() > 1 || graph.kernels[call->kernel].steps.steps.size() > 1);
  }));
}

void expect_same_bits(const Outputs& a, const Outputs& b) {
  for (const auto& [name, tensor] : a) {
    EXPECT_EQ(std::memcmp(tensor.data(), b.at(name).data(), static_cast<std::size_t>(tensor.byte_count())), 0) << name;
  }
}

TEST(Fuse, ComputesWhatTheReferenceComputesWithTheSameBitsEverywhere) {
  int fused = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const std::string text = light_program(seed);
    Random random(seed);
    const EinGraph graph = compile("light.ein", einrel::graph_of(text)).graph;
    const std::string label = random.chance(0.7) ? "i" : "j";
    const LoweredPlan lowered =
        lower(graph, random.chance(0.4) ? random_plan(random, graph)
                                        : aligned_plan(graph, label, random.between(1, 4), random.chance(0.3)));
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const TensorBindings inputs = counted_inputs(graph);
    const ScalarBindings scalars{{"a", 0.5}};
    const auto run = [&](SiteMemory memory, std::optional<std::int64_t> most_bytes) {
      const TaskGraph tasks = tasks_of(lowered.ia.store, lowered.ia.plan, memory, most_bytes);
      fused += fused_calls(tasks);
      Outputs outputs = output_tensors(tasks);
      TaskBindings bindings = bindings_of(tasks, inputs, outputs);
      bindings.scalars = scalars;
      run_once(tasks, bindings, SerialExecutor(1));
      return outputs;
    };
    const Outputs shared = run(SiteMemory::shared, {});
    const std::vector<Tensor> want = evaluate_reference(graph, inputs, scalars);
    for (std::size_t o = 0; o < want.size(); ++o) {
      std::vector<double> allowed;
      for (const double value : values_of(want[o])) allowed.push_back(1e-5 * std::max(1.0, std::abs(value)));
      EXPECT_TRUE(agree(shared.at(graph[graph.outputs[o]].name), want[o], allowed)) << graph[graph.outputs[o]].name;
    }
    expect_same_bits(shared, run(SiteMemory::apart, {}));
    run(SiteMemory::shared, 256);
  }
  EXPECT_GT(fused, 500);
}

TEST(Fuse, LeavesNothingBetweenTheStatementsOfALayer) {
  // Layer normalisation, cut along the rows: each site reads X once and writes Y; no array lies in between.
  const EinGraph graph = compile("norm.ein", einrel::graph_of("dims i=64 j=32\ninput X[i,j], g[j]\n"
                                                              "m[i] = mean[j] X[i,j]\n"
                                                              "v[i] = mean[j] sq(X[i,j] - m[i])\n"
                                                              "Y[i,j] = g[j] * (X[i,j] - m[i]) / sqrt(v[i] + 1)\n"
                                                              "output Y\n"))
                             .graph;
  const LoweredPlan lowered = lower(graph, aligned_plan(graph, "i", 4, false));
  for (const SiteMemory memory : {SiteMemory::shared, SiteMemory::apart}) {
    const TaskGraph tasks = tasks_of(lowered.ia.store, lowered.ia.plan, memory);
    const auto calls = std::count_if(tasks.tasks.begin(), tasks.tasks.end(),
                                     [](const Task& task) { return std::holds_alternative<CallKernel>(task.op); });
    EXPECT_EQ(calls, 4);
    for (const Task& task : tasks.tasks) EXPECT_LE(task.makes.size(), 1U);
    const TensorBindings inputs = counted_inputs(graph);
    expect_reference(graph, inputs, run_on(tasks, inputs, 1));
  }
}

}  // namespace
}  // namespace einrel::test
