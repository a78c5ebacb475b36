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
RelationType infer_join(const Join& op, const RelationType& left, const RelationType& right);
RelationType infer_repartition(const Repartition& op, const RelationType& in);
RelationType infer_positions(const LabelPositions& op);

/// Throws UserError unless every position is below `arity` and none stands twice; `what` names the list.
void check_positions(const KeyPositions& positions, std::size_t arity, const char* what);
/// Calls visit(left chunk, right chunk) with the indices of every matching pair, by ascending left, then right key.
void for_each_match(const RelationType& left, const KeyPositions& keys_left, const RelationType& right,
                    const KeyPositions& keys_right, const std::function<void(std::size_t, std::size_t)>& visit);
/// The output key of a join.
Key joined_key(const Key& left, const Key& right, const KeyPositions& keys_right);
/// The order of the chunks by ascending key. Throws UserError naming tuples when two get one key, or a key that is
/// negative or above most_key_value. `origins` are the keys they came from.
std::vector<std::size_t> order_by_key(const std::vector<Chunk>& chunks, const std::vector<Key>& origins);
/// Throws UserError unless both lists are positions of their side, as many on each.
void check_join_positions(const KeyPositions& keys_left, const KeyPositions& keys_right, const RelationType& left,
                          const RelationType& right);
/// Throws UserError unless the kernel takes arrays of these types, and after them so many numbers of keys.
void check_argument_types(const Kernel& kernel, std::vector<DType> found, const KeyMap& numbers = {});
/// The bounds of a kernel's arguments: those of the arrays, and of the numbers of a key.
std::vector<Shape> with_numbers(std::vector<Shape> arrays, const KeyMap& numbers);
/// The numbers of a key. Throws UserError naming it when they cannot be worked out.
std::vector<std::int64_t> numbers_of(const Key& key, const KeyMap& numbers);

}  // namespace einrel
