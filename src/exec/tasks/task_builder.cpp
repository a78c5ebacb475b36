#include "exec/tasks/task_builder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "einsum/graph/vertex_facts.h"
#include "exec/tasks/label_values.h"
#include "exec/tasks/merge_kernels.h"
#include "kernel/view.h"

namespace einrel {
namespace {

/// Where the chunks along each dimension begin, for relations whose keys count chunks dimension by dimension.
std::vector<std::map<std::int64_t, std::int64_t>> begins_of(const RelationType& type) {
  std::vector<std::map<std::int64_t, std::int64_t>> extents(type.rank);
  for (const Chunk& chunk : type.chunks) {
    for (std::size_t d = 0; d < type.rank; ++d) extents[d][chunk.key[d]] = chunk.bound[d].value();
  }
  for (auto& along : extents) {
    std::int64_t begin = 0;
    for (auto& [part, extent] : along) begin += std::exchange(extent, begin);
  }
  return extents;
}

bool are_within(const ConstantPositions& positions, const Shape& bound) {
  for (std::size_t d = 0; d < bound.size(); ++d) {
    if (positions[d] && (positions[d]->first < 0 || positions[d]->last >= bound[d].value())) return false;
  }
  return true;
}

Shape narrowed_bound(Shape bound, const ConstantPositions& positions) {
  for (std::size_t d = 0; d < bound.size(); ++d) {
    if (positions[d]) bound[d] = Extent(positions[d]->last - positions[d]->first + 1);
  }
  return bound;
}

/// What a box of an array puts at these positions of it.
std::optional<CopyBoxes::Box> narrowed_box(CopyBoxes::Box box, const ConstantPositions& positions) {
  for (std::size_t d = 0; d < positions.size(); ++d) {
    if (!positions[d]) continue;
    const std::int64_t first = std::max(box.to[d], positions[d]->first);
    const std::int64_t last = std::min(box.to[d] + box.bound[d].value() - 1, positions[d]->last);
    if (first > last) return std::nullopt;
    box.from[d] += first - box.to[d];
    box.to[d] = first - positions[d]->first;
    box.bound[d] = Extent(last - first + 1);
  }
  return box;
}

}  // namespace

void TaskBuilder::add_output(const std::string& name, const RelationType& type) {
  invariant(!why_no_tensor(type, name), "the keys of an output count its chunks");
  graph_.outputs.push_back({name, type.dtype, tensor_bound(type)});
}

void TaskBuilder::write(const RelationType& type, const SiteArrays& chunks) {
  std::vector<std::map<std::int64_t, std::int64_t>> begins;
  if (type.chunks.size() > 1) begins = begins_of(type);  // the key of one may be any
  for (const auto& [key, array] : chunks) {
    WriteOutput op{graph_.outputs.size() - 1, std::vector<std::int64_t>(type.rank, 0)};
    for (std::size_t d = 0; d < begins.size(); ++d) op.begin[d] = begins[d].at(key[d]);
    graph_.tasks.push_back({std::move(op), {stored(array)}, {}, node_});
  }
}

ArrayId TaskBuilder::put_together(const std::vector<ArrayId>& reads, std::vector<CopyBoxes::Box> boxes, TaskArray array,
                                  std::optional<double> padding) {
  std::int64_t filled = 0;
  for (const CopyBoxes::Box& box : boxes) filled += element_count(box.bound);
  if (filled == element_count(array.bound)) padding.reset();
  const auto is_whole = [&](std::size_t i) {
    return boxes[i].bound == array.bound && graph_[reads[i]].bound == array.bound;
  };
  if (reads.size() == 1 && is_whole(0)) return reads.front();
  if (std::optional<ReadInput> read = padding ? std::nullopt : read_together(reads, boxes))
    return make(*std::move(read), {}, std::move(array));
  return make(CopyBoxes{std::move(boxes), padding}, reads, std::move(array));
}

std::optional<ReadInput> TaskBuilder::read_together(const std::vector<ArrayId>& reads,
                                                    const std::vector<CopyBoxes::Box>& boxes) const {
  if (!most_bytes_ || !is_shared()) return std::nullopt;
  std::optional<ReadInput> found;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const Task* const maker = maker_of(reads[i]);
    const auto* const part = maker == nullptr ? nullptr : std::get_if<ReadInput>(&maker->op);
    if (part == nullptr) return std::nullopt;
    ReadInput all{part->input, part->begin};
    for (std::size_t d = 0; d < all.begin.size(); ++d) all.begin[d] += boxes[i].from[d] - boxes[i].to[d];
    if (found && (found->input != all.input || found->begin != all.begin)) return std::nullopt;
    found = std::move(all);
  }
  return found;
}

std::int64_t TaskBuilder::bytes_copying(ArrayId array, std::int64_t part) const {
  const Task* const maker = maker_of(array);
  const std::int64_t whole = bytes_of(graph_[array]);
  if (std::holds_alternative<ReadInput>(maker->op)) return 0;
  if (!std::holds_alternative<CopyBoxes>(maker->op)) return part == whole ? 0 : part + whole;
  std::int64_t from = part;  // what is copied is cut out of one array at a time (exec/tasks/cut_parts_out)
  for (const ArrayId read : maker->reads) from = std::max(from, bytes_of(graph_[read]));
  return part + from;
}

std::int64_t TaskBuilder::bytes_read(const std::vector<PartRead>& parts, const Arguments& arguments) const {
  std::int64_t bytes = 0;
  std::int64_t copying = 0;  // the most that one part takes
  for (const auto& [argument, bound] : parts) {
    if (argument >= arguments.arrays.size()) continue;  // a number
    const ArrayId array = arguments.arrays[argument];
    if (positions_.count(array) != 0) continue;
    const std::int64_t part = bytes_of({graph_[array].dtype, bound, {}});
    bytes += part;
    copying = std::max(copying, bytes_copying(array, part));
  }
  return std::max(bytes, copying);
}

std::optional<TaskBuilder::Ranges> TaskBuilder::ranges_of(const Kernel& kernel, const Arguments& arguments,
                                                          const std::vector<Shape>& bounds) {
  constexpr std::int64_t most_ranges = 512;  // as longest_run in exec/tasks/from_ia: sums are rounded as often
  const std::int64_t result = bytes_of({result_dtype(kernel), result_shape(kernel, bounds), {}});
  std::vector<PartRead> wholes;
  for (std::size_t a = 0; a < arguments.arrays.size(); ++a) wholes.push_back({a, bounds[a]});
  const std::int64_t all = result + bytes_read(wholes, arguments);
  if (all <= *most_bytes_) return std::nullopt;
  const auto needs = [&](const ReducedLabel& label, std::int64_t length) {
    return result + bytes_read(most_read(kernel, bounds, label.label, length), arguments);
  };
  std::optional<Ranges> best;
  std::int64_t least = 0;
  for (const ReducedLabel& label : labels_in_ranges(kernel, bounds)) {
    std::int64_t length = (label.extent + most_ranges - 1) / most_ranges;
    std::int64_t too_long = label.extent;
    while (too_long - length > 1) {
      const std::int64_t middle = length + (too_long - length) / 2;
      (needs(label, middle) <= *most_bytes_ ? length : too_long) = middle;
    }
    const std::int64_t bytes = needs(label, length);
    if (bytes >= all || (best && bytes >= least)) continue;
    best = Ranges{label.label, label.extent, length};
    least = bytes;
  }
  return best;
}

Arguments TaskBuilder::arguments_on(const KernelOnRange& kernel, const Arguments& arguments, Site site) {
  Arguments result;
  for (const auto& [argument, read] : kernel.reads) {
    if (argument >= arguments.arrays.size()) {
      result.numbers.push_back(arguments.numbers[argument - arguments.arrays.size()]);
      continue;
    }
    const ArrayId array = arguments.arrays[argument];
    if (const auto made = positions_.find(array); made != positions_.end()) {
      const std::int64_t first = made->second + (read[0] ? read[0]->first : 0);
      result.arrays.push_back(positions(first, narrowed_bound(graph_[array].bound, read)[0], site));
    } else {
      result.arrays.push_back(narrowed(array, read));
    }
  }
  result.numbers.insert(result.numbers.end(), kernel.numbers.begin(), kernel.numbers.end());
  return result;
}

std::vector<Shape> TaskBuilder::bounds_of(const Arguments& arguments) const {
  std::vector<Shape> bounds;
  for (const ArrayId argument : arguments.arrays) bounds.push_back(graph_[argument].bound);
  bounds.resize(bounds.size() + arguments.numbers.size());
  return bounds;
}

ArrayId TaskBuilder::make_by_call(std::size_t k, Arguments arguments, std::optional<ArrayId> onto, Site site) {
  const Kernel& kernel = kernels_[k].steps;
  const std::vector<Shape> bounds = bounds_of(arguments);
  const std::optional<Ranges> ranges = most_bytes_ ? ranges_of(kernel, arguments, bounds) : std::nullopt;
  if (!ranges) return make_by_one_call(k, std::move(arguments), onto, site);
  if (const auto kernels = extreme_kernels(kernel, bounds, arguments.arrays.size())) {
    Arguments with_extreme = arguments;
    with_extreme.arrays.push_back(make_by_ranges(kernels->extreme, arguments, *ranges, {}, site));
    const std::optional<Ranges> shorter = ranges_of(kernels->position, with_extreme, bounds_of(with_extreme));
    return make_by_ranges(kernels->position, with_extreme, shorter.value_or(*ranges), {}, site);
  }
  return make_by_ranges(Kernel(kernel), arguments, *ranges, onto, site);
}

ArrayId TaskBuilder::make_by_ranges(const Kernel& kernel, const Arguments& arguments, const Ranges& ranges,
                                    std::optional<ArrayId> onto, Site site) {
  const std::vector<Shape> bounds = bounds_of(arguments);
  const RangesTogether together = ranges_together(kernel, bounds);
  std::optional<ArrayId> all = onto;
  for (std::int64_t begin = 0; begin < ranges.extent; begin += ranges.length) {
    const std::int64_t end = std::min(begin + ranges.length, ranges.extent);
    const KernelOnRange on = on_range(kernel, bounds, ranges.label, {begin, end - 1});
    const std::size_t k = kernel_number(alone(on.kernel));
    if (reduces_onto(on.kernel, together.fold)) {
      all = make_by_one_call(k, arguments_on(on, arguments, site), all, site);
    } else {
      const ArrayId part = make_by_one_call(k, arguments_on(on, arguments, site), {}, site);
      all = all ? make_by_one_call(kernel_number(alone(together.fold)), {{*all, part}, {}}, {}, site) : part;
    }
  }
  if (is_identity(together.finish)) return *all;
  return make_by_one_call(kernel_number(alone(together.finish)), {{*all}, {}}, {}, site);
}

ArrayId TaskBuilder::make_by_one_call(std::size_t k, Arguments arguments, std::optional<ArrayId> onto, Site site) {
  return make_results(k, std::move(arguments), onto, site).front();
}

std::vector<ArrayId> TaskBuilder::make_results(std::size_t k, Arguments arguments, std::optional<ArrayId> onto,
                                               Site site) {
  for (std::size_t a = 0; a < arguments.arrays.size(); ++a) {
    for (auto view = views_.find(arguments.arrays[a]); view != views_.end(); view = views_.find(arguments.arrays[a])) {
      k = number_with_view(k, a, view->second.kernel);
      arguments.arrays[a] = view->second.of;
    }
  }
  for (std::size_t a = arguments.arrays.size(); a-- > 0;) {
    const ArrayId array = arguments.arrays[a];
    const auto made = positions_.find(array);
    if (made == positions_.end()) continue;
    const std::optional<std::size_t> without = number_without_positions(k, a, graph_[array].bound.front());
    if (!without) continue;
    k = *without;
    arguments.numbers.push_back(made->second);
    arguments.arrays.erase(arguments.arrays.begin() + static_cast<std::ptrdiff_t>(a));
  }
  k = narrow(k, arguments.arrays);
  const KernelCalls::Call& call = calls_[k](bounds_of(arguments));
  if (onto) arguments.arrays.push_back(*onto);
  std::vector<TaskArray> results;
  for (const std::size_t result : kernels_[k].results)
    results.push_back({kernels_[k].steps.steps[result].dtype, call.steps[result], site});
  for (ArrayId& array : arguments.arrays) array = stored(array);
  return add(CallKernel{k, call.flops, onto.has_value(), std::move(arguments.numbers)}, std::move(arguments.arrays),
             std::move(results));
}

std::size_t TaskBuilder::kernel_number(const TaskKernel& kernel) {
  const auto [first, last] = by_name_.equal_range(kernel.steps.name);
  for (auto same = first; same != last; ++same) {
    if (kernels_[same->second] == kernel) return same->second;
  }
  kernels_.push_back(kernel);
  calls_.emplace_back(kernels_.back().steps);
  by_name_.emplace(kernel.steps.name, kernels_.size() - 1);
  return kernels_.size() - 1;
}

ArrayId TaskBuilder::put_off(std::size_t k, const Arguments& arguments, Site site) {
  const auto [known, is_new] = group_->numbers.try_emplace({k, arguments, site}, group_->calls.size());
  if (!is_new) return group_->calls[known->second].makes;
  const Shape& bound = calls_[k](bounds_of(arguments)).bound;
  const ArrayId made = add({result_dtype(kernels_[k].steps), bound, site}, nobody);
  group_->calls.push_back({k, arguments, site, made, node_, false});
  return made;
}

std::map<ArrayId, ArrayId> TaskBuilder::end_group(const std::set<ArrayId>& wanted) {
  std::vector<PutOff> calls = std::move(group_->calls);
  group_.reset();
  std::map<ArrayId, std::size_t> makers;
  std::vector<std::size_t> parent(calls.size());  // up to the first of the calls that belong together
  const auto first_of = [&parent](std::size_t c) {
    while (parent[c] != c) c = parent[c] = parent[parent[c]];
    return c;
  };
  for (std::size_t c = 0; c < calls.size(); ++c) {
    parent[c] = c;
    calls[c].wanted = wanted.count(calls[c].makes) != 0;
    for (const ArrayId read : calls[c].arguments.arrays) {
      const auto maker = makers.find(read);
      if (maker == makers.end()) continue;
      const std::size_t other = first_of(maker->second);
      const std::size_t own = first_of(c);
      parent[std::max(other, own)] = std::min(other, own);
    }
    makers.emplace(calls[c].makes, c);
  }
  std::map<std::size_t, std::vector<PutOff>> together;
  for (std::size_t c = 0; c < calls.size(); ++c) together[first_of(c)].push_back(std::move(calls[c]));
  std::map<ArrayId, ArrayId> made;
  const IaId last = node_;
  for (const auto& [number, group] : together) make_together(group, made);
  node_ = last;
  return made;
}

std::optional<ArrayId> TaskBuilder::seen_through(std::size_t k, const Arguments& arguments, Site site) {
  const Kernel& kernel = kernels_[k].steps;
  if (most_bytes_ || kernel.steps.size() > 1 || view_of(kernel.steps.front()) == nullptr) return {};
  const ArrayId of = arguments.arrays.front();
  const auto known = called_.find({k, arguments});
  if (known != called_.end()) return known->second;
  const auto before = views_.find(of);
  const Strides strides = before == views_.end() ? row_major_strides(graph_[of].bound) : before->second.strides;
  const Vertex vertex = vertices_of(kernel, bounds_of(arguments)).front();
  std::optional<Strides> seen = view_strides(*view_of(vertex), strides);
  if (!seen) return {};
  const ArrayId made = add({vertex.dtype, vertex.bound, site}, nobody);
  views_.emplace(made, Viewed{k, of, *std::move(seen), node_, {}});
  return called_[{k, arguments}] = made;
}

std::optional<ArrayId> TaskBuilder::one_of_outputs(const Kernel& kernel, const Arguments& arguments, Site site) {
  const Opaque* const opaque = kernel.steps.size() == 1 ? opaque_of(kernel.steps.front()) : nullptr;
  if (opaque == nullptr) return std::nullopt;
  const std::vector<OpaqueResult> outputs = results_of(opaque->function);
  if (outputs.size() == 1) return std::nullopt;
  TaskKernel all{{std::string(name_of(outputs.front())), kernel.arguments, {}}, {}};
  for (const OpaqueResult& output : outputs) {
    all.results.push_back(all.steps.steps.size());
    opaque_of(all.steps.steps.emplace_back(kernel.steps.front()))->output = output.output;
  }
  Arguments stored_arguments = arguments;
  for (ArrayId& array : stored_arguments.arrays) array = stored(array);
  const std::size_t k = kernel_number(all);
  const auto [known, is_new] = outputs_.try_emplace({k, stored_arguments, is_shared() ? Site{} : site});
  if (is_new) known->second = make_results(k, std::move(stored_arguments), {}, site);
  return known->second[opaque->output];
}

std::size_t TaskBuilder::number_with_view(std::size_t k, std::size_t argument, std::size_t view) {
  const auto [known, is_new] = with_view_.try_emplace({k, argument, view});
  if (is_new) {
    const TaskKernel reader = kernels_[k];
    const Kernel& viewing = kernels_[view].steps;
    std::vector<DType> types = reader.steps.arguments;
    std::vector<std::size_t> reads(types.size());
    std::iota(reads.begin(), reads.end(), std::size_t{0});
    reads[argument] = types.size();
    types[argument] = viewing.arguments.front();
    known->second = kernel_number(merged({{viewing, {argument}, false}, {reader.steps, reads, true}}, types).kernel);
  }
  return known->second;
}

std::vector<TaskBuilder::PutOff> TaskBuilder::with_views(const std::vector<PutOff>& calls) const {
  std::vector<PutOff> all;
  std::set<ArrayId> known;
  for (const PutOff& call : calls) {
    std::vector<PutOff> views;  // each reads the next
    for (const ArrayId array : call.arguments.arrays) {
      const std::size_t first = views.size();
      for (auto view = views_.find(array); view != views_.end() && known.insert(view->first).second;
           view = views_.find(view->second.of))
        views.push_back({view->second.kernel, {{view->second.of}, {}}, call.site, view->first, view->second.node});
      std::reverse(views.begin() + static_cast<std::ptrdiff_t>(first), views.end());
    }
    all.insert(all.end(), views.begin(), views.end());
    all.push_back(call);
  }
  return all;
}

void TaskBuilder::make_together(const std::vector<PutOff>& readers, std::map<ArrayId, ArrayId>& made) {
  const std::vector<PutOff> calls = with_views(readers);
  Arguments arguments;
  std::vector<DType> types;
  std::map<ArrayId, std::size_t> values;  // of arrays read and results
  for (const PutOff& call : calls) values.emplace(call.makes, 0);
  for (const PutOff& call : calls) {
    for (const ArrayId array : call.arguments.arrays) {
      if (!values.emplace(array, arguments.arrays.size()).second) continue;
      arguments.arrays.push_back(array);
      types.push_back(graph_[array].dtype);
    }
  }
  std::vector<MergedKernel> kernels;
  for (const PutOff& call : calls) {
    arguments.numbers.insert(arguments.numbers.end(), call.arguments.numbers.begin(), call.arguments.numbers.end());
    kernels.push_back({kernels_[call.kernel].steps, {}, call.wanted, call.node});
  }
  types.resize(types.size() + arguments.numbers.size(), DType::i64);
  std::size_t number = arguments.arrays.size();
  for (std::size_t c = 0; c < calls.size(); ++c) {
    for (const ArrayId array : calls[c].arguments.arrays) kernels[c].reads.push_back(values.at(array));
    for (std::size_t n = 0; n < calls[c].arguments.numbers.size(); ++n) kernels[c].reads.push_back(number++);
    values.at(calls[c].makes) = types.size() + c;
  }
  const std::size_t k = kernel_number(merged(kernels, std::move(types)).kernel);
  const Site site = calls.front().site;
  if (most_bytes_ && bytes_needed_by(k, arguments) > *most_bytes_) return make_apart(calls, made);
  node_ = calls.back().node;
  for (const PutOff& call : calls) graph_.together[node_].insert(call.node);
  const auto known = called_together_.find({k, arguments});
  const std::vector<ArrayId> results =
      is_shared() && known != called_together_.end() ? known->second : make_results(k, arguments, {}, site);
  if (is_shared()) called_together_[{k, arguments}] = results;
  auto result = results.begin();
  for (const PutOff& call : calls) {
    if (call.wanted) made.emplace(call.makes, *result++);
  }
}

void TaskBuilder::make_apart(const std::vector<PutOff>& calls, std::map<ArrayId, ArrayId>& made) {
  for (const PutOff& call : calls) {
    node_ = call.node;
    Arguments own = call.arguments;
    for (ArrayId& array : own.arrays) {
      const auto other = made.find(array);
      array = other == made.end() ? array : other->second;
    }
    made.emplace(call.makes, this->call(kernels_[call.kernel].steps, own, call.site));
  }
}

std::int64_t TaskBuilder::bytes_needed_by(std::size_t k, const Arguments& arguments) {
  std::int64_t bytes = 0;
  for (const ArrayId array : arguments.arrays) bytes += positions_.count(array) != 0 ? 0 : bytes_of(graph_[array]);
  const std::vector<Shape>& steps = calls_[k](bounds_of(arguments)).steps;
  for (std::size_t s = 0; s < steps.size(); ++s) bytes += bytes_of({kernels_[k].steps.steps[s].dtype, steps[s], {}});
  return bytes;
}

std::optional<std::size_t> TaskBuilder::number_without_positions(std::size_t k, std::size_t argument, Extent extent) {
  const auto [known, is_new] = without_positions_.try_emplace({k, argument, extent});
  if (is_new) {
    const std::optional<Kernel> without = without_positions(kernels_[k].steps, argument, extent);
    if (without) known->second = kernel_number({*without, kernels_[k].results, kernels_[k].nodes});
  }
  return known->second;
}

ArrayId TaskBuilder::stored(ArrayId array) {
  const auto view = views_.find(array);
  return view == views_.end() ? stored_positions(array) : stored_view(array, view->second);
}

ArrayId TaskBuilder::stored_view(ArrayId array, Viewed& viewed) {
  if (viewed.stored) return *viewed.stored;
  std::size_t k = viewed.kernel;
  ArrayId of = viewed.of;
  for (auto before = views_.find(of); before != views_.end(); before = views_.find(of)) {
    k = number_with_view(k, 0, before->second.kernel);
    of = before->second.of;
  }
  const IaId reader = std::exchange(node_, viewed.node);
  viewed.stored = add(CallKernel{k, 0, false, {}}, {stored_positions(of)}, {graph_[array]}).front();
  node_ = reader;
  return *viewed.stored;
}

ArrayId TaskBuilder::stored_positions(ArrayId array) {
  const auto made = positions_.find(array);
  if (made == positions_.end()) return array;
  const Extent extent = graph_[array].bound.front();
  const Site site = graph_[array].site;
  const auto [known, is_new] = stored_.try_emplace({made->second, extent, is_shared() ? Site{} : site});
  if (is_new) {
    const std::size_t k = kernel_number(alone(positions_kernel(extent)));
    const KernelCalls::Call& call = calls_[k]({Shape{}});
    known->second = add(CallKernel{k, call.flops, false, {made->second}}, {}, {{DType::i64, call.bound, site}}).front();
  }
  return known->second;
}

std::vector<ArrayId> TaskBuilder::add(TaskOp op, std::vector<ArrayId> reads, std::vector<TaskArray> arrays) {
  std::vector<ArrayId> made;
  for (TaskArray& array : arrays) made.push_back(add(std::move(array), graph_.tasks.size()));
  graph_.tasks.push_back({std::move(op), std::move(reads), made, node_});
  return made;
}

bool TaskBuilder::is_computed(ArrayId array) const {
  const Task* maker = maker_of(array);
  while (maker != nullptr && std::holds_alternative<Send>(maker->op)) maker = maker_of(maker->reads.front());
  return maker == nullptr || std::holds_alternative<CallKernel>(maker->op);
}

std::size_t TaskBuilder::narrow(std::size_t k, std::vector<ArrayId>& arguments) {
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    if (is_computed(arguments[a])) continue;
    const auto [known, is_new] = narrow_kernels_.try_emplace({k, a});
    if (is_new) {
      if (std::optional<ConstantReads> reads = constant_reads(kernels_[k].steps, a))
        known->second = NarrowKernel{kernel_number({reads->kernel, kernels_[k].results, kernels_[k].nodes}),
                                     std::move(reads->positions)};
    }
    if (!known->second || !are_within(known->second->positions, graph_[arguments[a]].bound)) continue;
    arguments[a] = narrowed(arguments[a], known->second->positions);
    k = known->second->number;
  }
  return k;
}

ArrayId TaskBuilder::narrowed(ArrayId array, const ConstantPositions& positions) {
  if (narrowed_bound(graph_[array].bound, positions) == graph_[array].bound) return array;
  const auto [known, is_new] = narrowed_.try_emplace({array, positions});
  if (is_new) known->second = make_narrowed(array, positions);
  return known->second;
}

ArrayId TaskBuilder::make_narrowed(ArrayId array, const ConstantPositions& positions) {
  TaskArray part = graph_[array];
  part.bound = narrowed_bound(part.bound, positions);
  const Task maker = *maker_of(array);
  if (const auto* const whole = std::get_if<ReadInput>(&maker.op)) {
    ReadInput read = *whole;
    for (std::size_t d = 0; d < positions.size(); ++d) read.begin[d] += positions[d] ? positions[d]->first : 0;
    const ArrayId made = make(std::move(read), {}, std::move(part));
    graph_.tasks.back().node = maker.node;
    const auto of = whole_.find(array);
    whole_.emplace(made, of == whole_.end() ? array : of->second);
    return made;
  }
  if (const auto* const copy = std::get_if<CopyBoxes>(&maker.op)) {
    std::vector<ArrayId> reads;
    std::vector<CopyBoxes::Box> boxes;
    for (std::size_t i = 0; i < copy->boxes.size(); ++i) {
      const std::optional<CopyBoxes::Box> box = narrowed_box(copy->boxes[i], positions);
      if (!box) continue;
      reads.push_back(maker.reads[i]);
      boxes.push_back(*box);
    }
    return put_together(reads, std::move(boxes), std::move(part), copy->padding);
  }
  CopyBoxes::Box all{std::vector<std::int64_t>(part.bound.size(), 0), {}, graph_[array].bound};
  all.to = all.from;
  return put_together({array}, {*narrowed_box(all, positions)}, std::move(part));
}

void TaskBuilder::mark_shared_inputs() {
  for (Task& task : graph_.tasks) {
    auto* const read = std::get_if<ReadInput>(&task.op);
    if (read == nullptr) continue;
    const auto whole = whole_.find(task.makes.front());
    const auto& of = whole == whole_.end() ? *read : std::get<ReadInput>(maker_of(whole->second)->op);
    read->is_shared = shared_inputs_.count({of.input, of.begin}) != 0;
  }
}

void TaskBuilder::drop_unread() {
  std::vector<std::size_t> readers(graph_.arrays.size(), 0);
  for (const Task& task : graph_.tasks) {
    for (const ArrayId read : task.reads) ++readers[read.index];
  }
  const auto is_dropped = [&](const Task& task) {
    const bool only_copies = std::holds_alternative<ReadInput>(task.op) || std::holds_alternative<CopyBoxes>(task.op);
    return only_copies && readers[task.makes.front().index] == 0;
  };
  auto kept = graph_.tasks.rbegin();  // in place: a second list would be as long as the graph
  for (auto task = graph_.tasks.rbegin(); task != graph_.tasks.rend(); ++task) {
    if (!is_dropped(*task)) {
      if (kept != task) *kept = std::move(*task);
      ++kept;
      continue;
    }
    makers_[task->makes.front().index] = nobody;
    for (const ArrayId read : task->reads) --readers[read.index];
  }
  graph_.tasks.erase(graph_.tasks.begin(), kept.base());
}

void TaskBuilder::drop_unmade() {
  std::vector<ArrayId> moved;
  std::size_t kept = 0;
  for (std::size_t a = 0; a < graph_.arrays.size(); ++a) {
    moved.push_back({kept});
    if (makers_[a] == nobody) continue;
    if (kept != a) graph_.arrays[kept] = std::move(graph_.arrays[a]);
    ++kept;
  }
  graph_.arrays.resize(kept);
  for (Task& task : graph_.tasks) {
    for (ArrayId& read : task.reads) read = moved[read.index];
    for (ArrayId& made : task.makes) made = moved[made.index];
  }
}

}  // namespace einrel
