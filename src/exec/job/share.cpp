#include "exec/job/share.h"

#include <algorithm>

namespace einrel {
namespace {

void add(RankBox box, std::vector<RankBox>& boxes) {
  const auto known = std::find_if(boxes.begin(), boxes.end(), [&](const RankBox& other) {
    return other.begin == box.begin && other.bound == box.bound;
  });
  if (known == boxes.end()) {
    boxes.push_back(std::move(box));
  } else {
    known->rank = std::min(known->rank, box.rank);
  }
}

}  // namespace

std::vector<RankBox> boxes_written(const TaskGraph& graph, std::size_t output) {
  std::vector<RankBox> boxes;
  for (const Task& task : graph.tasks) {
    const auto* const write = std::get_if<WriteOutput>(&task.op);
    if (write == nullptr || write->output != output) continue;
    add({static_cast<int>(site_of(graph, task)), write->begin, graph[task.reads.front()].bound}, boxes);
  }
  return boxes;
}

std::vector<RankBox> boxes_read(const TaskGraph& graph, std::size_t input) {
  std::vector<RankBox> boxes;
  for (const Task& task : graph.tasks) {
    const auto* const read = std::get_if<ReadInput>(&task.op);
    if (read == nullptr || read->input != input) continue;
    add({static_cast<int>(site_of(graph, task)), read->begin, graph[task.makes.front()].bound}, boxes);
  }
  return boxes;
}

void share(const Job& job, const std::vector<RankBox>& boxes, const InputMaker& own, Tensor& to) {
  const OutputWriter write = writer_to(to, false);
  for (const RankBox& box : boxes) {
    Tensor part(to.dtype(), box.bound);
    if (box.rank == job.rank) own(box.begin, box.bound, part.mutable_data());
    broadcast(box.rank, {part.mutable_data(), static_cast<std::size_t>(part.byte_count())});
    write(box.begin, std::move(part));
  }
}

}  // namespace einrel
