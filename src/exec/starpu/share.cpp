#include "exec/starpu/share.h"

#include <mpi.h>

#include <algorithm>
#include <limits>
#include <span>

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

/// In pieces that MPI can count.
void broadcast(std::byte* bytes, std::int64_t count, int from) {
  constexpr std::int64_t most = std::numeric_limits<int>::max() / 2;
  for (std::int64_t done = 0; done < count; done += most)
    MPI_Bcast(bytes + done, static_cast<int>(std::min(most, count - done)), MPI_BYTE, from, MPI_COMM_WORLD);
}

}  // namespace

std::vector<double> from_rank_0(const Job& job, const std::vector<double>& numbers) {
  if (!job.is_started) return numbers;
  std::vector<double> received = numbers;
  auto count = static_cast<std::int64_t>(numbers.size());
  broadcast(std::as_writable_bytes(std::span(&count, 1)).data(), sizeof(count), 0);
  received.resize(static_cast<std::size_t>(count));
  broadcast(std::as_writable_bytes(std::span(received)).data(), count * static_cast<std::int64_t>(sizeof(double)), 0);
  return received;
}

std::string from_rank(const Job& job, int rank, const std::string& text) {
  if (!job.is_started) return text;
  std::string received = text;
  auto length = static_cast<std::int64_t>(text.size());
  broadcast(std::as_writable_bytes(std::span(&length, 1)).data(), sizeof(length), rank);
  received.resize(static_cast<std::size_t>(length));
  broadcast(std::as_writable_bytes(std::span(received)).data(), length, rank);
  return received;
}

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
    broadcast(part.mutable_data(), part.byte_count(), box.rank);
    write(box.begin, std::move(part));
  }
}

}  // namespace einrel
