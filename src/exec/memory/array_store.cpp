#include "exec/memory/array_store.h"

#include <array>
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
  Body(ArrayStore& store, std::size_t number, Workers& workers)
      : store_(store), number_(number), task_(store.graph_.tasks[number]), workers_(workers) {}

  void operator()(const ReadInput& op) {
    const InputSource& source = store_.bindings_.inputs[op.input];
    if (const PartInPlace* const part = store_.tasks_.in_place(task_.makes.front())) {
      made().data = std::get<Tensor>(source).data() + part->place;
    } else if (store_.bindings_.kept == nullptr) {
      read_part(op, source, made_array().bound, make());
    } else {
      const Tensor& kept = kept_part(op, source, made_array(), (*store_.bindings_.kept)[number_]);
      made() = {kept.data(), nullptr, kept.owner()};
    }
  }
  void operator()(const CallKernel& op) {
    constexpr std::size_t few = 8;
    std::array<const std::byte*, few> on_stack;
    std::vector<const std::byte*> more;
    const std::size_t arrays = task_.reads.size() - (op.onto ? 1 : 0);
    std::span<const std::byte*> arguments(on_stack);
    if (arrays + op.numbers.size() > few) {
      more.resize(arrays + op.numbers.size());
      arguments = more;
    }
    arguments = arguments.first(arrays + op.numbers.size());
    for (std::size_t a = 0; a < arrays; ++a) arguments[a] = place(task_.reads[a]).data;
    for (std::size_t n = 0; n < op.numbers.size(); ++n)
      arguments[arrays + n] = std::as_bytes(std::span(&op.numbers[n], 1)).data();
    const ChunkKernel& kernel = store_.tasks_.kernel(number_);
    if (op.onto) made() = std::move(place(task_.reads.back()));
    if (task_.makes.size() == 1) {
      std::byte* const result = op.onto ? made().writable : make();
      return kernel.run(arguments, std::span(&result, 1), workers_);
    }
    std::vector<std::byte*> results;
    for (const ArrayId made : task_.makes) results.push_back(make(made));
    kernel.run(arguments, results, workers_);
  }
  void operator()(const CopyBoxes& op) {
    std::vector<Tensor> tensors;
    for (const ArrayId read : task_.reads) tensors.push_back(tensor(read));
    std::vector<const Tensor*> reads;
    for (const Tensor& each : tensors) reads.push_back(&each);
    copy_boxes(op, reads, made_array(), make());
  }
  /// One process has all sites, so an array is on every one of them at once.
  void operator()(const Send&) { made() = place(task_.reads.front()); }
  void operator()(const WriteOutput& op) { store_.bindings_.outputs[op.output](op.begin, tensor(task_.reads.front())); }

 private:
  const TaskArray& made_array() const { return store_.graph_[task_.makes.front()]; }
  Place& place(ArrayId id) { return store_.places_[id.index]; }
  Place& made() { return place(task_.makes.front()); }
  std::byte* make(ArrayId id) {
    const TaskArray& array = store_.graph_[id];
    std::shared_ptr<std::byte> memory = allocate_elements(array.dtype, array.bound, workers_.pool());
    std::byte* const data = memory.get();
    place(id) = {data, data, std::move(memory)};
    return data;
  }
  std::byte* make() { return make(task_.makes.front()); }
  /// As others get it: part of an input lives as long as that.
  Tensor tensor(ArrayId id) {
    const PartInPlace* const part = store_.tasks_.in_place(id);
    const auto& [data, writable, memory] = place(id);
    const std::shared_ptr<const void>& owner =
        part == nullptr ? memory : std::get<Tensor>(store_.bindings_.inputs[part->input]).owner();
    ArrayLayout layout = store_.tasks_.layout(id);
    return {layout.dtype, std::move(layout.shape), std::move(layout.strides), data, owner};
  }

  ArrayStore& store_;
  std::size_t number_;
  const Task& task_;
  Workers& workers_;
};

ArrayStore::ArrayStore(const PreparedTasks& tasks, const TaskBindings& bindings)
    : tasks_(tasks), graph_(tasks.graph()), bindings_(bindings), places_(graph_.arrays.size()) {}

void ArrayStore::run(std::size_t task, Workers& workers) {
  std::visit(Body(*this, task, workers), graph_.tasks[task].op);
}

TimedArrays::TimedArrays(const PreparedTasks& tasks, const TaskBindings& bindings)
    : graph_(tasks.graph()), progress_(bindings.progress), arrays_(tasks, bindings), live_(graph_) {}

TaskSpan TimedArrays::run(std::size_t t, int thread, Workers& workers) {
  const Task& task = graph_.tasks[t];
  const TaskClock clock(graph_, t, thread, progress_);
  live_.begin(task);
  arrays_.run(t, workers);
  const TaskSpan span = clock.stop(live_.bytes());
  const auto end_use = [&](ArrayId array) {
    if (live_.end_use(array)) arrays_.free(array);
  };
  for (const ArrayId read : task.reads) end_use(read);
  if (overwritten(task)) live_.begin(task.makes.front());  // after what it took over: others count meanwhile
  for (const ArrayId made : task.makes) end_use(made);
  return span;
}

}  // namespace einrel
