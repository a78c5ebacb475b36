#include "exec/serial/serial.h"

#include <chrono>
#include <optional>

#include "exec/task_body.h"

namespace einrel {
namespace {

class SerialRun {
 public:
  SerialRun(const TaskGraph& graph, const TaskBindings& bindings, Workers& workers)
      : graph_(graph),
        bindings_(bindings),
        workers_(workers),
        kernels_(graph, bindings.scalars),
        values_(graph.arrays.size()) {}

  void run(const Task& task) {
    task_ = &task;
    reads_.clear();
    for (const ArrayId read : task.reads) reads_.push_back(*values_[read.index]);
    std::visit(*this, task.op);
  }
  void free(ArrayId array) { values_[array.index].reset(); }

  void operator()(const ReadInput& op) {
    const InputSource& source = bindings_.inputs[op.input];
    if (const auto* const whole = std::get_if<Tensor>(&source)) {
      values_[task_->makes.index] = whole->box(op.begin, graph_[task_->makes].bound);
    } else {
      std::get<InputMaker>(source)(op.begin, graph_[task_->makes].bound, make());
    }
  }
  void operator()(const MakePositions& op) { make_positions(op, graph_[task_->makes].bound, make()); }
  void operator()(const CallKernel& op) {
    std::vector<ArrayLayout> layouts;
    std::vector<const std::byte*> data;
    for (const Tensor& read : reads_) {
      layouts.push_back(layout_of(read));
      data.push_back(read.data());
    }
    kernels_(op, layouts).run(data, make(), workers_);
  }
  void operator()(const CopyBoxes& op) { copy_boxes(op, reads_, graph_[task_->makes].bound, make()); }
  /// One process has all sites, so an array is on every one of them at once.
  void operator()(const Send&) { values_[task_->makes.index] = reads_.front(); }
  void operator()(const WriteOutput& op) { bindings_.outputs[op.output](op.begin, reads_.front()); }

 private:
  std::byte* make() {
    const TaskArray& array = graph_[task_->makes];
    return values_[task_->makes.index].emplace(array.dtype, array.bound, workers_.pool()).mutable_data();
  }

  const TaskGraph& graph_;
  const TaskBindings& bindings_;
  Workers& workers_;
  ChunkKernels kernels_;
  std::vector<std::optional<Tensor>> values_;
  const Task* task_ = nullptr;
  std::vector<Tensor> reads_;
};

}  // namespace

TaskReport run_serial(const TaskGraph& graph, const TaskBindings& bindings, Workers& workers) {
  const auto start = std::chrono::steady_clock::now();
  TaskReport report;
  report.spans.resize(graph.tasks.size());
  SerialRun run(graph, bindings, workers);
  const std::vector<std::vector<ArrayId>> freed = last_uses(graph);
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const TaskClock clock(graph, t, 0, bindings.progress, report.spans[t]);
    run.run(graph.tasks[t]);
    for (const ArrayId array : freed[t]) run.free(array);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace einrel
