#pragma once

#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exec/tasks/constant_reads.h"
#include "exec/tasks/label_ranges.h"
#include "exec/tasks/task_graph.h"

namespace einrel {

/// The tuples of one site, by ascending key; a partial relation may have several of a key, in the order they arrived.
using SiteArrays = std::multimap<Key, ArrayId>;

/// What a kernel is called with.
struct Arguments {
  std::vector<ArrayId> arrays;
  std::vector<std::int64_t> numbers;
  auto operator<=>(const Arguments&) const = default;
};

/// Adds arrays and the tasks that make them to a graph.
class TaskBuilder {
 public:
  /// `most_bytes`: of kernel calls that need more, reductions are done in several, each for a range of a label.
  TaskBuilder(std::int64_t sites, SiteMemory memory, std::optional<std::int64_t> most_bytes = std::nullopt)
      : most_bytes_(most_bytes) {
    graph_.sites = sites;
    graph_.memory = memory;
  }

  bool is_shared() const { return graph_.memory == SiteMemory::shared; }
  const TaskArray& operator[](ArrayId id) const { return graph_[id]; }
  /// What is added from now on is a part of that operation.
  void begin(IaId node) { node_ = node; }
  TaskGraph take() {
    forget_calls();
    graph_.kernels.assign(std::make_move_iterator(kernels_.begin()), std::make_move_iterator(kernels_.end()));
    mark_shared_inputs();
    drop_unread();
    drop_unmade();
    return std::move(graph_);
  }

  ArrayId make(TaskOp op, std::vector<ArrayId> reads, TaskArray array) {
    for (ArrayId& read : reads) read = stored(read);
    return add(std::move(op), std::move(reads), std::vector{std::move(array)}).front();
  }
  /// An array of the numbers first, first + 1, ... Kernels work them out; it is only made for what is none.
  ArrayId positions(std::int64_t first, Extent extent, Site site) {
    const ArrayId array = add({DType::i64, {extent}, site}, nobody);
    positions_.emplace(array, first);
    return array;
  }
  std::size_t input(const StoredRelation& stored) {
    graph_.inputs.push_back(stored);
    return graph_.inputs.size() - 1;
  }
  /// Another output.
  void add_output(const std::string& name, const RelationType& type);
  /// Chunks go out to the last one.
  void write(const RelationType& type, const SiteArrays& chunks);

  /// The result of a kernel for these arguments; the same array when sites share memory and it was called with them
  /// before. Views of arrays are left to the kernels that read them, in which they cost nothing; only for what is none,
  /// and with `most_bytes`, are they made.
  ArrayId call(const Kernel& kernel, const Arguments& arguments, Site site) {
    if (is_identity(kernel)) return arguments.arrays.front();
    const std::size_t k = kernel_number(alone(kernel));
    if (group_) return put_off(k, arguments, site);
    if (const std::optional<ArrayId> seen = seen_through(k, arguments, site)) return *seen;
    if (const std::optional<ArrayId> output = one_of_outputs(kernel, arguments, site)) return *output;
    if (is_shared()) {
      const auto known = called_.find({k, arguments});
      if (known != called_.end()) return known->second;
    }
    const ArrayId made = make_by_call(k, arguments, {}, site);
    if (is_shared()) called_[{k, arguments}] = made;
    return made;
  }

  /// The results of a kernel for several arguments, each reduced with those before it, in one array; see reduces_onto.
  ArrayId call_onto(const Kernel& kernel, const std::vector<Arguments>& calls, Site site) {
    if (calls.size() == 1) return call(kernel, calls.front(), site);
    const std::size_t k = kernel_number(alone(kernel));
    const auto known = called_onto_.find({k, calls});
    if (is_shared() && known != called_onto_.end()) return known->second;
    std::optional<ArrayId> made;
    for (const Arguments& arguments : calls) made = make_by_call(k, arguments, made, site);
    if (is_shared()) called_onto_[{k, calls}] = *made;
    return *made;
  }

  /// From now on calls are put off, until end_group makes those together that read each other's results.
  void begin_group() { group_.emplace(); }
  /// `wanted` are the results of calls that others read, too. Gives the arrays to read in their place.
  std::map<ArrayId, ArrayId> end_group(const std::set<ArrayId>& wanted);

  /// Other sites than its own read the array as it is.
  void share(ArrayId array) {
    const Task* const maker = maker_of(array);
    const auto* const read = maker == nullptr ? nullptr : std::get_if<ReadInput>(&maker->op);
    if (read != nullptr) shared_inputs_.insert({read->input, read->begin});
  }

  /// The array itself; of a view, one that holds it in this order: what goes to several sites is the same on each.
  ArrayId unviewed(ArrayId array) { return views_.count(array) == 0 ? array : stored(array); }

  /// The array on another site; a view row-major, as it arrives.
  ArrayId send(ArrayId sends, Site to) {
    const ArrayId array = unviewed(sends);
    share(array);
    if (is_shared()) return array;
    if (const auto made = positions_.find(array); made != positions_.end())
      return positions(made->second, graph_[array].bound.front(), to);
    const TaskArray& sent = graph_[array];
    if (element_count(sent.bound) == 0) return make(CopyBoxes{}, {}, {sent.dtype, sent.bound, to});
    return make(Send{}, {array}, {sent.dtype, sent.bound, to});
  }

  /// An array put together from boxes of others, and of `padding` where these leave anything; one of them itself where
  /// that is the whole. With `most_bytes`, and where sites share memory, boxes of one input that lie there as they are
  /// wanted are read together.
  ArrayId put_together(const std::vector<ArrayId>& reads, std::vector<CopyBoxes::Box> boxes, TaskArray array,
                       std::optional<double> padding = std::nullopt);

 private:
  /// A call whose result is no array yet.
  struct PutOff {
    std::size_t kernel = 0;
    Arguments arguments;
    Site site = 0;
    ArrayId makes;
    IaId node;
    bool wanted = false;
  };
  struct Group {
    std::vector<PutOff> calls;
    std::map<std::tuple<std::size_t, Arguments, Site>, std::size_t> numbers;
  };
  ArrayId put_off(std::size_t k, const Arguments& arguments, Site site);
  /// Calls of one site, in order, as one where there is memory for that. Adds what to read in place of their results.
  void make_together(const std::vector<PutOff>& readers, std::map<ArrayId, ArrayId>& made);
  /// The same, one by one.
  void make_apart(const std::vector<PutOff>& calls, std::map<ArrayId, ArrayId>& made);
  std::vector<ArrayId> make_results(std::size_t k, Arguments arguments, std::optional<ArrayId> onto, Site site);
  std::int64_t bytes_needed_by(std::size_t k, const Arguments& arguments);

  std::optional<ReadInput> read_together(const std::vector<ArrayId>& reads,
                                         const std::vector<CopyBoxes::Box>& boxes) const;
  ArrayId make_by_call(std::size_t k, Arguments arguments, std::optional<ArrayId> onto, Site site);
  ArrayId make_by_one_call(std::size_t k, Arguments arguments, std::optional<ArrayId> onto, Site site);
  std::vector<Shape> bounds_of(const Arguments& arguments) const;
  /// The label whose ranges need least of what is read, and how many positions of it may be taken together.
  struct Ranges {
    std::size_t label = 0;
    std::int64_t extent = 0;
    std::int64_t length = 0;
  };
  ArrayId make_by_ranges(const Kernel& kernel, const Arguments& arguments, const Ranges& ranges,
                         std::optional<ArrayId> onto, Site site);
  std::optional<Ranges> ranges_of(const Kernel& kernel, const Arguments& arguments, const std::vector<Shape>& bounds);
  /// What a call needs while it runs, apart from its result.
  std::int64_t bytes_read(const std::vector<PartRead>& parts, const Arguments& arguments) const;
  /// What putting a part of an array together takes, of which nothing else is there; 0 where nothing is put together.
  std::int64_t bytes_copying(ArrayId array, std::int64_t part) const;
  /// What a kernel on a range is called with.
  Arguments arguments_on(const KernelOnRange& kernel, const Arguments& arguments, Site site);

  std::size_t kernel_number(const TaskKernel& kernel);

  /// Of the kernel that works out the positions that it would get as this argument.
  std::optional<std::size_t> number_without_positions(std::size_t k, std::size_t argument, Extent extent);

  /// What kernels that read it view in place of an array that nobody makes.
  struct Viewed {
    std::size_t kernel = 0;
    ArrayId of;
    Strides strides;  ///< over the elements of the array that it is a view of at last, which is row-major as a rule
    IaId node;
    std::optional<ArrayId> stored;  ///< once somebody needs it
  };
  /// The array itself, or one that holds its positions, or what it is a view of in this order.
  ArrayId stored(ArrayId array);
  ArrayId stored_view(ArrayId array, Viewed& viewed);
  ArrayId stored_positions(ArrayId array);
  /// The result of a kernel that is a view of its argument, if it is one that needs no copy.
  std::optional<ArrayId> seen_through(std::size_t k, const Arguments& arguments, Site site);
  /// The result of a kernel that is one output of linear algebra that has several: one call makes all of them.
  std::optional<ArrayId> one_of_outputs(const Kernel& kernel, const Arguments& arguments, Site site);
  /// The number of a kernel of one result that views its argument by itself.
  std::size_t number_with_view(std::size_t k, std::size_t argument, std::size_t view);
  /// These calls behind the views that they read.
  std::vector<PutOff> with_views(const std::vector<PutOff>& calls) const;
  /// Stands for no task.
  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);
  ArrayId add(TaskArray array, std::size_t maker) {
    graph_.arrays.push_back(std::move(array));
    makers_.push_back(maker);
    return {graph_.arrays.size() - 1};
  }
  /// Arrays and the task that makes them of arrays that are stored.
  std::vector<ArrayId> add(TaskOp op, std::vector<ArrayId> reads, std::vector<TaskArray> arrays);
  /// nullptr of positions.
  const Task* maker_of(ArrayId array) const {
    const std::size_t maker = makers_[array.index];
    return maker == nobody ? nullptr : &graph_.tasks[maker];
  }

  /// The number of a kernel that reads only what it needs of an argument that is read at constants, which becomes that;
  /// its own where there is no such argument. What a kernel made is read where it lies.
  std::size_t narrow(std::size_t k, std::vector<ArrayId>& arguments);
  /// These positions of an array, row-major where other sites read it, too; itself where they are all.
  ArrayId narrowed(ArrayId array, const ConstantPositions& positions);
  ArrayId make_narrowed(ArrayId array, const ConstantPositions& positions);
  /// Whether a kernel made it, here or on the site that sent it.
  bool is_computed(ArrayId array) const;

  /// What was looked up takes as much memory as the graph.
  void forget_calls() {
    calls_.clear();
    by_name_.clear();
    called_.clear();
    called_onto_.clear();
    called_together_.clear();
    outputs_.clear();
  }
  void mark_shared_inputs();
  /// Inputs and copies that nobody reads, since all that needed them take parts of them.
  void drop_unread();

  /// Positions and what is dropped are no arrays of the graph.
  void drop_unmade();

  /// A part of an input: which, and where it begins.
  using InputPart = std::pair<std::size_t, std::vector<std::int64_t>>;

  std::optional<std::int64_t> most_bytes_;
  TaskGraph graph_;
  IaId node_;
  std::vector<std::size_t> makers_;  // per array, the task that makes it
  std::set<InputPart> shared_inputs_;
  std::map<ArrayId, ArrayId> whole_;  // of inputs' parts, the array that they are of
  std::deque<TaskKernel> kernels_;    // calls_ refers to them
  std::vector<KernelCalls> calls_;
  std::unordered_multimap<std::string, std::size_t> by_name_;  // of kernels
  std::map<std::pair<std::size_t, Arguments>, ArrayId> called_;
  std::map<std::pair<std::size_t, std::vector<Arguments>>, ArrayId> called_onto_;
  std::map<std::pair<std::size_t, Arguments>, std::vector<ArrayId>> called_together_;
  std::map<std::tuple<std::size_t, Arguments, Site>, std::vector<ArrayId>> outputs_;  // of linear algebra
  std::optional<Group> group_;
  std::map<ArrayId, Viewed> views_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::size_t> with_view_;  // kernel, argument, view
  std::map<ArrayId, std::int64_t> positions_;  // arrays that nobody makes, by their first number
  /// Those of them that somebody needs, as arrays: by their first number and how many they are, on each site.
  std::map<std::tuple<std::int64_t, Extent, Site>, ArrayId> stored_;
  std::map<std::tuple<std::size_t, std::size_t, Extent>, std::optional<std::size_t>> without_positions_;
  struct NarrowKernel {
    std::size_t number = 0;
    ConstantPositions positions;
  };
  std::map<std::pair<std::size_t, std::size_t>, std::optional<NarrowKernel>> narrow_kernels_;  // by kernel and argument
  std::map<std::pair<ArrayId, ConstantPositions>, ArrayId> narrowed_;
};

}  // namespace einrel
