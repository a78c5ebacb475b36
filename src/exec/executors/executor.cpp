#include "exec/executors/executor.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace einrel {
namespace {

void copy_chunk(const std::vector<std::int64_t>& begin, const Tensor& chunk, Tensor& whole) {
  const auto size = static_cast<std::int64_t>(size_of(whole.dtype()));
  copy_elements(chunk.dtype(), chunk.shape(), {chunk.data(), chunk.strides()},
                whole.mutable_data() + offset_of(begin, whole.strides()) * size, whole.strides());
}

}  // namespace

bool have_same_bits(const ScalarBindings& a, const ScalarBindings& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.first == other.first &&
           std::bit_cast<std::uint64_t>(one.second) == std::bit_cast<std::uint64_t>(other.second);
  });
}

std::vector<bool> come_whole(const TaskGraph& graph) {
  std::vector<std::size_t> chunks(graph.outputs.size(), 0);
  for (const Task& task : graph.tasks) {
    if (const auto* const write = std::get_if<WriteOutput>(&task.op)) ++chunks[write->output];
  }
  std::vector<bool> whole;
  for (const std::size_t count : chunks) whole.push_back(count == 1 && graph.memory == SiteMemory::shared);
  return whole;
}

std::map<std::string, Tensor> output_tensors(const TaskGraph& graph) {
  const std::vector<bool> whole = come_whole(graph);
  std::map<std::string, Tensor> outputs;
  for (std::size_t o = 0; o < whole.size(); ++o) {
    const auto& [name, dtype, bound] = graph.outputs[o];
    outputs.emplace(name,
                    whole[o] ? Tensor(dtype, bound, row_major_strides(bound), nullptr, nullptr) : Tensor(dtype, bound));
  }
  return outputs;
}

std::vector<OutputWriter> writers_to(std::map<std::string, Tensor>& to, const TaskGraph& graph) {
  const std::vector<bool> whole = come_whole(graph);
  std::vector<OutputWriter> writers;
  for (std::size_t o = 0; o < whole.size(); ++o) writers.push_back(writer_to(to.at(graph.outputs[o].name), whole[o]));
  return writers;
}

OutputWriter writer_to(Tensor& to, bool whole) {
  if (!whole) {
    return [&to](const std::vector<std::int64_t>& begin, const Tensor& chunk) { copy_chunk(begin, chunk, to); };
  }
  return [&to](const std::vector<std::int64_t>& begin, Tensor chunk) {
    if (chunk.has_owner() && chunk.is_row_major()) {
      to = std::move(chunk);
    } else {
      to = Tensor(chunk.dtype(), chunk.shape());
      copy_chunk(begin, chunk, to);
    }
  };
}

}  // namespace einrel
