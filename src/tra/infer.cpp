#include "tra/infer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tra/interpret.h"

namespace einrel {
namespace {

/// The rank of the results of a kernel, from those that it had.
std::size_t common_rank(const std::vector<Chunk>& chunks) { return chunks.empty() ? 0 : chunks.front().bound.size(); }

std::string keys_text(const std::vector<Key>& keys) {
  std::vector<std::string> texts;
  for (const Key& key : keys) texts.push_back(to_string(key));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Infers one node; the inputs' types are in `types`.
class NodeInference {
 public:
  NodeInference(const TraNode& node, const std::vector<RelationType>& types) : node_(node), types_(types) {}

  RelationType operator()(const StoredRelation& op) const { return relation_type(op.dtype, op.bound, op.cut); }
  RelationType operator()(const LabelPositions& op) const { return infer_positions(op); }
  RelationType operator()(const Aggregate& op) const { return infer_aggregate(op.group_by, op.kernel, in()); }
  RelationType operator()(const ReKey& op) const { return infer_rekey(op.map, in()); }
  RelationType operator()(const Filter& op) const { return infer_filter(op.predicate, in()); }
  RelationType operator()(const Transform& op) const { return infer_transform(op.kernel, in(), op.numbers); }
  RelationType operator()(const Tile& op) const { return infer_tile(op, in()); }
  RelationType operator()(const Concat& op) const { return infer_concat(op, in()); }
  RelationType operator()(const Join& op) const {
    std::vector<const RelationType*> relations;
    for (const TraId input : node_.inputs) relations.push_back(&types_[input.index]);
    Key left;
    std::size_t r = 0;
    for (const JoinedRelation& joined : join_inputs(op.keys_left, op.keys_right, relations).joined) {
      const Key right = frontier(*relations[r++]);
      check_frontiers(left, right, joined);
      left = joined_key(left, right, joined.right);
    }
    return infer_join(op, relations);
  }
  RelationType operator()(const Repartition& op) const { return infer_repartition(op, in()); }

 private:
  static void check_frontiers(const Key& left, const Key& right, const JoinedRelation& joined) {
    for (std::size_t i = 0; i < joined.left.size(); ++i) {
      const std::int64_t a = left[joined.left[i]];
      const std::int64_t b = right[joined.right[i]];
      if (a == b) continue;
      throw UserError(fmt::format(
          "position {} of the left keys goes up to {} (frontier {}), but position {} of the right keys, which it is "
          "joined with, up to {} (frontier {}); cut both alike, or repartition one",
          joined.left[i], a - 1, to_string(left), joined.right[i], b - 1, to_string(right)));
    }
  }
  const RelationType& in() const { return types_[node_.inputs.front().index]; }
  const TraNode& node_;
  const std::vector<RelationType>& types_;
};

std::size_t input_count(const TraNode& node) {
  if (std::holds_alternative<Join>(node.op)) return std::max<std::size_t>(2, node.inputs.size());
  return std::holds_alternative<StoredRelation>(node.op) || std::holds_alternative<LabelPositions>(node.op) ? 0 : 1;
}

/// Operations that are defined on relations with holes.
bool takes_holes(const TraOp& op) {
  return std::holds_alternative<Filter>(op) || std::holds_alternative<ReKey>(op) ||
         std::holds_alternative<Transform>(op) || std::holds_alternative<Concat>(op);
}

/// Throws about the holes of `id`, at the operation that made them.
[[noreturn]] void refuse_holes(const TraExpr& program, TraId id, const RelationType& type,
                               const std::vector<Key>& missing, const std::string& user) {
  while (std::holds_alternative<Transform>(program[id].op)) id = program[id].inputs.front();
  if (type.chunks.empty())
    throw TraError(id, fmt::format("{} leaves no tuple", describe(program, id)), "keep at least the key <0,...>");
  throw TraError(id,
                 fmt::format("{} leaves holes: {}{} missing below its frontier {}", describe(program, id),
                             keys_text(missing), missing.size() == 1 ? " is" : " are", to_string(frontier(type))),
                 fmt::format("close them with a rekey before {}", user));
}

void check_continuity(const TraExpr& program, TraId id, const RelationType& type, const std::string& user) {
  const std::vector<Key> missing = holes(type);
  if (!missing.empty() || type.chunks.empty()) refuse_holes(program, id, type, missing, user);
}

}  // namespace

void check_argument_types(const Kernel& kernel, std::vector<DType> found, const KeyMap& numbers) {
  found.resize(found.size() + numbers.outputs.size(), DType::i64);
  if (kernel.arguments.size() != found.size()) {
    throw UserError(
        fmt::format("kernel {} takes {} arrays, not {}", kernel.name, kernel.arguments.size(), found.size()));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (kernel.arguments[i] == found[i]) continue;
    throw UserError(fmt::format("kernel {} takes {} as argument {}, not {}", kernel.name, name_of(kernel.arguments[i]),
                                i + 1, name_of(found[i])));
  }
}

std::vector<JoinedRelation> joined_relations(const KeyPositions& keys_left, const KeyPositions& keys_right,
                                             const std::vector<std::size_t>& arities) {
  if (arities.size() == 2) check_positions(keys_left, arities.front(), "the left list");
  check_positions(keys_right, std::accumulate(arities.begin() + 1, arities.end(), std::size_t{0}), "the right list");
  if (keys_left.size() != keys_right.size()) {
    throw UserError(fmt::format("{} positions of the left keys cannot be joined with {} of the right keys",
                                keys_left.size(), keys_right.size()));
  }
  std::vector<JoinedRelation> relations{{{}, {}, all_positions(arities.front())}};
  std::size_t arity = arities.front();  // of the key so far
  std::size_t begin = 0;                // of the relation's positions among those of all right keys
  for (std::size_t r = 1; r < arities.size(); begin += arities[r++]) {
    JoinedRelation& joined = relations.emplace_back();
    joined.places.assign(arities[r], no_position);
    for (std::size_t i = 0; i < keys_right.size(); ++i) {
      if (keys_right[i] < begin || keys_right[i] >= begin + arities[r]) continue;
      joined.left.push_back(keys_left[i]);
      joined.right.push_back(keys_right[i] - begin);
      joined.places[joined.right.back()] = keys_left[i];
    }
    check_positions(joined.left, arity, "the left list");
    for (const std::size_t free : complement(joined.right, arities[r])) joined.places[free] = arity++;
  }
  return relations;
}

void check_positions(const KeyPositions& positions, std::size_t arity, const char* what) {
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] >= arity) {
      throw UserError(fmt::format("{} {} names position {}, but the keys have {} positions", what, to_string(positions),
                                  positions[i], arity));
    }
    if (std::find(positions.begin(), positions.begin() + static_cast<std::ptrdiff_t>(i), positions[i]) !=
        positions.begin() + static_cast<std::ptrdiff_t>(i))
      throw UserError(fmt::format("{} {} names position {} twice", what, to_string(positions), positions[i]));
  }
}

JoinInputs join_inputs(const KeyPositions& keys_left, const KeyPositions& keys_right,
                       const std::vector<const RelationType*>& relations) {
  JoinInputs inputs;
  std::vector<std::size_t> arities;
  for (const RelationType* const relation : relations) {
    arities.push_back(relation->key_arity);
    inputs.dtypes.push_back(relation->dtype);
    std::vector<const Key*>& keys = inputs.keys.emplace_back();
    for (const Chunk& chunk : relation->chunks) keys.push_back(&chunk.key);
  }
  inputs.joined = joined_relations(keys_left, keys_right, arities);
  inputs.arity = std::accumulate(arities.begin(), arities.end(), std::size_t{0}) - keys_left.size();
  return inputs;
}

void for_each_match(const std::vector<std::vector<const Key*>>& keys, const std::vector<JoinedRelation>& relations,
                    const std::function<void(const std::vector<std::size_t>&, const Key&)>& visit) {
  struct Met {
    std::vector<std::size_t> members;
    Key key;
  };
  std::vector<Met> so_far;
  for (std::size_t first = 0; first < keys.front().size(); ++first) so_far.push_back({{first}, *keys.front()[first]});
  for (std::size_t r = 1; r < relations.size(); ++r) {
    const JoinedRelation& joined = relations[r];
    std::map<Key, std::vector<std::size_t>> by_key;
    for (std::size_t c = 0; c < keys[r].size(); ++c) by_key[project(*keys[r][c], joined.right)].push_back(c);
    std::vector<Met> longer;
    for (Met& left : so_far) {
      const auto matches = by_key.find(project(left.key, joined.left));
      if (matches == by_key.end()) continue;
      left.members.push_back(0);
      for (const std::size_t c : matches->second) {
        left.members.back() = c;
        Key key = joined_key(left.key, *keys[r][c], joined.right);
        if (r + 1 == relations.size()) {
          visit(left.members, key);
          continue;
        }
        if (longer.size() >= most_chunks)
          throw UserError(fmt::format("the join makes more than {} tuples; cut into fewer chunks", most_chunks));
        longer.push_back({left.members, std::move(key)});
      }
    }
    so_far = std::move(longer);
  }
}

Key joined_key(const Key& left, const Key& right, const KeyPositions& keys_right) {
  Key key = left;
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (std::find(keys_right.begin(), keys_right.end(), i) == keys_right.end()) key.push_back(right[i]);
  }
  return key;
}

std::vector<std::size_t> order_by_key(const std::vector<Chunk>& chunks, const std::vector<Key>& origins) {
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Key& key = chunks[i].key;
    const auto in_range = [](std::int64_t value) { return value >= 0 && value <= most_key_value; };
    if (!std::all_of(key.begin(), key.end(), in_range)) {
      throw UserError(fmt::format("the tuple {} gets the key {}; the values of keys are 0 to {}", to_string(origins[i]),
                                  to_string(key), most_key_value));
    }
  }
  std::vector<std::size_t> order(chunks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return chunks[a].key < chunks[b].key; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (chunks[order[i]].key != chunks[order[i - 1]].key) continue;
    throw UserError(
        fmt::format("the tuples {} and {} both get the key {}; give them different keys, or fold them with an "
                    "aggregate",
                    to_string(origins[order[i - 1]]), to_string(origins[order[i]]), to_string(chunks[order[i]].key)));
  }
  return order;
}

/// The type with its chunks by ascending key.
RelationType sorted_by_key(RelationType type, const std::vector<Key>& origins) {
  std::vector<Chunk> sorted;
  sorted.reserve(type.chunks.size());
  for (const std::size_t i : order_by_key(type.chunks, origins)) sorted.push_back(std::move(type.chunks[i]));
  type.chunks = std::move(sorted);
  return type;
}

/// Evaluates for one tuple; what goes wrong names its key.
template <class Expr>
auto evaluate_for(const Expr& expr, const Key& key) {
  try {
    return evaluate(expr, key);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{} for the key {}", error.what(), to_string(key)));
  }
}

RelationType infer_repartition(const Repartition& op, const RelationType& in) {
  const bool fits = in.key_arity == in.rank && op.from.size() == in.rank && op.to.size() == in.rank;
  if (!fits) {
    throw UserError(
        fmt::format("a repartition needs one key position and one cut per dimension; the keys have {} "
                    "positions, the arrays {} dimensions",
                    in.key_arity, in.rank));
  }
  if (has_windows(op.from)) throw UserError("a repartition takes chunks that do not overlap, without windows");
  const Shape bound = tensor_bound(in);
  if (relation_type(in.dtype, bound, cut_of_all(op.from)).chunks != in.chunks)
    throw UserError(fmt::format("the relation is not a tensor {} cut as the repartition says; its keys go below {}",
                                to_string(bound), to_string(frontier(in))));
  return relation_type(in.dtype, bound, cut_of_all(op.to));
}

RelationType infer_positions(const LabelPositions& op) {
  return relation_type(DType::i64, {op.extent}, cut_of_all({op.cut}));
}

RelationType infer_filter(const KeyExpr& predicate, const RelationType& in) {
  for (const std::size_t position : positions_read(predicate)) {
    if (position >= in.key_arity)
      throw UserError(fmt::format("the predicate {} reads k{}, but the keys have {} positions", to_string(predicate),
                                  position, in.key_arity));
  }
  RelationType type{in.key_arity, in.rank, in.dtype, {}};
  for (const Chunk& chunk : in.chunks) {
    if (evaluate_for(predicate, chunk.key) != 0) type.chunks.push_back(chunk);
  }
  return type;
}

RelationType infer_rekey(const KeyMap& map, const RelationType& in) {
  RelationType type{map.outputs.size(), in.rank, in.dtype, {}};
  std::vector<Key> origins;
  for (const Chunk& chunk : in.chunks) {
    type.chunks.push_back({evaluate_for(map, chunk.key), chunk.bound});
    origins.push_back(chunk.key);
  }
  return sorted_by_key(std::move(type), origins);
}

std::vector<Shape> with_numbers(std::vector<Shape> arrays, const KeyMap& numbers) {
  arrays.resize(arrays.size() + numbers.outputs.size());
  return arrays;
}

std::vector<std::int64_t> numbers_of(const Key& key, const KeyMap& numbers) { return evaluate_for(numbers, key); }

RelationType infer_transform(const Kernel& kernel, const RelationType& in, const KeyMap& numbers) {
  check_argument_types(kernel, {in.dtype}, numbers);
  RelationType type{in.key_arity, 0, result_dtype(kernel), {}};
  KernelCalls calls(kernel);
  for (const Chunk& chunk : in.chunks) {
    numbers_of(chunk.key, numbers);
    try {
      type.chunks.push_back({chunk.key, calls(with_numbers({chunk.bound}, numbers)).bound});
    } catch (const UserError& error) {
      throw UserError(
          fmt::format("{} (array {} under the key {})", error.what(), to_string(chunk.bound), to_string(chunk.key)));
    }
  }
  type.rank = common_rank(type.chunks);
  return type;
}

RelationType infer_tile(const Tile& op, const RelationType& in) {
  if (op.size < 1) throw UserError(fmt::format("a tile has a size of at least 1, not {}", op.size));
  if (op.dim >= in.rank)
    throw UserError(fmt::format("dimension {} is tiled, but the arrays have {} dimensions", op.dim, in.rank));
  RelationType type{in.key_arity + 1, in.rank, in.dtype, {}};
  for (const Chunk& chunk : in.chunks) {
    const std::int64_t extent = chunk.bound[op.dim].value();
    const std::int64_t tiles = tile_count(chunk.bound[op.dim], op);
    if (tiles > static_cast<std::int64_t>(most_chunks - type.chunks.size()))
      throw UserError(fmt::format("the tiles would be more than {}; make them larger", most_chunks));
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      Chunk piece = chunk;
      piece.key.push_back(tile);
      piece.bound[op.dim] = Extent(std::min(op.size, extent - tile * op.size));
      type.chunks.push_back(std::move(piece));
    }
  }
  return type;
}

RelationType infer_concat(const Concat& op, const RelationType& in) {
  check_positions({op.key_position}, in.key_arity, "the key position of a concat");
  if (op.array_dim >= in.rank)
    throw UserError(
        fmt::format("dimension {} is concatenated, but the arrays have {} dimensions", op.array_dim, in.rank));
  const KeyPositions rest = complement({op.key_position}, in.key_arity);
  std::map<Key, std::vector<const Chunk*>> groups;
  for (const Chunk& chunk : in.chunks) groups[project(chunk.key, rest)].push_back(&chunk);
  RelationType type{rest.size(), in.rank, in.dtype, {}};
  for (const auto& [key, members] : groups) {
    Chunk whole{key, members.front()->bound};
    whole.bound[op.array_dim] = Extent(0);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Chunk& member = *members[i];
      if (member.key[op.key_position] != static_cast<std::int64_t>(i)) {
        throw UserError(fmt::format("the tuple with {} at position {} is missing from the group of {}", i,
                                    op.key_position, to_string(member.key)));
      }
      whole.bound[op.array_dim] =
          Extent(checked_add(whole.bound[op.array_dim].value(), member.bound[op.array_dim].value()));
      Shape expected = whole.bound;
      expected[op.array_dim] = member.bound[op.array_dim];
      if (member.bound != expected) {
        throw UserError(fmt::format("the arrays {} under {} and {} under {} do not fit together along dimension {}",
                                    to_string(members.front()->bound), to_string(members.front()->key),
                                    to_string(member.bound), to_string(member.key), op.array_dim));
      }
    }
    type.chunks.push_back(std::move(whole));
  }
  return type;
}

RelationType infer_aggregate(const KeyPositions& group_by, const Kernel& kernel, const RelationType& in) {
  check_positions(group_by, in.key_arity, "the list");
  check_argument_types(kernel, {in.dtype, in.dtype});
  if (result_dtype(kernel) != in.dtype) {
    throw UserError(fmt::format("kernel {} makes {} of {}, so it cannot fold; convert the arrays first", kernel.name,
                                name_of(result_dtype(kernel)), name_of(in.dtype)));
  }
  if (!is_associative_commutative(kernel)) {
    throw UserError(
        fmt::format("kernel {} is not known to be associative and commutative, so the result would depend "
                    "on the order; element-wise +, *, max and min are, logAddExp and minIndex too",
                    kernel.name));
  }
  std::map<Key, const Chunk*> groups;
  RelationType type{group_by.size(), in.rank, in.dtype, {}};
  for (const Chunk& chunk : in.chunks) {
    const auto [group, is_new] = groups.emplace(project(chunk.key, group_by), &chunk);
    if (is_new) {
      result_shape(kernel, {chunk.bound, chunk.bound});
    } else if (chunk.bound != group->second->bound) {
      throw UserError(
          fmt::format("kernel {} cannot fold arrays of different bounds: {} under the key {}, {} under {}; cut "
                      "evenly, or make them equal with a transform such as rowSum",
                      kernel.name, to_string(group->second->bound), to_string(group->second->key),
                      to_string(chunk.bound), to_string(chunk.key)));
    }
  }
  for (const auto& [key, first] : groups) type.chunks.push_back({key, first->bound});
  return type;
}

RelationType infer_join(const Join& op, const std::vector<const RelationType*>& relations) {
  const JoinInputs in = join_inputs(op.keys_left, op.keys_right, relations);
  check_argument_types(op.kernel, in.dtypes, op.numbers);
  RelationType type{in.arity, 0, result_dtype(op.kernel), {}};
  std::vector<Key> origins;
  KernelCalls calls(op.kernel);
  for_each_match(in.keys, in.joined, [&](const std::vector<std::size_t>& members, const Key& key) {
    if (type.chunks.size() >= most_chunks)
      throw UserError(fmt::format("the join makes more than {} tuples; cut into fewer chunks", most_chunks));
    std::vector<Shape> bounds;
    for (std::size_t r = 0; r < members.size(); ++r) bounds.push_back(relations[r]->chunks[members[r]].bound);
    numbers_of(key, op.numbers);
    try {
      type.chunks.push_back({key, calls(with_numbers(bounds, op.numbers)).bound});
    } catch (const UserError& error) {
      std::string arrays;
      for (std::size_t r = 0; r < members.size(); ++r)
        arrays += fmt::format("{} array {} under {}{}", r == 0 ? "left" : ", right", to_string(bounds[r]),
                              r == 0 ? "the key " : "", to_string(*in.keys[r][members[r]]));
      throw UserError(fmt::format("{} ({})", error.what(), arrays));
    }
    origins.push_back(*in.keys.front()[members.front()]);
  });
  type.rank = common_rank(type.chunks);
  return sorted_by_key(std::move(type), origins);
}

std::vector<RelationType> infer(const TraExpr& program) {
  constexpr std::size_t most_tuples = 4 * most_chunks;
  std::vector<RelationType> types;
  std::size_t tuples = 0;
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    const TraNode& node = program.nodes[i];
    const TraId id{i};
    if (node.inputs.size() != input_count(node))
      throw TraError(id, fmt::format("{} takes {} relations, not {}", describe(program, id), input_count(node),
                                     node.inputs.size()));
    if (!takes_holes(node.op)) {
      for (const TraId input : node.inputs) check_continuity(program, input, types[input.index], describe(program, id));
    }
    try {
      types.push_back(std::visit(NodeInference(node, types), node.op));
    } catch (const UserError& error) {
      throw TraError(id, fmt::format("{}: {}", describe(program, id), error.what()));
    }
    tuples += types.back().chunks.size();
    if (tuples > most_tuples)
      throw TraError(
          id,
          fmt::format("the relations up to {} have more than {} tuples together", describe(program, id), most_tuples),
          "cut into fewer chunks");
  }
  for (const TraOutput& output : program.outputs)
    check_continuity(program, output.id, types[output.id.index], "it is the output " + output.name);
  return types;
}

}  // namespace einrel
