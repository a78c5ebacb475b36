#include "exec/tasks/bring_once.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/error.h"

namespace einrel {
namespace {

/// Copies tasks from one graph to another, with the arrays that they name.
class PartOfGraph {
 public:
  PartOfGraph(const TaskGraph& whole, TaskGraph& part) : whole_(whole), part_(part), there_(whole.arrays.size()) {}

  ArrayId array(ArrayId id) {
    std::optional<ArrayId>& there = there_[id.index];
    if (!there) {
      there = ArrayId{part_.arrays.size()};
      part_.arrays.push_back(whole_[id]);
    }
    return *there;
  }
  void add(Task task) {
    for (std::vector<ArrayId>* const arrays : {&task.reads, &task.makes}) {
      for (ArrayId& id : *arrays) id = array(id);
    }
    part_.tasks.push_back(std::move(task));
  }

 private:
  const TaskGraph& whole_;
  TaskGraph& part_;
  std::vector<std::optional<ArrayId>> there_;
};

class TakingOut {
 public:
  TakingOut(const TaskGraph& whole, const std::set<IaId>& nodes)
      : whole_(whole),
        is_taken_(whole.tasks.size(), false),
        maker_(whole.arrays.size(), 0),
        is_read_by_taken_(whole.arrays.size(), false),
        is_read_by_others_(whole.arrays.size(), false) {
    for (std::size_t t = 0; t < whole.tasks.size(); ++t) {
      const Task& task = whole.tasks[t];
      for (const ArrayId made : task.makes) maker_[made.index] = t;
      is_taken_[t] = !task.reads.empty() && nodes.contains(task.node);
      for (const ArrayId read : task.reads) {
        (is_taken_[t] ? is_read_by_taken_ : is_read_by_others_)[read.index] = true;
        invariant(!is_taken_[t] || is_input(read) || is_taken_[maker_[read.index]],
                  "what is brought once is a part of inputs");
      }
    }
  }

  /// And leaves the others in `left`.
  BroughtOnce run(TaskGraph& left) {
    BroughtOnce brought{{whole_.sites, whole_.memory, whole_.inputs, {}, {}, {}, {}, {}}, {}, {}};
    left = {whole_.sites, whole_.memory, whole_.inputs, whole_.kernels, {}, {}, whole_.outputs, whole_.together};
    PartOfGraph once(whole_, brought.graph);
    PartOfGraph others(whole_, left);
    for (std::size_t t = 0; t < whole_.tasks.size(); ++t) {
      const Task& task = whole_.tasks[t];
      if (is_taken_[t]) {
        once.add(task);
        if (is_read_by_others_[task.makes.front().index]) hand_over(task, once, others, brought, left);
      } else if (is_input_read(task)) {
        if (is_read_by_taken_[task.makes.front().index]) once.add(task);
        if (is_read_by_others_[task.makes.front().index]) others.add(task);
      } else {
        others.add(task);
      }
    }
    return brought;
  }

 private:
  static bool is_input_read(const Task& task) { return std::holds_alternative<ReadInput>(task.op); }
  bool is_input(ArrayId array) const { return is_input_read(whole_.tasks[maker_[array.index]]); }

  /// The input that an array is a part of.
  std::size_t input_of(ArrayId array) const {
    const Task* maker = &whole_.tasks[maker_[array.index]];
    while (!is_input_read(*maker)) maker = &whole_.tasks[maker_[maker->reads.front().index]];
    return std::get<ReadInput>(maker->op).input;
  }

  void hand_over(const Task& task, PartOfGraph& once, PartOfGraph& others, BroughtOnce& brought, TaskGraph& left) {
    const ArrayId made = task.makes.front();
    const TaskArray& array = whole_[made];
    const std::size_t number = brought.of.size();
    brought.of.push_back(input_of(made));
    brought.sites.push_back(array.site);
    const std::vector<std::int64_t> begin(array.bound.size(), 0);
    // No name of the program's has such a sign in it.
    const std::string name = fmt::format("{}#{}", whole_.inputs[brought.of.back()].name, number);
    brought.graph.outputs.push_back({name, array.dtype, array.bound});
    once.add({WriteOutput{number, begin}, {made}, {}, task.node});
    left.inputs.push_back({name, array.dtype, array.bound, {}});
    others.add({ReadInput{whole_.inputs.size() + number, begin}, {}, {made}, task.node});
  }

  const TaskGraph& whole_;
  std::vector<bool> is_taken_;      // by task
  std::vector<std::size_t> maker_;  // by array, the task
  std::vector<bool> is_read_by_taken_;
  std::vector<bool> is_read_by_others_;
};

}  // namespace

BroughtOnce take_out_brought(TaskGraph& graph, const std::set<IaId>& nodes) {
  const TaskGraph whole = std::move(graph);
  return TakingOut(whole, nodes).run(graph);
}

}  // namespace einrel
