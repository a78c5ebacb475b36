#include "exec/array_store.h"

#include <span>
#include <utility>

namespace einrel {

LiveArrays::LiveArrays(const TaskGraph& graph) : graph_(graph), uses_(graph.arrays.size()) {
  for (const Task& task : graph.tasks) {
    for (const ArrayId made : task.makes) ++uses_[made.index];
    for (const ArrayId read : task.reads) ++uses_[read.index];
  }
}

void LiveArrays::begin(ArrayId array) { bytes_ += bytes_of(graph_[array]); }

void LiveArrays::begin(const Task& task) { bytes_ += bytes_made(graph_, task); }

bool LiveArrays::end_use(ArrayId array) {
  if (--uses_[array.index] != 0) return false;
  bytes_ -= bytes_of(graph_[array]);
  return true;
}

/// Runs one task.
class ArrayStore::Body {
 public:
  Body(ArrayStore& store, const Task& task, Workers& workers)
      : store_(store), graph_(store.graph_), task_(task), workers_(workers) {
    for (const ArrayId read : task.reads) reads_.push_back(&*store.arrays_[read.index]);
  }

  void operator()(const ReadInput& op) {
    const InputSource& source = store_.bindings_.inputs[op.input];
    if (const auto* const whole = std::get_if<Tensor>(&source)) {
      made() = part_in_place(op, *whole, bound());
      if (!made()) copy_part(op, *whole, bound(), make());
    } else {
      std::get<InputMaker>(source)(op.begin, bound(), make());
    }
  }
  void operator()(const CallKernel& op) {
    const ChunkKernel& kernel = store_.kernels_(op, reads_);
    const std::vector<const std::byte*> data = argument_data(op, reads_);
    if (op.onto) made() = std::move(store_.arrays_[task_.reads.back().index]);
    std::vector<std::byte*> results;
    for (const ArrayId made : task_.makes) results.push_back(op.onto ? array(made)->mutable_data() : make(made));
    kernel.run(data, results, workers_);
  }
  void operator()(const CopyBoxes& op) { copy_boxes(op, reads_, bound(), make()); }
  /// One process has all sites, so an array is on every one of them at once.
  void operator()(const Send&) { made() = *reads_.front(); }
  void operator()(const WriteOutput& op) { store_.bindings_.outputs[op.output](op.begin, *reads_.front()); }

 private:
  const Shape& bound() const { return graph_[task_.makes.front()].bound; }
  std::optional<Tensor>& array(ArrayId id) { return store_.arrays_[id.index]; }
  std::optional<Tensor>& made() { return array(task_.makes.front()); }
  std::byte* make(ArrayId id) {
    return array(id).emplace(graph_[id].dtype, graph_[id].bound, workers_.pool()).mutable_data();
  }
  std::byte* make() { return make(task_.makes.front()); }

  ArrayStore& store_;
  const TaskGraph& graph_;
  const Task& task_;
  Workers& workers_;
  std::vector<const Tensor*> reads_;
};

ArrayStore::ArrayStore(const TaskGraph& graph, const TaskBindings& bindings)
    : graph_(graph), bindings_(bindings), kernels_(graph, bindings), live_(graph), arrays_(graph.arrays.size()) {}

TaskSpan ArrayStore::run(std::size_t t, int thread, Workers& workers) {
  const Task& task = graph_.tasks[t];
  TaskClock clock(graph_, t, thread, bindings_.progress);
  live_.begin(task);
  std::visit(Body(*this, task, workers), task.op);
  TaskSpan span = clock.stop(live_.bytes());
  const auto end_use = [&](ArrayId array) {
    if (live_.end_use(array)) arrays_[array.index].reset();
  };
  if (overwritten(task)) live_.begin(task.makes.front());
  for (const ArrayId read : task.reads) end_use(read);
  for (const ArrayId made : task.makes) end_use(made);
  return span;
}

}  // namespace einrel
