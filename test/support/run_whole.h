#pragma once

#include "einsum/reference.h"
#include "run/session.h"

namespace einrel::test {

/// The outputs of a program that runs whole, by name; of one with states, bound as inputs are, one step.
inline std::map<std::string, Tensor> run_whole(const Compiled& compiled, const TensorBindings& inputs,
                                               const ScalarBindings& scalars, std::size_t threads = 1) {
  const PlannedTasks tasks = whole_tasks(compiled);
  std::map<std::string, Tensor> outputs = output_tensors(tasks.graph);
  Session session(tasks, {threads, {}});
  const InputSources sources = sources_of(inputs);
  KeptStates states(tasks, {}, std::nullopt);
  if (!tasks.states.empty()) states.begin(tasks, {sources, static_cast<std::int64_t>(scalars.at(iteration_name))});
  session.step(sources, writers_to(outputs, tasks.graph), scalars, {.states = &states});
  return outputs;
}

}  // namespace einrel::test
