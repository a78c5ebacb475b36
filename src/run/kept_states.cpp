#include "run/kept_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/unnamed_file.h"

namespace einrel {
namespace {

using Begin = std::vector<std::int64_t>;

/// What two boxes have in common; nullopt where that is nothing.
std::optional<std::pair<Begin, Shape>> common(const Begin& a, const Shape& a_bound, const Begin& b,
                                              const Shape& b_bound) {
  std::pair<Begin, Shape> box;
  for (std::size_t d = 0; d < a.size(); ++d) {
    const std::int64_t first = std::max(a[d], b[d]);
    const std::int64_t end = std::min(a[d] + a_bound[d].value(), b[d] + b_bound[d].value());
    if (end <= first) return std::nullopt;
    box.first.push_back(first);
    box.second.emplace_back(end - first);
  }
  return box;
}

Begin difference(const Begin& a, const Begin& b) {
  Begin result;
  for (std::size_t d = 0; d < a.size(); ++d) result.push_back(a[d] - b[d]);
  return result;
}

std::int64_t bytes_of_element(const Tensor& tensor) { return static_cast<std::int64_t>(size_of(tensor.dtype())); }

/// Copies the elements of a chunk into a part that holds them all.
void put(const Begin& begin, const Tensor& chunk, KeptState::Part& part) {
  const Strides& strides = part.elements.strides();
  std::byte* const to =
      part.writable + offset_of(difference(begin, part.begin), strides) * bytes_of_element(part.elements);
  copy_elements(chunk.dtype(), chunk.shape(), {chunk.data(), chunk.strides()}, to, strides);
}

/// The boxes of a state that the tasks of a site read.
std::vector<std::pair<Begin, Shape>> boxes_read(const TaskGraph& graph, const TaskState& state, Site site) {
  std::vector<std::pair<Begin, Shape>> boxes;
  for (const Task& task : graph.tasks) {
    const auto* const read = std::get_if<ReadInput>(&task.op);
    if (read == nullptr || read->input != state.input || site_of(graph, task) != site) continue;
    std::pair<Begin, Shape> box{read->begin, graph[task.makes.front()].bound};
    if (std::find(boxes.begin(), boxes.end(), box) == boxes.end()) boxes.push_back(std::move(box));
  }
  return boxes;
}

/// Puts a box together from parts that do not overlap, where they lie otherwise than it.
void assemble(const TaskOutput& type, const std::deque<KeptState::Part>& parts, const Begin& begin, const Shape& bound,
              std::byte* to) {
  const Strides strides = row_major_strides(bound);
  std::int64_t missing = element_count(bound);
  for (const KeptState::Part& part : parts) {
    const auto box = common(begin, bound, part.begin, part.elements.shape());
    if (!box) continue;
    const Tensor from = part.elements.box(difference(box->first, part.begin), box->second);
    copy_elements(from.dtype(), box->second, {from.data(), from.strides()},
                  to + offset_of(difference(box->first, begin), strides) * bytes_of_element(from), strides);
    missing -= element_count(box->second);
  }
  if (missing > 0) throw Bug(fmt::format("a site reads more of the state '{}' than it has", type.name));
}

}  // namespace

KeptState::KeptState(TaskOutput type, bool is_whole, std::optional<std::string> folder)
    : type_(std::move(type)), is_whole_(is_whole), folder_(std::move(folder)) {}

KeptState::Part KeptState::make(const Begin& begin, const Shape& bound) const {
  const std::int64_t bytes = element_count(bound) * static_cast<std::int64_t>(size_of(type_.dtype));
  if (!folder_ || bytes == 0) {
    Tensor elements(type_.dtype, bound);
    std::byte* const writable = elements.mutable_data();
    return {begin, std::move(elements), writable};
  }
  const std::shared_ptr<std::byte[]> mapped = UnnamedFile(*folder_).map(bytes);
  return {begin, Tensor(type_.dtype, bound, row_major_strides(bound), mapped.get(), mapped), mapped.get()};
}

void KeptState::begin(const InputSource& source, const std::vector<std::pair<Begin, Shape>>& boxes) {
  for (const auto& [begin, bound] : boxes) {
    Part& part = now_.emplace_back(make(begin, bound));
    if (const auto* const maker = std::get_if<InputMaker>(&source)) {
      (*maker)(begin, bound, part.writable);
    } else {
      put(begin, std::get<Tensor>(source).box(begin, bound), part);
    }
  }
}

InputSource KeptState::now() const {
  if (is_whole_) return now_.front().elements;
  return [this](const Begin& begin, const Shape& bound, std::byte* to) { assemble(type_, now_, begin, bound, to); };
}

OutputWriter KeptState::next() {
  return [this](const Begin& begin, Tensor chunk) { write(begin, std::move(chunk)); };
}

void KeptState::write(const Begin& begin, Tensor chunk) {
  if (is_whole_ && !folder_ && chunk.shape() == type_.bound && chunk.has_owner() && chunk.is_row_major()) {
    next_ = {{begin, std::move(chunk)}};
    return;
  }
  Part* part = nullptr;
  {
    const std::lock_guard lock(mutex_);
    part = is_whole_ ? &part_for(Begin(type_.bound.size(), 0), type_.bound) : &part_for(begin, chunk.shape());
  }
  put(begin, chunk, *part);
}

KeptState::Part& KeptState::part_for(const Begin& begin, const Shape& bound) {
  const auto known = std::find_if(next_.begin(), next_.end(), [&](const Part& part) {
    return part.begin == begin && part.elements.shape() == bound;
  });
  return known == next_.end() ? next_.emplace_back(make(begin, bound)) : *known;
}

void KeptState::advance() {
  std::swap(now_, next_);
  std::erase_if(next_, [](const Part& part) { return part.writable == nullptr; });  // nobody can write there
}

bool KeptState::has_memory_of(const Tensor& tensor) const {
  const std::less<const std::byte*> before;
  const auto is_of = [&](const Part& part) {
    const std::byte* const first = part.elements.data();
    const std::int64_t bytes = element_count(part.elements.shape()) * bytes_of_element(part.elements);
    return !before(tensor.data(), first) && before(tensor.data(), first + bytes);
  };
  return std::any_of(now_.begin(), now_.end(), is_of) || std::any_of(next_.begin(), next_.end(), is_of);
}

bool KeptStates::have_memory_of(const Tensor& tensor) const {
  return std::any_of(states_.begin(), states_.end(),
                     [&](const KeptState& state) { return state.has_memory_of(tensor); });
}

KeptStates::KeptStates(const PlannedTasks& tasks, const Job& job, const std::optional<std::string>& folder)
    : job_(job) {
  for (const TaskState& state : tasks.states) states_.emplace_back(state.type, job.ranks == 1, folder);
}

void KeptStates::begin(const PlannedTasks& tasks, const GivenStates& given) {
  steps_done_ = given.steps_done;
  for (std::size_t s = 0; s < states_.size(); ++s) {
    const TaskState& state = tasks.states[s];
    const auto source = given.values.find(state.type.name);
    if (source == given.values.end())
      throw UserError(fmt::format("the state '{}' has no first value", state.type.name));
    check_type(state.type.name, state.type.dtype, state.type.bound, source->second);
    if (job_.ranks == 1) {
      states_[s].begin(source->second, {{Begin(state.type.bound.size(), 0), state.type.bound}});
    } else {
      states_[s].begin(source->second, boxes_read(tasks.graph, state, job_.rank));
    }
  }
}

}  // namespace einrel
