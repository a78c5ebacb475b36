#pragma once

#include "einsum/reference.h"
#include "engine/session.h"

namespace einrel::test {

/// The outputs of a program that runs whole, by name.
inline std::map<std::string, Tensor> run_whole(const Compiled& compiled, const TensorBindings& inputs,
                                               const ScalarBindings& scalars, std::size_t threads = 1) {
  const PlannedTasks tasks = whole_tasks(compiled);
  std::map<std::string, Tensor> outputs = output_tensors(tasks.graph);
  Session session(tasks, {threads, {}, {}});
  session.step(sources_of(inputs), writers_to(outputs, tasks.graph), scalars);
  return outputs;
}

}  // namespace einrel::test
