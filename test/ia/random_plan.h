#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ia/ia_program.h"
#include "ia/rules/rule.h"
#include "support/random_einsum.h"
#include "tra/named_kernels.h"

namespace einrel::test {

/// Any site grid that fits: positions and copies in any order of strides, which may leave gaps.
inline SiteGrid random_grid(Random& random, const std::vector<std::int64_t>& parts, std::int64_t sites) {
  std::vector<std::int64_t> grid(parts.size(), 1);
  std::vector<Site> strides(parts.size(), 0);
  std::vector<SiteCopies> copies;
  std::vector<std::size_t> digits = all_positions(parts.size() + 2);  // two for copies
  random.shuffle(digits);
  Site stride = 1;
  Site last = 0;
  for (const std::size_t digit : digits) {
    if (random.chance(0.1)) ++stride;
    if (stride > sites - 1 - last) break;
    const std::int64_t most = 1 + (sites - 1 - last) / stride;
    const bool is_position = digit < parts.size();
    const std::int64_t count = random.between(1, is_position ? std::min(most, parts[digit]) : std::min<Site>(most, 3));
    if (is_position) {
      grid[digit] = count;
      strides[digit] = stride;
    } else if (random.chance(0.7)) {
      copies.push_back({count, stride});
    } else {
      continue;
    }
    last += (count - 1) * stride;
    stride *= count;
  }
  return site_grid(parts, std::move(grid), std::move(strides), std::move(copies));
}

/// Any cuts of a tensor, uneven ones and units among them.
inline std::vector<DimensionCut> random_cuts(Random& random, const Shape& bound) {
  std::vector<DimensionCut> cuts;
  for (const Extent extent : bound) {
    const std::int64_t unit = extent.value() % 2 == 0 && random.chance(0.2) ? 2 : 1;
    const std::int64_t most = std::max<std::int64_t>(1, extent.value() / unit);
    cuts.push_back({random.between(1, std::min<std::int64_t>(most, 4)), unit});
  }
  return cuts;
}

inline std::vector<std::int64_t> parts_of(const std::vector<DimensionCut>& cuts) {
  std::vector<std::int64_t> parts;
  for (const DimensionCut& cut : cuts) parts.push_back(cut.parts);
  return parts;
}

/// A random program of the IA in the shape of a rule's pattern, with data: random key arity, frontier, chunks (uneven
/// too), placements, key maps, predicates and kernels, linear and not. The data are small integers, so that sums are
/// exact.
class PlanGenerator {
 public:
  PlanGenerator(std::uint64_t seed) : random_(seed), store_(random_.between(1, 6)) {
    dtype_ = random_.chance(0.5) ? DType::f64 : DType::i64;
  }

  IaStore& store() { return store_; }
  const TensorBindings& inputs() const { return inputs_; }

  /// The root of an instance of the pattern that can run; nullopt when chance did not give one.
  std::optional<IaId> instance(std::string_view pattern) {
    words_.clear();
    for (std::size_t begin = 0; begin < pattern.size();) {
      std::size_t end = begin;
      while (end < pattern.size() && std::isalpha(static_cast<unsigned char>(pattern[end])) != 0) ++end;
      if (end > begin) words_.emplace_back(pattern.substr(begin, end - begin));
      begin = std::max(end, begin + 1);
    }
    next_ = 0;
    const std::optional<IaId> root = build();
    if (!root || !fault_of(store_, {{"Z", *root}}).empty()) return std::nullopt;
    for (const IaId id : nodes_of(store_, {{"Z", *root}})) {
      if (type(id).relation.chunks.empty()) return std::nullopt;
    }
    return root;
  }

 private:
  const PhysicalType& type(IaId id) const { return store_[id].type; }
  bool runs(IaId id) const { return store_[id].fault.empty(); }

  std::optional<IaId> build() {
    const std::string word = words_[next_++];
    if (std::isupper(static_cast<unsigned char>(word.front())) != 0) return relation();
    if (word == "join") return build_join();
    const std::optional<IaId> in = build();
    if (!in || !runs(*in)) return std::nullopt;
    for (int attempt = 0; attempt < 12; ++attempt) {
      const IaId made = operation(word, *in);
      if (runs(made)) return made;
    }
    return std::nullopt;
  }

  /// Each side is a relation or a moved relation; the keys are drawn first so that shuffles can follow them.
  std::optional<IaId> build_join() {
    const std::string left_move = move_of_side();
    const std::optional<IaId> left = relation();
    const std::string right_move = move_of_side();
    const std::optional<IaId> right = left ? partner_of(*left) : std::nullopt;
    if (!right) return std::nullopt;
    for (int attempt = 0; attempt < 12; ++attempt) {
      std::optional<LocalJoin> join = random_join(*left, *right);
      if (!join) continue;
      IaId l = moved(left_move, *left, join->keys_left, *right, join->keys_right);
      IaId r = moved(right_move, *right, join->keys_right, *left, join->keys_left);
      IaId made = store_.add(*join, {l, r});
      if (!runs(made) && right_move.empty()) made = store_.add(*join, {l, store_.add(Bcast{}, {r})});
      if (runs(made)) return made;
    }
    return std::nullopt;
  }

  /// The move that the pattern wants of the next side of a join, "" for none.
  std::string move_of_side() {
    const std::string word = words_[next_++];
    const bool is_relation = std::isupper(static_cast<unsigned char>(word.front())) != 0;
    if (!is_relation) ++next_;
    return is_relation ? "" : word;
  }

  IaId moved(const std::string& move, IaId id, const KeyPositions& keys, IaId other, const KeyPositions& other_keys) {
    if (move == "bcast") return store_.add(Bcast{}, {id});
    if (move != "shuf") return id;
    if (random_.chance(0.15)) return operation("shuf", id);
    Key parts = project(frontier(type(id).relation), keys);
    const Key other_parts = project(frontier(type(other).relation), other_keys);
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = std::max({parts[i], other_parts[i], std::int64_t{1}});
    return store_.add(Shuf{keys, spread(parts, store_.sites())}, {id});
  }

  // Relations

  std::optional<IaId> relation() {
    const auto rank = static_cast<std::size_t>(random_.between(1, 3));
    square_ = random_.chance(0.6);
    Shape bound;
    std::vector<DimensionCut> cuts;
    for (std::size_t d = 0; d < rank; ++d) {
      if (d > 0 && square_) {
        bound.push_back(bound[0]);
        cuts.push_back(cuts[0]);
        continue;
      }
      const std::int64_t parts = random_.between(1, 3);
      bound.emplace_back(parts * random_.between(1, 2) + (random_.chance(0.4) ? random_.between(0, parts - 1) : 0));
      cuts.push_back({parts, 1});
    }
    TensorCut cut = cut_of_all(cuts);
    if (random_.chance(0.15)) {  // some dimension is not in the key
      const auto d = random_.between(0, static_cast<std::int64_t>(rank) - 1);
      cut.dims.erase(cut.dims.begin() + d);
      cut.cuts.erase(cut.cuts.begin() + d);
    }
    return refined(stored(bound, cut));
  }

  /// A relation that can be joined with `other`.
  std::optional<IaId> partner_of(IaId other) {
    const auto* placed = std::get_if<PlacedRelation>(&store_[source_of(other)].op);
    StoredRelation like = placed->stored;
    const bool has_all_keys = like.cut.dims.size() == like.bound.size();
    if (has_all_keys && random_.chance(0.4)) {  // a matrix that it can be multiplied with
      const std::size_t last = like.bound.size() - 1;
      const std::int64_t parts = random_.between(1, 3);
      const Shape bound{like.bound[last], Extent(parts * random_.between(1, 2))};
      return refined(stored(bound, cut_of_all({like.cut.cuts[last], {parts, 1}})));
    }
    return refined(stored(like.bound, like.cut));
  }

  IaId source_of(IaId id) const {
    while (!store_[id].inputs.empty()) id = store_[id].inputs.front();
    return id;
  }

  IaId stored(const Shape& bound, const TensorCut& cut) {
    const std::string name = "X" + std::to_string(inputs_.size());
    std::vector<double> values;
    for (std::int64_t i = 0; i < element_count(bound); ++i)
      values.push_back(static_cast<double>(random_.between(-2, 2)));
    inputs_[name] = tensor_of(dtype_, bound, values);
    Placement placement = Everywhere{};
    if (random_.chance(0.85)) {
      const KeyPositions positions = some_positions(cut.dims.size());
      Key parts;
      for (const std::size_t position : positions) parts.push_back(cut.cuts[position].parts);
      placement = Partitioned{positions, grid(parts, 0.3)};
    }
    return store_.add(PlacedRelation{{name, dtype_, bound, cut}, placement});
  }

  /// Now and then filtered, moved or rekeyed, so that rules meet holes and scattered tuples.
  std::optional<IaId> refined(IaId id) {
    IaId result = id;
    if (random_.chance(0.1)) {
      const IaId cut_anew = operation("repart", result);
      if (runs(cut_anew)) result = cut_anew;
    }
    if (random_.chance(0.2)) result = operation("filter", result);
    if (runs(result) && random_.chance(0.12)) result = operation(random_.chance(0.5) ? "shuf" : "bcast", result);
    if (runs(result) && random_.chance(0.08)) {  // partial aggregates, if the operations above take them
      const IaId folded = operation("agg", result);
      if (runs(folded) && type(folded).partial) result = folded;
    }
    return runs(result) && !type(result).relation.chunks.empty() ? std::optional(result) : std::nullopt;
  }

  // Operations

  IaId operation(const std::string& word, IaId in) {
    const RelationType& relation = type(in).relation;
    const std::size_t arity = relation.key_arity;
    if (word == "bcast") return store_.add(Bcast{}, {in});
    if (word == "shuf") {
      const KeyPositions positions = some_positions(arity);
      Key parts = project(frontier(relation), positions);
      for (std::int64_t& part : parts) part = std::max<std::int64_t>(part, 1);
      return store_.add(Shuf{positions, grid(parts, 0.15)}, {in});
    }
    if (word == "repart") return store_.add(random_repartition(relation), {in});
    if (word == "filter") return store_.add(LocalFilter{predicate(arity)}, {in});
    if (word == "map") return store_.add(random_map(relation), {in});
    return store_.add(random_aggregate(relation, in), {in});
  }

  KeyPositions some_positions(std::size_t arity) {
    KeyPositions positions = all_positions(arity);
    random_.shuffle(positions);
    positions.resize(static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(arity))));
    return positions;
  }

  /// Mostly row-major without copies; any other with probability `other`.
  SiteGrid grid(const std::vector<std::int64_t>& parts, double other) {
    return random_.chance(other) ? random_grid(random_, parts, store_.sites()) : spread(parts, store_.sites());
  }

  /// Of a relation that is a tensor, cut in the only way that it can be.
  Repart random_repartition(const RelationType& relation) {
    const std::vector<DimensionCut> from = cuts_of(relation);
    const Shape bound = from.empty() ? Shape() : tensor_bound(relation);
    const std::vector<DimensionCut> to = random_cuts(random_, bound);
    return {from, to, grid(parts_of(to), 0.5)};
  }

  /// The parts per dimension of what may be a tensor.
  static std::vector<DimensionCut> cuts_of(const RelationType& relation) {
    std::vector<DimensionCut> cuts;
    if (relation.key_arity != relation.rank) return cuts;
    for (const std::int64_t parts : frontier(relation)) cuts.push_back({parts, 1});
    return cuts;
  }

  KeyExpr predicate(std::size_t arity) {
    if (arity == 0) return key_constant(1);
    const auto any = [&] {
      return key_position(static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(arity) - 1)));
    };
    const KeyExpr a = any();
    switch (random_.between(0, 3)) {
      case 0: return key_call(KeyFunction::equal, a, key_constant(random_.between(0, 2)));
      case 1: return key_call(KeyFunction::equal, a, any());
      case 2: return key_call(KeyFunction::less_equal, a, any());
      default: {
        const KeyExpr sum = key_call(KeyFunction::add, a, any());
        return key_call(KeyFunction::less, key_call(KeyFunction::modulo, sum, key_constant(3)), key_constant(2));
      }
    }
  }

  KeyMap key_map(std::size_t arity) {
    KeyMap map = identity_map(arity);
    const double choice = random_.real();
    if (choice < 0.5 || arity == 0) return map;
    random_.shuffle(map.outputs);
    if (choice < 0.65) map.outputs.pop_back();
    if (choice > 0.93 && arity > 1) {  // two positions in one
      const KeyExpr shifted = key_call(KeyFunction::multiply, map.outputs.back(), key_constant(4));
      map.outputs.pop_back();
      map.outputs[0] = key_call(KeyFunction::add, map.outputs[0], shifted);
    } else if (choice > 0.85) {
      map.outputs.push_back(key_call(KeyFunction::add, map.outputs[0], key_constant(1)));
    }
    return map;
  }

  LocalMap random_map(const RelationType& relation) {
    const std::size_t arity = relation.key_arity;
    if (random_.chance(0.12)) {
      LocalMap map{key_map(arity + 1), Duplicate{random_.between(1, 3)}};
      if (random_.chance(0.5) && relation.rank > 0) map.arrays = Tile{0, random_.between(1, 2)};
      return map;
    }
    return {key_map(arity), kernel(relation.rank)};
  }

  Kernel kernel(std::size_t rank) {
    constexpr std::array names{"id", "relu", "negate", "step", "rowSum", "transpose", "diag"};
    const std::string name = random_.one_of(names);
    const bool wants_matrix = name == "transpose" || name == "diag";
    if ((wants_matrix && rank != 2) || (name == "rowSum" && rank == 0)) return identity_kernel(dtype_);
    if (name == "id") return identity_kernel(dtype_);
    return named_kernel(name, {dtype_}, {rank});
  }

  Kernel fold(std::size_t rank) {
    constexpr std::array names{"matAdd", "matAdd", "elemMul", "max", "min"};
    return named_kernel(random_.one_of(names), {dtype_, dtype_}, {rank, rank});
  }

  LocalAggregate random_aggregate(const RelationType& relation, IaId in) {
    const std::size_t arity = relation.key_arity;
    if (type(in).partial) return {all_positions(arity), *type(in).partial, std::nullopt};
    if (arity > 0 && relation.rank > 0 && random_.chance(0.15)) {
      const auto position = static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(arity) - 1));
      const auto dim = static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(relation.rank) - 1));
      return {complement({position}, arity), ConcatArrays{position, dim}, std::nullopt};
    }
    LocalAggregate aggregate{some_positions(arity), fold(relation.rank), std::nullopt};
    const auto* shuffle = std::get_if<Shuf>(&store_[in].op);
    if (shuffle != nullptr && random_.chance(0.6)) {  // group by at least what was shuffled
      aggregate.group_by = shuffle->positions;
      for (const std::size_t position : complement(shuffle->positions, arity)) {
        if (random_.chance(0.3)) aggregate.group_by.push_back(position);
      }
    }
    if (random_.chance(0.2)) aggregate.finaliser = kernel(relation.rank);
    return aggregate;
  }

  std::optional<LocalJoin> random_join(IaId left, IaId right) {
    const RelationType& l = type(left).relation;
    const RelationType& r = type(right).relation;
    LocalJoin join;
    if (l.key_arity == r.key_arity && random_.chance(0.6)) {
      join.keys_left = all_positions(l.key_arity);
      random_.shuffle(join.keys_left);
      if (random_.chance(0.3) && !join.keys_left.empty()) join.keys_left.pop_back();
      join.keys_right = join.keys_left;
    } else if (l.key_arity > 0 && r.key_arity > 0) {
      join.keys_left = {l.key_arity - 1};
      join.keys_right = {0};
    }
    constexpr std::array element_wise{"matAdd", "matSub", "elemMul", "max", "min"};
    const bool multiply = l.rank == 2 && r.rank == 2 && random_.chance(0.5);
    if (!multiply && l.rank != r.rank) return std::nullopt;
    join.kernel = named_kernel(multiply ? "matMul" : random_.one_of(element_wise), {dtype_, dtype_}, {l.rank, r.rank});
    const std::size_t arity = l.key_arity + r.key_arity - join.keys_left.size();
    join.key_map = random_.chance(0.8) ? identity_map(arity) : key_map(arity);
    return join;
  }

  Random random_;
  IaStore store_;
  DType dtype_ = DType::f64;
  TensorBindings inputs_;
  bool square_ = false;
  std::vector<std::string> words_;
  std::size_t next_ = 0;
};

}  // namespace einrel::test
