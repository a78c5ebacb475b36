#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/executors/executor.h"
#include "exec/job/job.h"

namespace einrel {

/// A box of a tensor that a rank has.
struct RankBox {
  int rank = 0;
  std::vector<std::int64_t> begin;
  Shape bound;
};

/// The chunks of an output where tasks write them, each once: on the lowest rank that does.
std::vector<RankBox> boxes_written(const TaskGraph& graph, std::size_t output);
/// The parts of an input that tasks read, likewise.
std::vector<RankBox> boxes_read(const TaskGraph& graph, std::size_t input);

/// On all ranks of a job: gives each of them the elements of all boxes. `own` gives those of this rank. Every box goes
/// to all others once.
void share(const Job& job, const std::vector<RankBox>& boxes, const InputMaker& own, Tensor& to);

}  // namespace einrel
