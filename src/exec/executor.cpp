#include "exec/executor.h"

namespace einrel {

std::map<std::string, Tensor> output_tensors(const TaskGraph& graph) {
  std::map<std::string, Tensor> outputs;
  for (const TaskOutput& output : graph.outputs) outputs.emplace(output.name, Tensor(output.dtype, output.bound));
  return outputs;
}

std::vector<OutputWriter> writers_to(std::map<std::string, Tensor>& to, const TaskGraph& graph) {
  std::vector<OutputWriter> writers;
  for (const TaskOutput& output : graph.outputs) {
    Tensor& whole = to.at(output.name);
    writers.emplace_back([&whole](const std::vector<std::int64_t>& begin, const Tensor& chunk) {
      if (chunk.count() > 0 && chunk.shape() == whole.shape() && chunk.has_owner() && chunk.is_row_major()) {
        whole = chunk;
        return;
      }
      const auto size = static_cast<std::int64_t>(size_of(whole.dtype()));
      copy_elements(chunk.dtype(), chunk.shape(), {chunk.data(), chunk.strides()},
                    whole.mutable_data() + offset_of(begin, whole.strides()) * size, whole.strides());
    });
  }
  return writers;
}

}  // namespace einrel
