#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/executors/executor.h"
#include "exec/job/job.h"
#include "exec/tasks/bring_once.h"
#include "ia/traffic.h"
#include "plan/plan.h"
#include "run/algebra.h"
#include "run/compile.h"

namespace einrel {

/// A state of a program (EinGraph::steps).
struct TaskState {
  TaskOutput type;
  std::optional<std::size_t> input;  ///< of TaskGraph::inputs; none where no task reads it
  std::optional<std::size_t> next;   ///< of TaskGraph::outputs
};

/// What only the first step does: it brings inputs that stay to where all steps use them (plan/staying_inputs.h).
struct FirstStep {
  BroughtOnce brought;
  Traffic traffic;  ///< between sites

  /// The first of the inputs of the other tasks that it brings; all that follow are, too.
  std::size_t first_input() const { return brought.graph.inputs.size(); }
};

/// A plan as tasks, for this process or for a job of several.
struct PlannedTasks {
  TaskGraph graph;                                   ///< of each step
  std::vector<std::optional<std::size_t>> vertices;  ///< per operation (Task::node), its vertex, or where it stands
  std::vector<std::string> names;                    ///< of the vertices, or of the operations' results
  /// That the plan has between the sites that were asked for, with that of the first step.
  Traffic traffic;
  std::optional<FirstStep> first = std::nullopt;
  std::vector<TaskState> states = {};
  std::optional<std::size_t> until = std::nullopt;            ///< of TaskGraph::outputs: whether this step is the last
  std::optional<ScalarDeclaration> iteration = std::nullopt;  ///< if a kernel reads it
  std::size_t feedback = 0;                                   ///< of the last outputs, that only the next step needs
  double fusion_seconds = 0;                                  ///< that the pass fusion took
};

/// What the program puts out, without what only the next step needs.
std::vector<TaskOutput> program_outputs(const PlannedTasks& tasks);

/// The vertex that a task is a part of.
std::string name_of(const PlannedTasks& tasks, std::size_t task);

/// Throws UserError when a plan has more sites than a job has ranks.
void check_ranks(std::int64_t sites, const Job& job);

/// `most_bytes` as in exec/tasks/from_ia. Throws UserError when the plan has more sites than the job has ranks, and as
/// `lower` (plan/lower.h) does.
PlannedTasks tasks_of(const Compiled& compiled, const Plan& plan, const Job& job,
                      std::optional<std::int64_t> most_bytes = std::nullopt);

/// Of a run of the whole program in this process: its plan on one site, where nothing is cut.
PlannedTasks whole_tasks(const Compiled& compiled);

/// The same for a plan of relations: what tasks are part of are its operations, as nodes_of has them, named as EXPLAIN
/// names them. Its outputs are tensors (tra/relation.h).
PlannedTasks tasks_of(const AlgebraPlan& plan, const Job& job, std::optional<std::int64_t> most_bytes = std::nullopt);

/// Adds what goes on from step to step, of a program whose outputs are those of the tasks.
void add_steps(const EinGraph& graph, PlannedTasks& tasks);

/// Where inputs come from, by name.
using InputSources = std::map<std::string, InputSource>;
InputSources sources_of(const TensorBindings& inputs);

/// Throws UserError when a tensor is not of the type of what it is given for.
void check_type(const std::string& name, DType dtype, const Shape& bound, const InputSource& source);

/// What the tasks of a graph meet: `sources` by the names of their inputs. Throws UserError when one is missing or of
/// another type.
TaskBindings task_bindings(const TaskGraph& graph, const InputSources& sources, std::vector<OutputWriter> writers,
                           const ScalarBindings& scalars);

}  // namespace einrel
