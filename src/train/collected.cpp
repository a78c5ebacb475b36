#include "train/collected.h"

#include <algorithm>
#include <cstring>

#include "base/extent.h"

namespace einrel {

Collected::Collected(std::vector<TaskOutput> outputs) : outputs_(std::move(outputs)), chunks_(outputs_.size()) {}

std::vector<OutputWriter> Collected::writers() {
  std::vector<OutputWriter> writers;
  for (std::vector<double>& chunks : chunks_) {
    writers.emplace_back([this, &chunks](const std::vector<std::int64_t>& begin, const Tensor& chunk) {
      const std::vector<double> values = values_of(chunk);
      const std::lock_guard lock(mutex_);
      for (const std::int64_t at : begin) chunks.push_back(static_cast<double>(at));
      for (const Extent extent : chunk.shape()) chunks.push_back(static_cast<double>(extent.value()));
      chunks.insert(chunks.end(), values.begin(), values.end());
    });
  }
  return writers;
}

std::vector<std::vector<double>> Collected::take(const Job& job) {
  std::vector<std::vector<double>> all;
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    const Shape& bound = outputs_[o].bound;
    std::vector<double> values(job.rank == 0 ? static_cast<std::size_t>(element_count(bound)) : 0);
    for (const std::vector<double>& chunks : gather(job, chunks_[o])) {
      for (std::size_t at = 0; at < chunks.size();) {
        Shape shape;
        std::int64_t first = 0;
        const Strides strides = row_major_strides(bound);
        for (std::size_t d = 0; d < bound.size(); ++d) {
          first += static_cast<std::int64_t>(chunks[at + d]) * strides[d];
          shape.emplace_back(static_cast<std::int64_t>(chunks[at + bound.size() + d]));
        }
        at += 2 * bound.size();
        for_each_offset(shape, strides,
                        [&](std::int64_t offset) { values[static_cast<std::size_t>(first + offset)] = chunks[at++]; });
      }
    }
    chunks_[o].clear();
    all.push_back(std::move(values));
  }
  return all;
}

std::vector<TaskOutput> scalars_named(const std::vector<std::string>& names) {
  std::vector<TaskOutput> outputs;
  for (const std::string& name : names) outputs.push_back({name, DType::f64, {}});
  return outputs;
}

std::vector<OutputWriter> writers_for(const PlannedTasks& tasks, const std::vector<std::string>& names,
                                      Collected& collected) {
  const std::vector<OutputWriter> known = collected.writers();
  std::vector<OutputWriter> writers;
  for (const TaskOutput& output : program_outputs(tasks)) {
    const auto found = std::find(names.begin(), names.end(), output.name);
    if (found == names.end())
      writers.emplace_back([](const std::vector<std::int64_t>& /*begin*/, const Tensor& /*chunk*/) {});
    else
      writers.push_back(known[static_cast<std::size_t>(found - names.begin())]);
  }
  return writers;
}

std::vector<double> on_all_ranks(const std::vector<double>& values, const Job& job) {
  std::string bytes(values.size() * sizeof(double), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  bytes = from_rank_0(job, bytes);
  std::vector<double> everywhere(bytes.size() / sizeof(double));
  if (!bytes.empty()) std::memcpy(everywhere.data(), bytes.data(), bytes.size());
  return everywhere;
}

std::vector<Tensor> on_all_ranks(const std::vector<TaskOutput>& types, const std::vector<std::vector<double>>& values,
                                 const Job& job) {
  std::vector<Tensor> tensors;
  for (std::size_t o = 0; o < types.size(); ++o)
    tensors.push_back(tensor_of(types[o].dtype, types[o].bound, on_all_ranks(values[o], job)));
  return tensors;
}

}  // namespace einrel
