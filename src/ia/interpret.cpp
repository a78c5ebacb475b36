#include "ia/interpret.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "ia/traffic.h"
#include "tra/infer.h"
#include "tra/interpret.h"

namespace einrel {
namespace {

/// The tuples of one site, by ascending key; a partial relation may hold several of a key, in the order they arrived.
using SiteTuples = std::multimap<Key, Tensor>;
/// One store per site.
using PhysicalRelation = std::vector<SiteTuples>;

/// Runs one node; local operations are written for one site.
class NodeRun {
 public:
  /// `first` is the type of the first input, if there is one.
  NodeRun(const std::vector<const PhysicalRelation*>& inputs, const PhysicalType* first, IaRun& run,
          const TensorBindings& bound, const ScalarBindings& scalars)
      : inputs_(inputs), first_(first), sites_(run.received.size()), run_(run), bound_(bound), scalars_(scalars) {}

  PhysicalRelation operator()(const PlacedRelation& op) const {
    const Relation relation = cut_tensor(bound_input(op.stored, bound_), op.stored.cut);
    const auto* part = std::get_if<Partitioned>(&op.placement);
    PhysicalRelation result(sites_);
    for (const auto& [key, array] : relation) {
      if (part == nullptr) {
        for (SiteTuples& site : result) site.emplace(key, array);
        continue;
      }
      for (const Site site : sites_of(part->grid, project(key, part->positions))) at(result, site).emplace(key, array);
    }
    return result;
  }
  PhysicalRelation operator()(const LabelPositions& op) const {
    PhysicalRelation result(sites_);
    const Relation relation = positions_relation(op);
    for (SiteTuples& site : result) site.insert(relation.begin(), relation.end());
    return result;
  }
  PhysicalRelation operator()(const Bcast&) {
    std::vector<Site> all(sites_);
    std::iota(all.begin(), all.end(), Site{0});
    PhysicalRelation result(sites_);
    for (const auto& [key, array] : distinct(*inputs_[0])) deliver(result, key, array, holders(key), all);
    return result;
  }
  PhysicalRelation operator()(const Shuf& op) {
    PhysicalRelation result(sites_);
    if (first_->partial) {  // tuples of one key are different values
      for (std::size_t from = 0; from < sites_; ++from) {
        for (const auto& [key, array] : in(from))
          deliver(result, key, array, {static_cast<Site>(from)}, {site_of(op.grid, project(key, op.positions))});
      }
      return result;
    }
    for (const auto& [key, array] : distinct(*inputs_[0])) {
      const std::vector<Site> targets = sites_of(op.grid, project(key, op.positions));
      if (std::holds_alternative<Everywhere>(first_->placement)) {
        for (const Site to : targets) at(result, to).emplace(key, array);
      } else {
        deliver(result, key, array, holders(key), targets);
      }
    }
    return result;
  }
  PhysicalRelation operator()(const Repart& op) {
    const Relation old = distinct(*inputs_[0]);
    const DType dtype = old.begin()->second.dtype();
    const Tensor whole = assemble(old, dtype, op.from.size());
    const Shape& bound = whole.shape();
    if (has_windows(op.to)) return overlapping(op, whole);
    PhysicalRelation result(sites_);
    for (const Chunk& chunk : relation_type(dtype, bound, cut_of_all(op.to)).chunks) {
      const std::vector<Site> targets = sites_of(op.grid, chunk.key);
      PhysicalRelation pieces(sites_);
      for (const auto& [key, array] : old) {
        if (const std::optional<Tensor> piece = common(op, bound, key, array, chunk.key))
          deliver(pieces, key, *piece, holders(key), targets);
      }
      for (const Site to : targets) {
        const SiteTuples& here = at(pieces, to);
        at(result, to).emplace(chunk.key, assemble(Relation(here.begin(), here.end()), dtype, bound.size()));
      }
    }
    return result;
  }
  template <class LocalOp>
  PhysicalRelation operator()(const LocalOp& op) const {
    PhysicalRelation result;
    for (std::size_t site = 0; site < sites_; ++site) result.push_back(local(op, site));
    return result;
  }

 private:
  const SiteTuples& in(std::size_t site) const { return (*inputs_.front())[site]; }

  SiteTuples local(const LocalFilter& op, std::size_t site) const {
    SiteTuples result;
    for (const auto& [key, array] : in(site)) {
      if (evaluate(op.predicate, key) != 0) result.emplace(key, array);
    }
    return result;
  }
  SiteTuples local(const LocalJoin& op, std::size_t site) const {
    std::vector<const SiteTuples*> here;
    for (const PhysicalRelation* const input : inputs_) here.push_back(&(*input)[site]);
    SiteTuples result;
    for_each_match(here, op.keys_left, op.keys_right, [&](const Key& key, const auto& tuples) {
      std::vector<Tensor> arrays;
      for (const auto* const tuple : tuples) arrays.push_back(tuple->second);
      result.emplace(evaluate(op.key_map, key),
                     evaluate(op.kernel, with_numbers(std::move(arrays), key, op.numbers), scalars_));
    });
    return result;
  }
  SiteTuples local(const LocalAggregate& op, std::size_t site) const {
    std::map<Key, std::vector<std::pair<Key, Tensor>>> groups;
    for (const auto& [key, array] : in(site)) groups[project(key, op.group_by)].emplace_back(key, array);
    SiteTuples result;
    for (const auto& [key, members] : groups) {
      Tensor folded = members.front().second;
      if (std::holds_alternative<ConcatArrays>(op.fold)) {
        std::vector<Tensor> arrays;
        for (const auto& member : members) arrays.push_back(member.second);
        folded = concatenate(arrays, std::get<ConcatArrays>(op.fold).array_dim);
      } else {
        for (std::size_t i = 1; i < members.size(); ++i)
          folded = evaluate(std::get<Kernel>(op.fold), {folded, members[i].second}, scalars_);
      }
      if (op.finaliser) folded = evaluate(*op.finaliser, {folded}, scalars_);
      result.emplace(key, std::move(folded));
    }
    return result;
  }
  SiteTuples local(const LocalMap& op, std::size_t site) const {
    SiteTuples result;
    for (const auto& [key, array] : in(site)) {
      if (const auto* kernel = std::get_if<Kernel>(&op.arrays)) {
        result.emplace(evaluate(op.key_map, key), evaluate(*kernel, with_numbers({array}, key, op.numbers), scalars_));
        continue;
      }
      const auto* tile = std::get_if<Tile>(&op.arrays);
      const std::int64_t count =
          tile != nullptr ? tile_count(array.shape()[tile->dim], *tile) : std::get<Duplicate>(op.arrays).count;
      for (std::int64_t output = 0; output < count; ++output) {
        Key numbered = key;
        numbered.push_back(output);
        result.emplace(evaluate(op.key_map, numbered), tile != nullptr ? tile_of(array, *tile, output) : array);
      }
    }
    return result;
  }

  static SiteTuples& at(PhysicalRelation& relation, Site site) { return relation[static_cast<std::size_t>(site)]; }

  /// The part of the old chunk `key` that belongs to the new chunk `to`; nullopt when they have nothing in common.
  static std::optional<Tensor> common(const Repart& op, const Shape& bound, const Key& key, const Tensor& array,
                                      const Key& to) {
    Shape shape;
    std::vector<std::int64_t> first;
    for (std::size_t d = 0; d < bound.size(); ++d) {
      const std::int64_t old_begin = chunk_begin(bound[d], op.from[d], key[d]);
      const std::int64_t begin = std::max(old_begin, chunk_begin(bound[d], op.to[d], to[d]));
      const std::int64_t end = std::min(chunk_begin(bound[d], op.from[d], key[d] + 1),  //
                                        chunk_begin(bound[d], op.to[d], to[d] + 1));
      if (begin >= end && bound[d] != Extent(0)) return std::nullopt;
      shape.emplace_back(end - begin);
      first.push_back(begin - old_begin);
    }
    return array.box(first, std::move(shape));
  }

  /// Of chunks that overlap, counting the way of each element by itself.
  PhysicalRelation overlapping(const Repart& op, const Tensor& whole) {
    PhysicalRelation result(sites_);
    std::map<std::vector<std::int64_t>, std::vector<Site>> targets_of;  // by element
    for (const auto& [key, chunk] : cut_tensor(whole, cut_of_all(op.to))) {
      const std::vector<Site> targets = sites_of(op.grid, key);
      for (const Site to : targets) at(result, to).emplace(key, chunk);
      for_each_element(whole.shape(), op.to, key, [&](const std::vector<std::int64_t>& element) {
        std::vector<Site>& sites = targets_of[element];
        sites = sites_of_either(sites, targets);
        if (sites_ > 1) run_.moved += static_cast<double>(targets.size());
      });
    }
    const auto size = static_cast<std::int64_t>(size_of(whole.dtype()));
    for (const Chunk& old : relation_type(whole.dtype(), whole.shape(), cut_of_all(op.from)).chunks) {
      const std::vector<Site> held = holders(old.key);
      for_each_element(whole.shape(), op.from, old.key, [&](const std::vector<std::int64_t>& element) {
        for (const auto& [from, to] : deliveries(held, targets_of[element])) {
          run_.sent[static_cast<std::size_t>(from)] += size;
          run_.received[static_cast<std::size_t>(to)] += size;
        }
      });
    }
    return result;
  }

  /// Of a tensor, in one chunk of it.
  template <class Use>
  static void for_each_element(const Shape& bound, const std::vector<DimensionCut>& cuts, const Key& key,
                               const Use& use) {
    std::vector<ElementRange> ranges;
    std::vector<std::int64_t> element;
    for (std::size_t d = 0; d < bound.size(); ++d) {
      ranges.push_back(elements_in_chunk(bound[d], cuts[d], key[d]));
      element.push_back(ranges.back().begin);
      if (ranges.back().extent() == 0) return;
    }
    std::size_t d = 0;
    do {
      use(element);
      for (d = bound.size(); d > 0 && ++element[d - 1] == ranges[d - 1].end; --d) element[d - 1] = ranges[d - 1].begin;
    } while (d > 0);
  }

  /// The sites that have a tuple of the first input.
  std::vector<Site> holders(const Key& key) const {
    std::vector<Site> found;
    for (std::size_t site = 0; site < sites_; ++site) {
      if (in(site).count(key) != 0) found.push_back(static_cast<Site>(site));
    }
    return found;
  }
  void deliver(PhysicalRelation& result, const Key& key, const Tensor& array, const std::vector<Site>& holders,
               const std::vector<Site>& targets) {
    for (const auto& [from, to] : deliveries(holders, targets)) {
      run_.sent[static_cast<std::size_t>(from)] += array.byte_count();
      run_.received[static_cast<std::size_t>(to)] += array.byte_count();
    }
    for (const Site to : targets) {
      if (sites_ > 1) run_.moved += static_cast<double>(array.count());
      at(result, to).emplace(key, array);
    }
  }
  /// Every tuple once.
  static Relation distinct(const PhysicalRelation& relation) {
    Relation result;
    for (const SiteTuples& site : relation) result.insert(site.begin(), site.end());
    return result;
  }

  const std::vector<const PhysicalRelation*>& inputs_;
  const PhysicalType* first_;
  std::size_t sites_;
  IaRun& run_;
  const TensorBindings& bound_;
  const ScalarBindings& scalars_;
};

bool same_elements(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const Tensor left = a.row_major();
  const Tensor right = b.row_major();
  return left.count() == 0 || std::memcmp(left.data(), right.data(), static_cast<std::size_t>(left.byte_count())) == 0;
}

/// The relation without its sites; copies of a tuple must be equal.
Relation without_sites(const PhysicalRelation& relation) {
  Relation result;
  for (const SiteTuples& site : relation) {
    for (const auto& [key, array] : site) {
      const auto [held, is_new] = result.emplace(key, array);
      invariant(is_new || same_elements(held->second, array), "copies of a tuple are equal");
    }
  }
  return result;
}

std::vector<std::pair<Key, Site>> tuples_of(const PhysicalRelation& relation) {
  std::vector<std::pair<Key, Site>> tuples;
  for (std::size_t site = 0; site < relation.size(); ++site) {
    for (const auto& tuple : relation[site]) tuples.emplace_back(tuple.first, static_cast<Site>(site));
  }
  std::sort(tuples.begin(), tuples.end());
  return tuples;
}

}  // namespace

IaRun interpret(const IaStore& store, const IaPlan& plan, const TensorBindings& inputs, const ScalarBindings& scalars) {
  if (const std::string fault = fault_of(store, plan); !fault.empty()) throw Bug("a plan that cannot run: " + fault);
  IaRun run;
  run.received.assign(static_cast<std::size_t>(store.sites()), 0);
  run.sent = run.received;
  std::map<std::size_t, PhysicalRelation> relations;
  for (const IaId id : nodes_of(store, plan)) {
    const IaNode& node = store[id];
    std::vector<const PhysicalRelation*> read;
    for (const IaId input : node.inputs) read.push_back(&relations.at(input.index));
    const PhysicalType* const first = node.inputs.empty() ? nullptr : &store[node.inputs.front()].type;
    relations[id.index] = std::visit(NodeRun(read, first, run, inputs, scalars), node.op);
    run.tuples.push_back(tuples_of(relations[id.index]));
  }
  for (const IaOutput& output : plan) run.outputs[output.name] = without_sites(relations.at(output.id.index));
  return run;
}

}  // namespace einrel
