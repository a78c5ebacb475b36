#include "exec/tasks/fuse.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "base/error.h"
#include "exec/tasks/chunk_kernel.h"
#include "exec/tasks/label_values.h"
#include "exec/tasks/merge_kernels.h"
#include "ia/infer.h"
#include "kernel/fusion/fusion.h"
#include "tra/infer.h"

namespace einrel {
namespace {

/// The kernel that an operation calls once per tuple; nullptr of others.
const Kernel* kernel_called(const IaOp& op) {
  if (const auto* const join = std::get_if<LocalJoin>(&op)) return &join->kernel;
  const auto* const map = std::get_if<LocalMap>(&op);
  return map == nullptr ? nullptr : std::get_if<Kernel>(&map->arrays);
}

/// Whether all others of these relations are read alike for all tuples of one: their keys, but for what is joined with
/// its key, have one value.
bool are_one_value_beside(const LocalJoin& join, const std::vector<const RelationType*>& relations, std::size_t one) {
  std::vector<std::size_t> arities;
  for (const RelationType* const relation : relations) arities.push_back(relation->key_arity);
  const std::vector<JoinedRelation> joined = joined_relations(join.keys_left, join.keys_right, arities);
  for (std::size_t r = 0; r < relations.size(); ++r) {
    const Key end = frontier(*relations[r]);
    for (std::size_t p = 0; p < end.size(); ++p) {
      if (end[p] > 1 && !is_subset({joined[r].places[p]}, joined[one].places)) return false;
    }
  }
  return true;
}

std::size_t tuple_count(const PhysicalType& type, std::int64_t sites) {
  return is_everywhere(type) ? type.relation.chunks.size() * static_cast<std::size_t>(sites) : type.tuples.size();
}

/// How operations of a plan relate: which of them call kernels on the same tuples, and what must run before what.
class Relations {
 public:
  Relations(const IaStore& store, const IaPlan& plan, const std::vector<IaId>& nodes, const std::set<IaId>& apart)
      : store_(store), apart_(apart) {
    for (const IaId id : nodes) {
      for (const IaId input : store[id].inputs) readers_[input].push_back(id);
    }
    for (const IaOutput& output : plan) outputs_.insert(output.id);
    for (const IaId id : nodes) origins_[id] = passes_on(id) ? origins_.at(store[id].inputs.front()) : id;
    find_levels(nodes);
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
      if (is_read_elsewhere(*id)) read_elsewhere_.insert(*id);
    }
  }

  bool calls(IaId id) const {
    const Kernel* const kernel = kernel_called(store_[id].op);
    return kernel != nullptr && !is_identity(*kernel) && apart_.count(id) == 0 && !store_[id].type.partial &&
           !store_[id].type.relation.chunks.empty();
  }
  /// Whether it only gives arrays other keys.
  bool passes_on(IaId id) const {
    const Kernel* const kernel = kernel_called(store_[id].op);
    return kernel != nullptr && is_identity(*kernel) && std::holds_alternative<LocalMap>(store_[id].op);
  }
  /// What made the arrays that it passes on.
  IaId origin(IaId id) const { return origins_.at(id); }
  /// Whether each tuple of the operation, which calls a kernel, is made of one of that input, and each of that is read
  /// for one: then both have the same sites and chunks.
  bool follows(IaId id, std::size_t input) const {
    const IaNode& node = store_[id];
    const IaNode& read = store_[node.inputs[input]];
    if (tuple_count(node.type, store_.sites()) != tuple_count(read.type, store_.sites())) return false;
    if (node.type.relation.chunks.size() != read.type.relation.chunks.size()) return false;
    const auto* const join = std::get_if<LocalJoin>(&node.op);
    if (join == nullptr) return true;
    std::vector<const RelationType*> relations;
    for (const IaId each : node.inputs) relations.push_back(&store_[each].type.relation);
    return are_one_value_beside(*join, relations, input);
  }
  /// Operations whose kernels may run together have the same level: none of them waits for another by way of one that
  /// moves something or reads other tuples.
  int level(IaId id) const { return levels_.at(id); }
  const std::vector<IaId>& readers(IaId id) const {
    static const std::vector<IaId> none;
    const auto found = readers_.find(id);
    return found == readers_.end() ? none : found->second;
  }
  bool is_output(IaId id) const { return outputs_.count(id) != 0; }
  /// Whether something else than kernels of its level, tuple by tuple, reads the arrays that it gives.
  bool are_read_elsewhere(IaId id) const { return read_elsewhere_.count(id) != 0; }

 private:
  /// Readers come first.
  bool is_read_elsewhere(IaId id) const {
    if (is_output(id)) return true;
    const std::vector<IaId>& all = readers(id);
    return std::any_of(all.begin(), all.end(), [&](IaId reader) {
      if (passes_on(reader)) return are_read_elsewhere(reader);
      if (!calls(reader) || level(reader) != level(origin(id))) return true;
      const std::vector<IaId>& inputs = store_[reader].inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] == id && !follows(reader, i)) return true;
      }
      return false;
    });
  }
  /// By how many levels the reader of an input stands later at least.
  int step(IaId id, std::size_t input) const {
    if (passes_on(id)) return 0;
    if (!calls(id)) return 1;
    const IaId origin_of_input = origin(store_[id].inputs[input]);
    return calls(origin_of_input) && !follows(id, input) ? 1 : 0;
  }
  /// As late as what reads them allows: next to it.
  void find_levels(const std::vector<IaId>& nodes) {
    for (const IaId id : nodes) {
      int& level = levels_[id];
      for (std::size_t i = 0; i < store_[id].inputs.size(); ++i)
        level = std::max(level, levels_.at(store_[id].inputs[i]) + step(id, i));
    }
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
      int latest = std::numeric_limits<int>::max();
      for (const IaId reader : readers(*id)) {
        const std::vector<IaId>& inputs = store_[reader].inputs;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          if (inputs[i] == *id) latest = std::min(latest, levels_.at(reader) - step(reader, i));
        }
      }
      if (!is_output(*id) && latest != std::numeric_limits<int>::max()) levels_.at(*id) = latest;
    }
  }

  const IaStore& store_;
  const std::set<IaId>& apart_;
  std::map<IaId, std::vector<IaId>> readers_;
  std::set<IaId> outputs_;
  std::map<IaId, IaId> origins_;
  std::map<IaId, int> levels_;
  std::set<IaId> read_elsewhere_;
};

/// An argument, or the result of a kernel.
struct LevelValue {
  bool is_result = false;
  std::size_t number = 0;
};

/// The kernels of the operations of one level, on their first chunks, as they would be one kernel.
struct Level {
  std::vector<MergedKernel> kernels;
  std::vector<std::vector<LevelValue>> reads;  ///< per kernel
  std::vector<std::pair<DType, Shape>> arguments;
  std::vector<Shape> results;           ///< the bounds of the results
  std::map<IaId, std::size_t> made;     ///< the kernels of its operations
  std::map<IaId, std::size_t> brought;  ///< the arguments that are what they read else

  const Shape& bound(const LevelValue& value) const {
    return value.is_result ? results[value.number] : arguments[value.number].second;
  }
};

/// The bound of what a kernel makes of these arrays. Nothing where they do not fit: the first chunks of what a join
/// brings together need not meet, and chunks may differ.
std::optional<Shape> result_of(const Kernel& kernel, const std::vector<Shape>& bounds) {
  try {
    return program_of(alone(kernel), bounds).vertices.back().bound;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

class Fusing {
 public:
  Fusing(const IaStore& store, const Relations& relations) : store_(store), relations_(relations) {}

  void add(IaId id) {
    if (!relations_.calls(id)) return;
    Level& level = levels_[relations_.level(id)];
    const IaNode& node = store_[id];
    Kernel kernel = *kernel_called(node.op);
    std::vector<LevelValue> reads;
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i)
      reads.push_back(i < node.inputs.size() ? value(id, i, level) : argument({DType::i64, {}}, level));
    for (std::size_t i = node.inputs.size(); i-- > 0;) work_out_positions(node.inputs[i], i, kernel, reads, level);
    std::vector<Shape> bounds;
    for (const LevelValue& read : reads) bounds.push_back(level.bound(read));
    std::optional<Shape> result = result_of(kernel, bounds);
    if (!result) return;
    level.made[id] = level.kernels.size();
    level.kernels.push_back({std::move(kernel), {}, relations_.are_read_elsewhere(id), id});
    level.reads.push_back(std::move(reads));
    level.results.push_back(*std::move(result));
  }

  /// The operations whose kernels should run together; each stands in one group at most.
  std::vector<std::vector<IaId>> groups() {
    std::vector<std::vector<IaId>> groups;
    for (auto& [number, level] : levels_) add_groups(level, groups);
    return groups;
  }

 private:
  static LevelValue argument(std::pair<DType, Shape> type, Level& level) {
    level.arguments.push_back(std::move(type));
    return {false, level.arguments.size() - 1};
  }

  LevelValue value(IaId id, std::size_t i, Level& level) const {
    const IaId read = store_[id].inputs[i];
    const auto made = level.made.find(relations_.origin(read));
    if (made != level.made.end() && relations_.follows(id, i)) return {true, made->second};
    const auto known = level.brought.find(read);
    if (known != level.brought.end()) return {false, known->second};
    const RelationType& type = store_[read].type.relation;
    const LevelValue value = argument({type.dtype, type.chunks.front().bound}, level);
    level.brought[read] = value.number;
    return value;
  }

  /// Tasks work out positions of labels: no array is read that kernels would have in common.
  void work_out_positions(IaId input, std::size_t number, Kernel& kernel, std::vector<LevelValue>& reads,
                          Level& level) const {
    const IaNode& read = store_[relations_.origin(input)];
    if (!std::holds_alternative<LabelPositions>(read.op)) return;
    const Extent extent = read.type.relation.chunks.front().bound.front();
    std::optional<Kernel> without = without_positions(kernel, number, extent);
    if (!without) return;
    kernel = *std::move(without);
    reads.erase(reads.begin() + static_cast<std::ptrdiff_t>(number));
    reads.push_back(argument({DType::i64, {}}, level));
  }

  /// A fusion of some steps of an operation is none of it: what waits for others steps would make the others wait for
  /// it.
  static void add_groups(Level& level, std::vector<std::vector<IaId>>& groups) {
    if (level.kernels.empty()) return;
    const std::size_t count = level.arguments.size();
    std::vector<DType> types;
    std::vector<ArrayLayout> layouts;
    for (const auto& [type, bound] : level.arguments) {
      types.push_back(type);
      layouts.push_back(row_major_layout(type, bound));
    }
    for (std::size_t k = 0; k < level.kernels.size(); ++k) {
      for (const auto& [is_result, number] : level.reads[k])
        level.kernels[k].reads.push_back(is_result ? count + number : number);
    }
    const MergedKernels all = merged(level.kernels, std::move(types));
    std::map<IaId, std::vector<IaId>> computed;  // by the operation of the step, what is computed there
    std::map<IaId, std::size_t> steps;
    for (std::size_t k = 0; k < level.kernels.size(); ++k)
      computed[all.kernel.nodes[all.steps[k]]].push_back(*level.kernels[k].node);
    for (const IaId node : all.kernel.nodes) ++steps[node];
    for (const Fusion& fusion : chunk_program(all.kernel, layouts, false).fusions) {
      std::map<IaId, std::size_t> fused;
      for (const std::size_t member : fusion.members) ++fused[all.kernel.nodes[member - count]];
      std::vector<IaId> group;
      const bool are_whole = std::all_of(fused.begin(), fused.end(),
                                         [&](const auto& each) { return each.second == steps.at(each.first); });
      if (fused.size() < 2 || !are_whole) continue;
      for (const auto& [node, number] : fused) {
        const std::vector<IaId> own = std::move(computed.extract(node).mapped());
        group.insert(group.end(), own.begin(), own.end());
      }
      groups.push_back(std::move(group));
    }
    for (auto& [node, own] : computed) {
      if (own.size() > 1) groups.push_back(std::move(own));  // with what is computed for it alone
    }
  }

  const IaStore& store_;
  const Relations& relations_;
  std::map<int, Level> levels_;
};

/// The groups, with what passes arrays on inside of them, and every other operation by itself, each after what it reads
/// and otherwise in the order of their last members.
class Ordering {
 public:
  Ordering(const IaStore& store, const std::vector<IaId>& nodes, const Relations& relations)
      : store_(store), nodes_(nodes), relations_(relations) {}

  NodeOrder order(std::vector<std::vector<IaId>> groups) {
    for (std::vector<IaId>& group : groups) {
      for (const IaId member : group) group_of_[member] = units_.size();
      units_.emplace_back();
    }
    take_in_what_passes_on();
    for (const IaId id : nodes_) {
      if (group_of_.emplace(id, units_.size()).second) units_.emplace_back();
    }
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      Unit& unit = units_[group_of_.at(nodes_[n])];
      unit.nodes.members.push_back(nodes_[n]);
      unit.last = n;
      if (is_read_outside(nodes_[n])) unit.nodes.wanted.insert(nodes_[n]);
    }
    return sorted();
  }

 private:
  struct Unit {
    FusedNodes nodes;
    std::size_t last = 0;  ///< where its last member stands
    std::size_t waits = 0;
    std::vector<std::size_t> readers;
  };

  bool is_read_outside(IaId id) const {
    const std::vector<IaId>& readers = relations_.readers(id);
    const std::size_t own = group_of_.at(id);
    return relations_.is_output(id) ||
           std::any_of(readers.begin(), readers.end(), [&](IaId reader) { return group_of_.at(reader) != own; });
  }

  /// Last ones first, since one may pass on to another.
  void take_in_what_passes_on() {
    for (auto id = nodes_.rbegin(); id != nodes_.rend(); ++id) {
      if (!relations_.passes_on(*id)) continue;
      const auto group = group_of_.find(relations_.origin(*id));
      const std::vector<IaId>& readers = relations_.readers(*id);
      const bool is_inside = group != group_of_.end() && std::any_of(readers.begin(), readers.end(), [&](IaId reader) {
                               const auto other = group_of_.find(reader);
                               return other != group_of_.end() && other->second == group->second;
                             });
      if (is_inside) group_of_[*id] = group->second;
    }
  }

  NodeOrder sorted() {
    for (const IaId id : nodes_) {
      const std::size_t own = group_of_.at(id);
      for (const IaId input : store_[id].inputs) {
        if (group_of_.at(input) == own) continue;
        units_[group_of_.at(input)].readers.push_back(own);
        ++units_[own].waits;
      }
    }
    using Next = std::pair<std::size_t, std::size_t>;  // last, unit
    std::priority_queue<Next, std::vector<Next>, std::greater<>> ready;
    const auto note = [&](std::size_t u) {
      if (units_[u].waits == 0) ready.emplace(units_[u].last, u);
    };
    for (std::size_t u = 0; u < units_.size(); ++u) note(u);
    NodeOrder order;
    while (!ready.empty()) {
      const std::size_t u = ready.top().second;
      ready.pop();
      order.push_back(std::move(units_[u].nodes));
      for (const std::size_t reader : units_[u].readers) {
        --units_[reader].waits;
        note(reader);
      }
    }
    invariant(order.size() == units_.size(), "operations that run together do not wait for each other");
    return order;
  }

  const IaStore& store_;
  const std::vector<IaId>& nodes_;
  const Relations& relations_;
  std::map<IaId, std::size_t> group_of_;
  std::vector<Unit> units_;
};

}  // namespace

NodeOrder nodes_together(const IaStore& store, const IaPlan& plan, const std::vector<IaId>& nodes,
                         const std::set<IaId>& apart) {
  const Relations relations(store, plan, nodes, apart);
  Fusing fusing(store, relations);
  for (const IaId id : nodes) fusing.add(id);
  return Ordering(store, nodes, relations).order(fusing.groups());
}

}  // namespace einrel
