#pragma once

#include <functional>
#include <vector>

#include "base/error.h"
#include "tra/tra_expr.h"

namespace einrel {

/// A program in the TRA is wrong at one node; what() names it, with keys and positions. Front ends add line and column.
class TraError : public UserError {
 public:
  TraError(TraId node, const std::string& message, const std::string& help = "")
      : UserError(help.empty() ? message : message + "; " + help), node_(node), message_(message), help_(help) {}
  TraId node() const { return node_; }
  const std::string& message() const { return message_; }
  const std::string& help() const { return help_; }

 private:
  TraId node_;
  std::string message_;
  std::string help_;
};

/// The type of every node. Throws TraError for:
/// - positions that a key or an array does not have, positions listed twice, a tile size below 1;
/// - a rekey that gives two tuples one key (uniqueness), naming them;
/// - a join on positions with different frontiers, naming positions and frontiers;
/// - a kernel that does not fit its arrays, naming kernel, keys and extents; aggregate kernels that depend on order;
/// - holes (continuity): a filter, rekey or tile may leave some when only filters, rekeys, transforms and concats stand
///   between it and an operation that closes them; otherwise the missing keys are named.
/// O(tuples of all relations).
std::vector<RelationType> infer(const TraExpr& program);

// The type of one operation from the types of its inputs; each throws UserError without naming the node.
RelationType infer_filter(const KeyExpr& predicate, const RelationType& in);
RelationType infer_rekey(const KeyMap& map, const RelationType& in);
RelationType infer_transform(const Kernel& kernel, const RelationType& in, const KeyMap& numbers = {});
RelationType infer_tile(const Tile& op, const RelationType& in);
RelationType infer_concat(const Concat& op, const RelationType& in);
RelationType infer_aggregate(const KeyPositions& group_by, const Kernel& kernel, const RelationType& in);
RelationType infer_join(const Join& op, const std::vector<const RelationType*>& relations);
RelationType infer_repartition(const Repartition& op, const RelationType& in);
RelationType infer_positions(const LabelPositions& op);

/// Throws UserError unless every position is below `arity` and none stands twice; `what` names the list.
void check_positions(const KeyPositions& positions, std::size_t arity, const char* what);
/// What a join does with one of its relations.
struct JoinedRelation {
  KeyPositions left;    ///< positions of the key so far; none for the first relation
  KeyPositions right;   ///< the positions of its own key that equal them
  KeyPositions places;  ///< where the positions of its key stand in the joined key
};
/// Of a join of relations whose keys have so many positions. Throws UserError unless both lists are such positions, as
/// many in each.
std::vector<JoinedRelation> joined_relations(const KeyPositions& keys_left, const KeyPositions& keys_right,
                                             const std::vector<std::size_t>& arities);
/// The same for relations of these types, with what else is asked of them.
struct JoinInputs {
  std::vector<JoinedRelation> joined;
  std::size_t arity = 0;  ///< of the joined key
  std::vector<DType> dtypes;
  std::vector<std::vector<const Key*>> keys;
};
JoinInputs join_inputs(const KeyPositions& keys_left, const KeyPositions& keys_right,
                       const std::vector<const RelationType*>& relations);
/// Calls visit(members, joined key) for all tuples that meet, one of each relation, whose keys these are: members are
/// their numbers, ascending from the first relation on. Throws UserError when too many of the relations before the last
/// meet.
void for_each_match(const std::vector<std::vector<const Key*>>& keys, const std::vector<JoinedRelation>& relations,
                    const std::function<void(const std::vector<std::size_t>&, const Key&)>& visit);
/// The same for maps from keys: calls visit(joined key, tuples) with pointers to keys and values.
template <class Tuples, class Visit>
void for_each_match(const std::vector<const Tuples*>& relations, const KeyPositions& keys_left,
                    const KeyPositions& keys_right, const Visit& visit) {
  std::vector<std::size_t> arities;
  std::vector<std::vector<const Key*>> keys;
  std::vector<std::vector<const typename Tuples::value_type*>> tuples;
  for (const Tuples* const relation : relations) {
    if (relation->empty()) return;
    arities.push_back(relation->begin()->first.size());
    keys.emplace_back();
    tuples.emplace_back();
    for (const auto& tuple : *relation) {
      keys.back().push_back(&tuple.first);
      tuples.back().push_back(&tuple);
    }
  }
  std::vector<const typename Tuples::value_type*> met(relations.size());
  for_each_match(keys, joined_relations(keys_left, keys_right, arities),
                 [&](const std::vector<std::size_t>& members, const Key& joined) {
                   for (std::size_t r = 0; r < members.size(); ++r) met[r] = tuples[r][members[r]];
                   visit(joined, met);
                 });
}
/// The output key of a join of two relations.
Key joined_key(const Key& left, const Key& right, const KeyPositions& keys_right);
/// The order of the chunks by ascending key. Throws UserError naming tuples when two get one key, or a key that is
/// negative or above most_key_value. `origins` are the keys they came from.
std::vector<std::size_t> order_by_key(const std::vector<Chunk>& chunks, const std::vector<Key>& origins);
/// Throws UserError unless the kernel takes arrays of these types, and after them so many numbers of keys.
void check_argument_types(const Kernel& kernel, std::vector<DType> found, const KeyMap& numbers = {});
/// The bounds of a kernel's arguments: those of the arrays, and of the numbers of a key.
std::vector<Shape> with_numbers(std::vector<Shape> arrays, const KeyMap& numbers);
/// The numbers of a key. Throws UserError naming it when they cannot be worked out.
std::vector<std::int64_t> numbers_of(const Key& key, const KeyMap& numbers);

}  // namespace einrel
