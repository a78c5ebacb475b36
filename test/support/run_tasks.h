#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "einsum/reference.h"
#include "exec/executors/serial/serial.h"
#include "exec/executors/threads/task_threads.h"
#include "exec/tasks/prepared_tasks.h"
#include "support/compare.h"

namespace einrel::test {

using Outputs = std::map<std::string, Tensor>;

inline TaskBindings bindings_of(const TaskGraph& graph, const TensorBindings& inputs, Outputs& outputs) {
  TaskBindings bindings;
  for (const StoredRelation& input : graph.inputs) bindings.inputs.emplace_back(inputs.at(input.name));
  bindings.outputs = writers_to(outputs, graph);
  return bindings;
}

/// Once, made ready for it.
inline TaskReport run_once(const TaskGraph& graph, const TaskBindings& bindings, Executor& executor) {
  const PreparedTasks ready(graph, bindings);
  const ExecutorAtWork at_work(executor, {});
  return executor.run(ready, bindings);
}
inline TaskReport run_once(const TaskGraph& graph, const TaskBindings& bindings, Executor&& executor) {
  return run_once(graph, bindings, executor);
}

inline Outputs run_on(const TaskGraph& graph, const TensorBindings& inputs, Executor&& executor) {
  Outputs outputs = output_tensors(graph);
  run_once(graph, bindings_of(graph, inputs, outputs), executor);
  return outputs;
}
inline Outputs run_on(const TaskGraph& graph, const TensorBindings& inputs, std::size_t threads) {
  return run_on(graph, inputs, SerialExecutor(threads));
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.count() == 0 || std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.byte_count())) == 0);
}

inline void expect_reference(const EinGraph& graph, const TensorBindings& inputs, const Outputs& outputs) {
  const std::vector<Tensor> want = evaluate_reference(graph, inputs, {});
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::vector<double> allowed(static_cast<std::size_t>(want[i].count()), 1e-5);
    EXPECT_TRUE(agree(outputs.at(graph[graph.outputs[i]].name), want[i], allowed)) << graph[graph.outputs[i]].name;
  }
}

}  // namespace einrel::test
