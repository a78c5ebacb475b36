#include "exec/tasks/task_body.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "einsum/graph/vertex_facts.h"
#include "tensor/convert.h"

namespace einrel {
namespace {

void mix(std::size_t& hash, std::size_t value) { hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6U) + (hash >> 2U); }

void mix(std::size_t& hash, const std::vector<Label>& labels) {
  for (const Label& label : labels) mix(hash, std::hash<std::string>{}(label.name));
}

struct StepHash {
  std::size_t& hash;
  void operator()(const EinSum& einsum) const {
    mix(hash, einsum.labels);
    for (const Access& operand : einsum.operands) {
      for (const Index& index : operand.indices) mix(hash, static_cast<std::size_t>(index.offset));
    }
    for (const ScalarStep& step : einsum.body.steps) {
      mix(hash, step.op.index());
      const auto* const constant = std::get_if<Constant>(&step.op);
      if (constant != nullptr) mix(hash, std::hash<std::variant<std::int64_t, double>>{}(constant->value));
    }
  }
  void operator()(const View& view) const { mix(hash, view.labels); }
  void operator()(const Opaque& opaque) const { mix(hash, opaque.labels); }
};

/// Of what it computes: steps that repeat in a program differ by labels, positions and numbers if by anything.
std::size_t hash_of(const TaskKernel& kernel) {
  std::size_t hash = kernel.steps.steps.size();
  for (const KernelStep& step : kernel.steps.steps) std::visit(StepHash{hash}, step.op);
  return hash;
}

bool computes_same(const TaskKernel& a, const TaskKernel& b) {
  return a.results == b.results && a.steps.arguments == b.steps.arguments && a.steps.steps == b.steps.steps;
}

}  // namespace

ChunkKernels::Alike& ChunkKernels::alike(std::size_t kernel) {
  if (alike_[kernel] != nullptr) return *alike_[kernel];
  const TaskKernel& wanted = graph_.kernels[kernel];
  const std::size_t hash = hash_of(wanted);
  const auto [first, last] = by_hash_.equal_range(hash);
  auto known = std::find_if(first, last, [&](const auto& entry) { return computes_same(entry.second.first, wanted); });
  if (known == last) known = by_hash_.emplace(hash, Alike{wanted, {}});
  alike_[kernel] = &known->second;
  return known->second;
}

namespace {

struct ReadsScalar {
  const std::set<std::string>& names;
  bool operator()(const EinSum& einsum) const {
    return std::any_of(einsum.body.steps.begin(), einsum.body.steps.end(), [&](const ScalarStep& step) {
      const auto* const scalar = std::get_if<ScalarValue>(&step.op);
      return scalar != nullptr && names.count(scalar->name) != 0;
    });
  }
  bool operator()(const View& /*view*/) const { return false; }
  bool operator()(const Opaque& /*opaque*/) const { return false; }
};

}  // namespace

bool reads_scalar(const TaskKernel& kernel, const std::set<std::string>& names) {
  return std::any_of(kernel.steps.steps.begin(), kernel.steps.steps.end(),
                     [&](const KernelStep& step) { return std::visit(ReadsScalar{names}, step.op); });
}

std::size_t ChunkKernels::rebind(const ScalarBindings& scalars) {
  if (have_same_bits(scalars_, scalars)) return changes_;
  std::set<std::string> changed;
  for (const auto& [name, value] : scalars) {
    const auto known = scalars_.find(name);
    if (known == scalars_.end() || !have_same_bits({*known}, {{name, value}})) changed.insert(name);
  }
  for (auto& [hash, same] : by_hash_) {
    if (reads_scalar(same.first, changed)) same.ready.clear();
  }
  scalars_ = scalars;
  return ++changes_;
}

const ChunkKernel* ChunkKernels::find(const CallKernel& call, std::span<const ArrayLayout> arguments) const {
  if (alike_[call.kernel] == nullptr) return nullptr;
  for (const Ready& ready : alike_[call.kernel]->ready) {
    if (ready.onto == call.onto &&
        std::equal(arguments.begin(), arguments.end(), ready.arrays.begin(), ready.arrays.end()))
      return &ready.kernel;
  }
  return nullptr;
}

const ChunkKernel& ChunkKernels::operator()(const CallKernel& call, std::span<const ArrayLayout> arguments) {
  Alike& same = alike(call.kernel);
  if (const ChunkKernel* const known = find(call, arguments)) return *known;
  std::vector<ArrayLayout> layouts(arguments.begin(), arguments.end());
  std::vector<ArrayLayout> all = layouts;
  all.resize(all.size() + call.numbers.size(), row_major_layout(DType::i64, {}));
  TaskKernel named = graph_.kernels[call.kernel];
  if (graph_.sites > 1) named.steps.name = "a chunk of " + named.steps.name;  // positions in messages are the chunk's
  ChunkKernel kernel(named, all, scalars_, call.onto);
  return same.ready.emplace_back(Ready{call.onto, std::move(layouts), std::move(kernel)}).kernel;
}

namespace {

/// By itself, whatever kernels make of it.
std::optional<PartInPlace> part_in_place(const ReadInput& read, const ArrayLayout& whole, const Shape& bound) {
  PartInPlace part{read.input, {whole.dtype, bound, whole.strides, whole.aligned}, 0};
  if (element_count(bound) > 0)
    part.place = offset_of(read.begin, whole.strides) * static_cast<std::int64_t>(size_of(whole.dtype));
  if (!read.is_shared) return part;
  if (!is_row_major(bound, whole.strides) || !whole.aligned) return std::nullopt;
  part.layout.strides = row_major_strides(bound);
  return part;
}

bool has_views(const Kernel& kernel) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(),
                     [](const KernelStep& step) { return view_of(step) != nullptr; });
}

/// Whether as many views lie in the memory of what they read if that argument lies so as if it were row-major.
bool views_share(const TaskKernel& kernel, const std::vector<Shape>& bounds, std::size_t argument,
                 const Strides& strides) {
  const EinGraph program = program_of(kernel, bounds);
  std::vector<ArrayLayout> row_major;
  for (std::size_t a = 0; a < bounds.size(); ++a)
    row_major.push_back(row_major_layout(kernel.steps.arguments[a], bounds[a]));
  std::vector<ArrayLayout> layouts = row_major;
  layouts[argument].strides = strides;
  return place_values(kernel, program, layouts) == place_values(kernel, program, row_major);
}

}  // namespace

std::vector<std::optional<PartInPlace>> parts_in_place(const TaskGraph& graph,
                                                       const std::vector<std::optional<ArrayLayout>>& inputs) {
  std::vector<std::optional<PartInPlace>> parts(graph.tasks.size());
  std::map<ArrayId, std::size_t> scattered;  // that are not row-major, by the task that reads them
  std::vector<bool> views;
  for (const TaskKernel& kernel : graph.kernels) views.push_back(has_views(kernel.steps));
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (const auto* const read = std::get_if<ReadInput>(&task.op)) {
      const std::optional<ArrayLayout>& whole = inputs[read->input];
      const ArrayId made = task.makes.front();
      if (whole) parts[t] = part_in_place(*read, *whole, graph[made].bound);
      if (parts[t] && !is_row_major(parts[t]->layout.shape, parts[t]->layout.strides)) scattered.emplace(made, t);
    }
    const auto* const call = std::get_if<CallKernel>(&task.op);
    if (call == nullptr || scattered.empty() || !views[call->kernel]) continue;
    std::vector<Shape> bounds;
    for (const ArrayId read : task.reads) bounds.push_back(graph[read].bound);
    bounds.resize(graph.kernels[call->kernel].steps.arguments.size());
    for (std::size_t a = 0; a < task.reads.size(); ++a) {
      const auto found = scattered.find(task.reads[a]);
      if (found == scattered.end()) continue;
      std::optional<PartInPlace>& part = parts[found->second];
      if (part && !views_share(graph.kernels[call->kernel], bounds, a, part->layout.strides)) part.reset();
    }
  }
  return parts;
}

std::vector<std::optional<ArrayLayout>> layouts_of(const std::vector<InputSource>& inputs) {
  std::vector<std::optional<ArrayLayout>> layouts;
  for (const InputSource& input : inputs) {
    const auto* const tensor = std::get_if<Tensor>(&input);
    layouts.push_back(tensor == nullptr ? std::nullopt : std::optional(layout_of(*tensor)));
  }
  return layouts;
}

void read_part(const ReadInput& read, const InputSource& source, const Shape& bound, std::byte* to) {
  if (const auto* const make = std::get_if<InputMaker>(&source)) return (*make)(read.begin, bound, to);
  const Tensor part = std::get<Tensor>(source).box(read.begin, bound);
  copy_elements(part.dtype(), part.shape(), {part.data(), part.strides()}, to, row_major_strides(bound));
}

const Tensor& kept_part(const ReadInput& read, const InputSource& source, const TaskArray& array,
                        std::optional<Tensor>& kept) {
  if (!kept) {
    Tensor part(array.dtype, array.bound);
    read_part(read, source, array.bound, part.mutable_data());
    kept = std::move(part);
  }
  return *kept;
}

void copy_boxes(const CopyBoxes& copy, std::span<const Tensor* const> reads, const TaskArray& made, std::byte* to) {
  const Strides strides = row_major_strides(made.bound);
  if (copy.padding) fill_elements(made.dtype, element_count(made.bound), *copy.padding, to);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const CopyBoxes::Box& box = copy.boxes[i];
    const Tensor from = reads[i]->box(box.from, box.bound);
    const auto size = static_cast<std::int64_t>(size_of(from.dtype()));
    copy_elements(from.dtype(), box.bound, {from.data(), from.strides()}, to + offset_of(box.to, strides) * size,
                  strides);
  }
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

TaskClock::TaskClock(const TaskGraph& graph, std::size_t task, int thread, TaskProgress* progress)
    : graph_(graph), progress_(progress), start_(std::chrono::steady_clock::now()) {
  span_ = {task, seconds_now(), 0, thread, 0};
  if (progress_ != nullptr) progress_->task = task;
}

TaskSpan TaskClock::stop(std::int64_t live_bytes) const {
  TaskSpan span = span_;
  span.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  span.live_bytes = live_bytes;
  if (progress_ != nullptr) {
    ++progress_->done;
    progress_->flops += flops_of(graph_.tasks[span.task]);
  }
  return span;
}

Tensor borrowed(const TaskArray& array, const std::byte* data) {
  return {array.dtype, array.bound, row_major_strides(array.bound), data, nullptr};
}

}  // namespace einrel
