#include "api/shared_results.h"

#include <variant>

#include "exec/job/share.h"

namespace einrel::api {

PlanFigures from_rank_0(const Job& job, const PlanFigures& own) {
  if (job.ranks == 1) return own;
  std::vector<double> numbers{own.seconds, static_cast<double>(own.spilled), static_cast<double>(own.read_back)};
  numbers.insert(numbers.end(), own.received.begin(), own.received.end());
  numbers = einrel::from_rank_0(job, numbers);
  PlanFigures figures{numbers[0], static_cast<std::int64_t>(numbers[1]), static_cast<std::int64_t>(numbers[2]), {}};
  for (std::size_t i = 3; i < numbers.size(); ++i) figures.received.push_back(static_cast<std::int64_t>(numbers[i]));
  return figures;
}

void share_outputs(const Job& job, const PlannedTasks& tasks, std::map<std::string, einrel::Tensor>& outputs) {
  if (job.ranks == 1) return;
  for (const TaskOutput& said : program_outputs(tasks)) {
    std::size_t output = 0;
    while (tasks.graph.outputs[output].name != said.name) ++output;
    einrel::Tensor& tensor = outputs.at(said.name);
    const auto own = [&](const std::vector<std::int64_t>& begin, const einrel::Shape& bound, std::byte* to) {
      const einrel::Tensor box = tensor.box(begin, bound);
      copy_elements(box.dtype(), bound, {box.data(), box.strides()}, to, row_major_strides(bound));
    };
    share(job, boxes_written(tasks.graph, output), own, tensor);
  }
}

std::vector<einrel::Tensor> shared_states(const Job& job, const PlannedTasks& tasks, const KeptStates& states) {
  std::vector<einrel::Tensor> shared;
  for (std::size_t s = 0; s < tasks.states.size(); ++s) {
    const TaskState& state = tasks.states[s];
    std::vector<RankBox> boxes;
    if (state.next) {
      boxes = boxes_written(tasks.graph, *state.next);
    } else if (state.input) {
      boxes = boxes_read(tasks.graph, *state.input);
    }
    const InputSource now = states[s].now();
    share(job, boxes, std::get<einrel::InputMaker>(now), shared.emplace_back(state.type.dtype, state.type.bound));
  }
  return shared;
}

}  // namespace einrel::api
