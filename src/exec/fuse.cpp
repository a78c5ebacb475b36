#include "exec/fuse.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "base/error.h"
#include "exec/chunk_kernel.h"
#include "exec/label_values.h"
#include "exec/merge_kernels.h"
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

bool is_one_value(const RelationType& type, const KeyPositions& besides) {
  const Key end = frontier(type);
  for (std::size_t i = 0; i < end.size(); ++i) {
    if (end[i] > 1 && std::find(besides.begin(), besides.end(), i) == besides.end()) return false;
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
    const RelationType& other = store_[node.inputs[1 - input]].type.relation;
    return is_one_value(other, input == 0 ? join->keys_right : join->keys_left);
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

/// What the operations of one level compute on their first chunks.
struct LevelProgram {
  EinGraph graph;
  std::map<IaId, VertexId> values;              ///< of its operations
  std::map<IaId, VertexId> inputs;              ///< what they read else
  std::vector<std::optional<IaId>> operations;  ///< by vertex, those that it belongs to
};

/// A kernel on these arrays. Nothing where they do not fit: the first chunks of what a join brings together need not
/// meet, and chunks may differ.
std::optional<EinGraph> steps_on(const Kernel& kernel, const std::vector<Shape>& bounds) {
  try {
    return program_of(alone(kernel), bounds);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

/// `inner` computed in the kernel that reads it as that argument, and nowhere else; its arguments come behind the
/// others of `outer`. Nothing where it stays a step of its own.
std::optional<Kernel> with_part(const Kernel& inner, const Kernel& outer, std::size_t argument) {
  std::vector<DType> types;
  std::vector<std::size_t> reads;
  const std::size_t count = inner.arguments.size() + outer.arguments.size() - 1;
  for (std::size_t a = 0; a < outer.arguments.size(); ++a) {
    reads.push_back(a == argument ? count : types.size());
    if (a != argument) types.push_back(outer.arguments[a]);
  }
  std::vector<std::size_t> own(inner.arguments.size());
  std::iota(own.begin(), own.end(), types.size());
  types.insert(types.end(), inner.arguments.begin(), inner.arguments.end());
  TaskKernel all = merged({{inner, own, false}, {outer, reads, true}}, std::move(types));
  if (all.steps.steps.size() + 1 != inner.steps.size() + outer.steps.size()) return std::nullopt;
  return std::move(all.steps);
}

class Fusing {
 public:
  Fusing(const IaStore& store, const Relations& relations) : store_(store), relations_(relations) {}

  void add(IaId id) {
    if (!relations_.calls(id)) return;
    LevelProgram& program = programs_[relations_.level(id)];
    const IaNode& node = store_[id];
    Part own{*kernel_called(node.op), {}, {id}};
    for (std::size_t i = 0; i < own.kernel.arguments.size(); ++i) {
      const bool is_part = i < node.inputs.size() && is_part_of(id, node.inputs[i]);
      own.arguments.push_back(is_part                  ? VertexId{}
                              : i < node.inputs.size() ? value(id, i, program)
                                                       : input({DType::i64, {}}, program));
    }
    for (std::size_t i = node.inputs.size(); i-- > 0;) {  // each may take its place and add others behind
      if (is_part_of(id, node.inputs[i])) {
        take_in(node.inputs[i], i, own, program);
      } else {
        work_out_positions(store_[relations_.origin(node.inputs[i])], i, own, program);
      }
    }
    if (is_part_of_reader(id)) {
      parts_.emplace(id, std::move(own));
    } else {
      emit(id, own, program);
    }
  }

  /// The operations whose kernels should run together; each stands in one group at most. A fusion of some steps of an
  /// operation is none of it: what waits for others steps would make the others wait for it.
  std::vector<std::vector<IaId>> groups() const {
    std::vector<std::vector<IaId>> groups;
    std::set<IaId> taken;
    const auto add_group = [&](const std::vector<IaId>& operations) {
      std::vector<IaId> group;
      for (const IaId id : operations) {
        const std::vector<IaId>& members = emitted_.at(id).members;
        group.insert(group.end(), members.begin(), members.end());
        taken.insert(id);
      }
      std::sort(group.begin(), group.end());
      if (group.size() > 1) groups.push_back(std::move(group));
    };
    for (const auto& [level, program] : programs_) {
      for (const Fusion& fusion : find_fusions(program.graph)) {
        std::map<IaId, std::size_t> steps;
        for (const std::size_t member : fusion.members) ++steps[*program.operations[member]];
        std::vector<IaId> group;
        for (const auto& [id, count] : steps) {
          if (count == emitted_.at(id).steps) group.push_back(id);
        }
        if (group.size() > 1 && group.size() == steps.size()) add_group(group);
      }
    }
    for (const auto& [id, emitted] : emitted_) {
      if (taken.count(id) == 0) add_group({id});  // with what was computed for it alone
    }
    return groups;
  }

 private:
  VertexId input(const std::pair<DType, Shape>& type, LevelProgram& program) const {
    program.graph.vertices.push_back({"", type.first, type.second, {}, Input{}, {}});
    program.operations.emplace_back();
    return VertexId{program.graph.vertices.size() - 1};
  }

  VertexId value(IaId id, std::size_t i, LevelProgram& program) const {
    const IaId read = store_[id].inputs[i];
    const IaId origin = relations_.origin(read);
    const auto member = program.values.find(origin);
    if (member != program.values.end() && relations_.follows(id, i)) return member->second;
    const auto known = program.inputs.find(read);
    if (known != program.inputs.end()) return known->second;
    const RelationType& type = store_[read].type.relation;
    return program.inputs[read] = input({type.dtype, type.chunks.front().bound}, program);
  }

  /// What an operation computes together with others that only it reads.
  struct Part {
    Kernel kernel;
    std::vector<VertexId> arguments;
    std::vector<IaId> members;
  };
  /// An operation in a level's program.
  struct Emitted {
    std::vector<IaId> members;
    std::size_t steps = 0;
  };

  /// Whether an input is computed for this operation alone, and not added yet.
  bool is_part_of(IaId id, IaId input) const {
    return parts_.count(input) != 0 && relations_.readers(input).front() == id;
  }

  /// Tasks work out positions of labels: no array is read that kernels would have in common.
  void work_out_positions(const IaNode& read, std::size_t argument, Part& own, LevelProgram& program) const {
    if (!std::holds_alternative<LabelPositions>(read.op)) return;
    const Extent extent = read.type.relation.chunks.front().bound.front();
    std::optional<Kernel> without = without_positions(own.kernel, argument, extent);
    if (!without) return;
    own.kernel = *std::move(without);
    own.arguments.erase(own.arguments.begin() + static_cast<std::ptrdiff_t>(argument));
    own.arguments.push_back(input({DType::i64, {}}, program));
  }

  /// Whether the only one that reads the operation, tuple by tuple, computes it: as one vertex of several operands,
  /// which binary joins take apart.
  bool is_part_of_reader(IaId id) const {
    if (relations_.are_read_elsewhere(id)) return false;
    const std::vector<IaId>& readers = relations_.readers(id);
    if (readers.size() != 1 || relations_.passes_on(readers.front())) return false;
    const IaNode& reader = store_[readers.front()];
    const Kernel& kernel = *kernel_called(reader.op);
    for (std::size_t i = 0; i < reader.inputs.size(); ++i) {
      if (reader.inputs[i] == id) return with_part(*kernel_called(store_[id].op), kernel, i).has_value();
    }
    return false;
  }

  /// Computes a part in the kernel that reads it as that argument, or before it.
  void take_in(IaId id, std::size_t argument, Part& own, LevelProgram& program) {
    const Part part = std::move(parts_.extract(id).mapped());
    std::optional<Kernel> together = with_part(part.kernel, own.kernel, argument);
    if (!together) {
      emit(id, part, program);
      own.arguments[argument] = value(own.members.front(), argument, program);  // its own, or one of what does not fit
      return;
    }
    own.kernel = *std::move(together);
    own.arguments.erase(own.arguments.begin() + static_cast<std::ptrdiff_t>(argument));
    own.arguments.insert(own.arguments.end(), part.arguments.begin(), part.arguments.end());
    own.members.insert(own.members.end(), part.members.begin(), part.members.end());
  }

  void emit(IaId id, const Part& part, LevelProgram& program) {
    std::vector<Shape> bounds;
    for (const VertexId argument : part.arguments) bounds.push_back(program.graph[argument].bound);
    const std::optional<EinGraph> steps = steps_on(part.kernel, bounds);
    if (!steps) return;
    for (const ScalarDeclaration& scalar : steps->scalars) {
      if (scalars_[relations_.level(id)].insert(scalar.name).second) program.graph.scalars.push_back(scalar);
    }
    const std::size_t first = program.graph.vertices.size();
    for (std::size_t s = bounds.size(); s < steps->vertices.size(); ++s) {
      Vertex vertex = steps->vertices[s];
      for (VertexId& read : vertex.inputs)
        read = read.index < bounds.size() ? part.arguments[read.index] : VertexId{first + read.index - bounds.size()};
      program.graph.vertices.push_back(std::move(vertex));
      program.operations.emplace_back(id);
    }
    const VertexId made{program.graph.vertices.size() - 1};
    program.values[id] = made;
    emitted_[id] = {part.members, part.kernel.steps.size()};
    if (relations_.are_read_elsewhere(id)) program.graph.outputs.push_back(made);
  }

  const IaStore& store_;
  const Relations& relations_;
  std::map<int, LevelProgram> programs_;
  std::map<int, std::set<std::string>> scalars_;  // those of each
  std::map<IaId, Part> parts_;                    // until the one that reads them is added
  std::map<IaId, Emitted> emitted_;
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
