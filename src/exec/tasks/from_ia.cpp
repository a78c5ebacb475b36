#include "exec/tasks/from_ia.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "exec/tasks/fuse.h"
#include "exec/tasks/task_builder.h"
#include "ia/infer.h"
#include "ia/traffic.h"
#include "tra/infer.h"
#include "tra/interpret.h"
#include "tra/repartition.h"

namespace einrel {
namespace {

/// One per site.
using PlacedArrays = std::vector<SiteArrays>;
struct PlacedTuples {
  PlacedArrays arrays;
  std::vector<std::set<Key>> arrived;  ///< per site, the tuples of which this operation brought something from others
};
using Box = CopyBoxes::Box;

/// What a new chunk takes of one old chunk: `box.from` within the old one, `box.to` within the new one.
struct OldPart {
  Key key;
  Box box;
  std::vector<std::int64_t> begin;  ///< within the tensor
};

/// Part of an old chunk on its way to where new chunks need it.
struct SentPart {
  std::vector<Site> targets;
  std::map<Site, ArrayId> alone;  ///< where it was cut out, or has come to
};

/// What a new chunk is put together from on one site.
struct Gathered {
  std::vector<ArrayId> arrays;
  std::vector<Box> boxes;  ///< one per array
  bool has_arrived = false;
};

/// The tasks of one operation; local operations are written for one site.
class NodeTasks {
 public:
  NodeTasks(const IaNode& node, std::vector<const PlacedTuples*> inputs, const PhysicalType* first, std::int64_t sites,
            TaskBuilder& builder)
      : node_(node),
        inputs_(std::move(inputs)),
        first_(first),
        sites_(sites),
        builder_(builder),
        arrived_(static_cast<std::size_t>(sites)) {}

  /// Of what the operation gave, per site.
  const std::vector<std::set<Key>>& arrived() const { return arrived_; }

  PlacedArrays operator()(const PlacedRelation& op) {
    const std::size_t input = builder_.input(op.stored);
    PlacedArrays result = nothing();
    for (const auto& [key, sites] : wanted()) {
      ReadInput read{input, std::vector<std::int64_t>(op.stored.bound.size(), 0)};
      Shape bound = op.stored.bound;
      for (std::size_t i = 0; i < key.size(); ++i) {
        const std::size_t d = op.stored.cut.dims[i];
        read.begin[d] = chunk_begin(op.stored.bound[d], op.stored.cut.cuts[i], key[i]);
        bound[d] = chunk_extent(op.stored.bound[d], op.stored.cut.cuts[i], key[i]);
      }
      make_on(sites, key, read, {op.stored.dtype, bound, 0}, result);
    }
    return result;
  }
  PlacedArrays operator()(const LabelPositions& op) {
    PlacedArrays result = nothing();
    for (const auto& [key, sites] : wanted()) {
      std::optional<ArrayId> made;
      for (const Site site : sites) {
        if (!made || !builder_.is_shared())
          made = builder_.positions(chunk_begin(op.extent, op.cut, key.front()),
                                    chunk_extent(op.extent, op.cut, key.front()), site);
        at(result, site).emplace(key, *made);
      }
    }
    return result;
  }
  PlacedArrays operator()(const Bcast&) { return moved(); }
  PlacedArrays operator()(const Shuf& op) {
    if (!first_->partial) return moved();
    PlacedArrays result = nothing();
    for (std::size_t from = 0; from < result.size(); ++from) {
      for (const auto& [key, array] : in(from)) {
        const Site to = site_of(op.grid, project(key, op.positions));
        const bool is_here = static_cast<Site>(from) == to;
        at(result, to).emplace(key, is_here ? array : builder_.send(array, to));
      }
    }
    return result;
  }
  PlacedArrays operator()(const Repart& op);

  /// This join, whose results nobody else needs, followed by an aggregation of what lies on each site: first of what
  /// was there before, then, while that is computed, of what comes from others. Sites that compute the same begin
  /// alike.
  PlacedArrays aggregated(const LocalJoin& op, const LocalAggregate& aggregate) {
    const SiteLists sites = sites_of_chunks(node_.type);
    const bool has_copies = std::any_of(sites.begin(), sites.end(), [](const auto& of) { return of.size() > 1; });
    PlacedArrays result = nothing();
    for (std::size_t site = 0; site < result.size(); ++site) {
      std::map<Key, std::vector<Joined>> groups;
      for (auto& [key, one] : joined(op, site)) groups[project(key, aggregate.group_by)].push_back(std::move(one));
      for (auto& [key, all] : groups) {
        std::stable_partition(all.begin(), all.end(),
                              [&](const Joined& one) { return has_copies || !one.has_arrived; });
        std::vector<ArrayId> runs;
        for (std::size_t begin = 0; begin < all.size(); begin += longest_run) {
          std::vector<Arguments> calls;
          for (std::size_t i = begin; i < std::min(begin + longest_run, all.size()); ++i)
            calls.push_back(std::move(all[i].arguments));
          runs.push_back(builder_.call_onto(op.kernel, calls, static_cast<Site>(site)));
        }
        result[site].emplace(key, folded(std::get<Kernel>(aggregate.fold), std::move(runs), static_cast<Site>(site)));
      }
    }
    return result;
  }

  template <class LocalOp>
  PlacedArrays operator()(const LocalOp& op) {
    PlacedArrays result;
    for (std::size_t site = 0; site < static_cast<std::size_t>(sites_); ++site) result.push_back(local(op, site));
    return result;
  }

 private:
  PlacedArrays nothing() const { return PlacedArrays(static_cast<std::size_t>(sites_)); }
  const SiteArrays& in(std::size_t site) const { return inputs_.front()->arrays[site]; }
  bool has_arrived(std::size_t site, std::size_t i, const Key& key) const {
    return inputs_[i]->arrived[site].count(key) != 0;
  }
  void note_arrival(Site site, const Key& key) { arrived_[static_cast<std::size_t>(site)].insert(key); }
  static SiteArrays& at(PlacedArrays& relation, Site site) { return relation[static_cast<std::size_t>(site)]; }
  const SiteArrays& in_at(Site site) const { return in(static_cast<std::size_t>(site)); }

  /// The keys of the result and the sites where they are to lie.
  std::vector<std::pair<Key, std::vector<Site>>> wanted() const {
    const std::vector<Chunk>& chunks = node_.type.relation.chunks;
    SiteLists sites = sites_of_chunks(node_.type);
    std::vector<std::pair<Key, std::vector<Site>>> wanted;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      if (std::holds_alternative<Everywhere>(node_.type.placement)) sites[c] = all_sites();
      wanted.emplace_back(chunks[c].key, std::move(sites[c]));
    }
    return wanted;
  }
  std::vector<Site> all_sites() const {
    std::vector<Site> all;
    for (Site site = 0; site < sites_; ++site) all.push_back(site);
    return all;
  }
  /// The sites that have a tuple of the first input, ascending.
  std::vector<Site> holders(const Key& key) const {
    std::vector<Site> found;
    for (Site site = 0; site < sites_; ++site) {
      if (in_at(site).count(key) != 0) found.push_back(site);
    }
    return found;
  }

  /// The same array on all these sites; sites with one memory have one of it.
  void make_on(const std::vector<Site>& sites, const Key& key, const TaskOp& op, TaskArray array,
               PlacedArrays& result) {
    std::optional<ArrayId> made;
    for (const Site site : sites) {
      array.site = site;
      if (!made || !builder_.is_shared()) made = builder_.make(op, {}, array);
      at(result, site).emplace(key, *made);
    }
  }

  /// The tuples of the first input where the result has them.
  PlacedArrays moved() {
    PlacedArrays result = nothing();
    for (const auto& [key, targets] : wanted()) {
      const std::vector<Site> held = holders(key);
      std::map<Site, ArrayId> there;
      for (const Site site : held) there.emplace(site, in_at(site).find(key)->second);
      for (const auto& [from, to] : deliveries(held, targets)) there.emplace(to, builder_.send(there.at(from), to));
      for (const Site target : targets) {
        at(result, target).emplace(key, there.at(target));
        if (!std::binary_search(held.begin(), held.end(), target)) note_arrival(target, key);
      }
    }
    return result;
  }

  /// What is cut out is in row-major order by itself.
  void share_whole(const OldPart& part, ArrayId old) {
    if (builder_[old].bound == part.box.bound) builder_.share(old);
  }

  /// Brings a part of an old chunk to all sites that need it, once: cut out where it lies, then along the tree.
  void send(const OldPart& part, SentPart& sent);
  /// Adds it to what is put together on the sites of a new chunk.
  void gather(const OldPart& part, const SentPart& sent, const std::vector<Site>& targets,
              std::map<Site, Gathered>& gathered);

  SiteArrays local(const LocalFilter& op, std::size_t site) const {
    SiteArrays result;
    for (const auto& [key, array] : in(site)) {
      if (evaluate(op.predicate, key) != 0) result.emplace(key, array);
    }
    return result;
  }
  /// Arrays that a join brings together.
  struct Joined {
    Arguments arguments;
    bool has_arrived = false;  ///< one of them
  };
  /// The arrays that meet on a site, by the keys of their results.
  std::multimap<Key, Joined> joined(const LocalJoin& op, std::size_t site) const {
    std::vector<const SiteArrays*> here;
    for (const PlacedTuples* const input : inputs_) here.push_back(&input->arrays[site]);
    std::multimap<Key, Joined> result;
    for_each_match(here, op.keys_left, op.keys_right, [&](const Key& key, const auto& tuples) {
      Joined joined{{{}, evaluate(op.numbers, key)}};
      for (std::size_t i = 0; i < tuples.size(); ++i) {
        joined.arguments.arrays.push_back(tuples[i]->second);
        joined.has_arrived = joined.has_arrived || has_arrived(site, i, tuples[i]->first);
      }
      result.emplace(evaluate(op.key_map, key), std::move(joined));
    });
    return result;
  }
  SiteArrays local(const LocalJoin& op, std::size_t site) {
    SiteArrays result;
    for (const auto& [key, one] : joined(op, site))
      result.emplace(key, builder_.call(op.kernel, one.arguments, static_cast<Site>(site)));
    return result;
  }
  SiteArrays local(const LocalAggregate& op, std::size_t site) {
    std::map<Key, std::vector<ArrayId>> groups;
    for (const auto& [key, array] : in(site)) groups[project(key, op.group_by)].push_back(array);
    SiteArrays result;
    for (const auto& [key, members] : groups) {
      const auto* const concat = std::get_if<ConcatArrays>(&op.fold);
      ArrayId one = concat != nullptr ? concatenated(members, concat->array_dim, static_cast<Site>(site))
                                      : folded(std::get<Kernel>(op.fold), members, static_cast<Site>(site));
      if (op.finaliser) one = builder_.call(*op.finaliser, {{one}, {}}, static_cast<Site>(site));
      result.emplace(key, one);
    }
    return result;
  }
  SiteArrays local(const LocalMap& op, std::size_t site) {
    SiteArrays result;
    for (const auto& [key, array] : in(site)) {
      if (const auto* const kernel = std::get_if<Kernel>(&op.arrays)) {
        const Arguments arguments{{array}, evaluate(op.numbers, key)};
        result.emplace(evaluate(op.key_map, key), builder_.call(*kernel, arguments, static_cast<Site>(site)));
        continue;
      }
      const auto* const tile = std::get_if<Tile>(&op.arrays);
      const std::int64_t count =
          tile != nullptr ? tile_count(builder_[array].bound[tile->dim], *tile) : std::get<Duplicate>(op.arrays).count;
      for (std::int64_t output = 0; output < count; ++output) {
        Key numbered = key;
        numbered.push_back(output);
        result.emplace(evaluate(op.key_map, numbered), tile != nullptr ? tile_of_array(array, *tile, output) : array);
      }
    }
    return result;
  }

  /// So many partial results are folded one after another; of more, those of runs, so that sums of them are rounded
  /// hardly more often.
  static constexpr std::size_t longest_run = 512;
  ArrayId folded(const Kernel& fold, std::vector<ArrayId> members, Site site) {
    while (members.size() > 1) {
      std::vector<ArrayId> runs;
      for (std::size_t i = 0; i < members.size(); ++i) {
        if (i % longest_run == 0) {
          runs.push_back(members[i]);
        } else {
          runs.back() = builder_.call(fold, {{runs.back(), members[i]}, {}}, site);
        }
      }
      members = std::move(runs);
    }
    return members.front();
  }

  ArrayId concatenated(const std::vector<ArrayId>& members, std::size_t dim, Site site) {
    TaskArray whole = builder_[members.front()];
    whole.site = site;
    std::vector<Box> boxes;
    std::int64_t begin = 0;
    for (const ArrayId member : members) {
      const Shape& bound = builder_[member].bound;
      Box box{std::vector<std::int64_t>(bound.size(), 0), std::vector<std::int64_t>(bound.size(), 0), bound};
      box.to[dim] = begin;
      begin += bound[dim].value();
      boxes.push_back(std::move(box));
    }
    whole.bound[dim] = Extent(begin);
    return builder_.put_together(members, std::move(boxes), std::move(whole));
  }
  ArrayId tile_of_array(ArrayId array, const Tile& op, std::int64_t tile) {
    TaskArray part = builder_[array];
    Box box{std::vector<std::int64_t>(part.bound.size(), 0), std::vector<std::int64_t>(part.bound.size(), 0), {}};
    const std::int64_t begin = tile * op.size;
    box.from[op.dim] = begin;
    part.bound[op.dim] = Extent(std::min(op.size, part.bound[op.dim].value() - begin));
    box.bound = part.bound;
    return builder_.put_together({array}, {std::move(box)}, std::move(part));
  }

  const IaNode& node_;
  std::vector<const PlacedTuples*> inputs_;
  const PhysicalType* first_;
  std::int64_t sites_;
  TaskBuilder& builder_;
  std::vector<std::set<Key>> arrived_;
};

/// All parts of a new chunk: `pieces` holds those of its part of each dimension.
std::vector<OldPart> parts_of(const Repart& op, const Shape& bound, const Key& key,
                              const std::vector<const std::vector<Piece>*>& pieces) {
  std::vector<OldPart> parts;
  if (std::any_of(pieces.begin(), pieces.end(), [](const auto* each) { return each->empty(); })) return parts;
  std::vector<std::size_t> at(pieces.size(), 0);
  std::size_t d = 0;
  do {
    OldPart part;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const Piece& piece = (*pieces[i])[at[i]];
      part.key.push_back(piece.part);
      part.begin.push_back(piece.begin);
      part.box.from.push_back(piece.begin - chunk_begin(bound[i], op.from[i], piece.part));
      part.box.to.push_back(piece.begin - chunk_range(bound[i], op.to[i], key[i]).begin);
      part.box.bound.emplace_back(piece.extent);
    }
    parts.push_back(std::move(part));
    for (d = at.size(); d > 0 && ++at[d - 1] == pieces[d - 1]->size(); --d) at[d - 1] = 0;
  } while (d > 0);
  return parts;
}

void NodeTasks::send(const OldPart& part, SentPart& sent) {
  if (builder_.is_shared() || !sent.alone.empty()) return;
  const std::vector<std::int64_t> first(part.box.bound.size(), 0);
  for (const auto& [from, to] : deliveries(holders(part.key), sent.targets)) {
    if (sent.alone.empty()) {
      const ArrayId old = builder_.unviewed(in_at(from).find(part.key)->second);
      const Box box{part.box.from, first, part.box.bound};
      sent.alone.emplace(from, builder_.put_together({old}, {box}, {builder_[old].dtype, box.bound, from}));
    }
    sent.alone.emplace(to, builder_.send(sent.alone.at(from), to));
  }
}

void NodeTasks::gather(const OldPart& part, const SentPart& sent, const std::vector<Site>& targets,
                       std::map<Site, Gathered>& gathered) {
  const std::vector<Site> held = holders(part.key);
  const std::vector<std::int64_t> first(part.box.bound.size(), 0);
  for (const Site target : targets) {
    const bool is_here = std::binary_search(held.begin(), held.end(), target);
    const bool has_all = builder_.is_shared() || is_here;
    const Site holder = builder_.is_shared() ? held.front() : target;
    if (!is_here) share_whole(part, in_at(held.front()).find(part.key)->second);
    Gathered& here = gathered[target];
    here.has_arrived = here.has_arrived || !is_here;
    here.arrays.push_back(has_all ? builder_.unviewed(in_at(holder).find(part.key)->second) : sent.alone.at(target));
    here.boxes.push_back({has_all ? part.box.from : first, part.box.to, part.box.bound});
  }
}

/// What fills chunks where they reach beyond the tensor.
double padding_of(const Repart& op) {
  double padding = 0;
  for (const DimensionCut& cut : op.to) padding = cut.window && cut.window->pad ? *cut.window->pad : padding;
  return padding;
}

PlacedArrays NodeTasks::operator()(const Repart& op) {
  const Shape bound = tensor_bound(first_->relation);
  std::vector<std::vector<std::vector<Piece>>> pieces;  // per dimension and new part
  for (std::size_t d = 0; d < bound.size(); ++d) pieces.push_back(pieces_of(bound[d], op.from[d], op.to[d]));
  const auto parts = [&](const Key& key) {
    std::vector<const std::vector<Piece>*> of_chunk;
    for (std::size_t d = 0; d < bound.size(); ++d) of_chunk.push_back(&pieces[d][static_cast<std::size_t>(key[d])]);
    return parts_of(op, bound, key, of_chunk);
  };
  std::map<std::vector<std::int64_t>, SentPart> shared;  // parts that several chunks may have
  if (has_windows(op.to)) {
    for (const auto& [key, targets] : wanted()) {
      for (const OldPart& part : parts(key))
        shared[part.begin].targets = sites_of_either(shared[part.begin].targets, targets);
    }
  }
  PlacedArrays result = nothing();
  for (const auto& [key, targets] : wanted()) {
    std::map<Site, Gathered> gathered;
    for (const OldPart& part : parts(key)) {
      SentPart own{targets, {}};
      SentPart& sent = shared.empty() ? own : shared.at(part.begin);
      send(part, sent);
      gather(part, sent, targets, gathered);
    }
    const Shape& chunk = find_chunk(node_.type.relation, key)->bound;
    std::optional<ArrayId> made;
    for (const Site target : targets) {
      auto& [arrays, boxes, has_arrived] = gathered[target];
      if (has_arrived) note_arrival(target, key);
      if (!made || !builder_.is_shared()) {
        made =
            builder_.put_together(arrays, std::move(boxes), {node_.type.relation.dtype, chunk, target}, padding_of(op));
      }
      at(result, target).emplace(key, *made);
    }
  }
  return result;
}

/// How often each operation's result is read, by others and as outputs.
std::map<IaId, int> readers_of(const IaStore& store, const IaPlan& plan, const std::vector<IaId>& nodes) {
  std::map<IaId, int> readers;
  for (const IaOutput& output : plan) ++readers[output.id];
  for (const IaId id : nodes) {
    for (const IaId input : store[id].inputs) ++readers[input];
  }
  return readers;
}

/// The joins whose results are only read by an aggregation that can reduce each onto those before, by that aggregation.
/// Different sites have the same tuples of a group, or none in common.
std::map<IaId, IaId> joins_to_reduce_onto(const IaStore& store, const std::vector<IaId>& nodes,
                                          const std::map<IaId, int>& readers) {
  std::map<IaId, IaId> found;
  for (const IaId id : nodes) {
    const auto* const aggregate = std::get_if<LocalAggregate>(&store[id].op);
    if (aggregate == nullptr || aggregate->finaliser) continue;
    const IaNode& input = store[store[id].inputs.front()];
    const auto* const join = std::get_if<LocalJoin>(&input.op);
    const auto* const fold = std::get_if<Kernel>(&aggregate->fold);
    if (join == nullptr || fold == nullptr || readers.at(store[id].inputs.front()) > 1) continue;
    if (input.type.partial || !std::holds_alternative<Partitioned>(input.type.placement)) continue;
    if (reduces_onto(join->kernel, *fold)) found.emplace(id, store[id].inputs.front());
  }
  return found;
}

void add_arrays(const PlacedTuples& tuples, std::set<ArrayId>& arrays) {
  for (const SiteArrays& site : tuples.arrays) {
    for (const auto& [key, array] : site) arrays.insert(array);
  }
}

void replace_arrays(const std::map<ArrayId, ArrayId>& replaced, PlacedTuples& tuples) {
  for (SiteArrays& site : tuples.arrays) {
    for (auto& [key, array] : site) {
      const auto found = replaced.find(array);
      if (found != replaced.end()) array = found->second;
    }
  }
}

/// The joins that are computed with an aggregation.
std::set<IaId> joins_of(const std::map<IaId, IaId>& onto) {
  std::set<IaId> joins;
  for (const auto& [aggregate, join] : onto) joins.insert(join);
  return joins;
}

/// Lowers a plan, operation by operation.
class PlanTasks {
 public:
  PlanTasks(const IaStore& store, const IaPlan& plan, SiteMemory memory, std::optional<std::int64_t> most_bytes)
      : store_(store),
        plan_(plan),
        builder_(store.sites(), memory, most_bytes),
        nodes_(nodes_of(store, plan)),
        readers_(readers_of(store, plan, nodes_)),
        onto_(joins_to_reduce_onto(store, nodes_, readers_)),
        apart_(joins_of(onto_)) {}

  TaskGraph run(const NodeOrder& order) {
    for (const FusedNodes& together : order) {
      if (together.members.size() == 1) {
        lower(together.members.front());
      } else {
        lower_together(together);
      }
    }
    for (const IaOutput& output : plan_) write(output);
    return builder_.take();
  }

 private:
  NodeTasks tasks_for(IaId id) {
    const IaNode& node = store_[id];
    std::vector<const PlacedTuples*> read;
    for (const IaId input : node.inputs) read.push_back(&relations_.at(input));
    const PhysicalType* const first = node.inputs.empty() ? nullptr : &store_[node.inputs.front()].type;
    builder_.begin(id);
    return NodeTasks(node, std::move(read), first, store_.sites(), builder_);
  }

  /// A program of many operations would keep as many relations, most of them long read.
  void end_reads(IaId id) {
    for (const IaId input : store_[id].inputs) {
      if (--readers_.at(input) == 0) relations_.erase(input);
    }
  }

  void lower(IaId id) {
    if (apart_.count(id) != 0) return;
    if (const auto join = onto_.find(id); join != onto_.end()) {
      NodeTasks tasks = tasks_for(join->second);
      relations_[id].arrays =
          tasks.aggregated(std::get<LocalJoin>(store_[join->second].op), std::get<LocalAggregate>(store_[id].op));
      relations_[id].arrived = tasks.arrived();
      end_reads(join->second);
    } else {
      NodeTasks tasks = tasks_for(id);
      relations_[id].arrays = std::visit(tasks, store_[id].op);
      relations_[id].arrived = tasks.arrived();
    }
    end_reads(id);
  }

  void lower_together(const FusedNodes& together) {
    builder_.begin_group();
    for (const IaId id : together.members) lower(id);
    std::set<ArrayId> wanted;
    for (const IaId id : together.wanted) add_arrays(relations_.at(id), wanted);
    const std::map<ArrayId, ArrayId> made = builder_.end_group(wanted);
    for (const IaId id : together.wanted) replace_arrays(made, relations_.at(id));
  }

  void write(const IaOutput& output) {
    SiteArrays once;
    for (const SiteArrays& site : relations_.at(output.id).arrays) {
      for (const auto& [key, array] : site) {
        if (once.count(key) == 0) once.emplace(key, array);
      }
    }
    builder_.begin(output.id);
    builder_.add_output(output.name, store_[output.id].type.relation);
    if (!output.is_kept || builder_.is_shared()) return builder_.write(store_[output.id].type.relation, once);
    for (const SiteArrays& site : relations_.at(output.id).arrays)
      builder_.write(store_[output.id].type.relation, site);
  }

  const IaStore& store_;
  const IaPlan& plan_;
  TaskBuilder builder_;
  std::vector<IaId> nodes_;
  std::map<IaId, int> readers_;
  std::map<IaId, IaId> onto_;  // by the aggregation, the join that it computes together with itself
  std::set<IaId> apart_;       // those joins
  std::map<IaId, PlacedTuples> relations_;
};

void check_runs(const IaStore& store, const IaPlan& plan) {
  if (const std::string fault = fault_of(store, plan); !fault.empty()) throw Bug("a plan that cannot run: " + fault);
}

}  // namespace

TaskGraph tasks_of(const IaStore& store, const IaPlan& plan, const NodeOrder& order, SiteMemory memory,
                   std::optional<std::int64_t> most_bytes) {
  return PlanTasks(store, plan, memory, most_bytes).run(order);
}

TaskGraph tasks_of(const IaStore& store, const IaPlan& plan, SiteMemory memory,
                   std::optional<std::int64_t> most_bytes) {
  return tasks_of(store, plan, operations_together(store, plan), memory, most_bytes);
}

NodeOrder operations_together(const IaStore& store, const IaPlan& plan) {
  check_runs(store, plan);
  const std::vector<IaId> nodes = nodes_of(store, plan);
  return nodes_together(store, plan, nodes,
                        joins_of(joins_to_reduce_onto(store, nodes, readers_of(store, plan, nodes))));
}

NodeOrder operations_apart(const IaStore& store, const IaPlan& plan) {
  check_runs(store, plan);
  NodeOrder order;
  for (const IaId id : nodes_of(store, plan)) order.push_back({{id}, {}});
  return order;
}

}  // namespace einrel
