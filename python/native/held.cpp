#include "held.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>

#include "history.h"
#include "lasting_program.h"

namespace einrel::python {
namespace {

constexpr std::size_t most_arrays = 64;
constexpr std::int64_t most_bytes = std::int64_t{1} << 30;

std::int64_t size_of(const Type& type) {
  return std::accumulate(type.shape.begin(), type.shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t bytes_of(const Type& type) { return size_of(type) * static_cast<std::int64_t>(api::size_of(type.dtype)); }

/// Whether each element is made of some elements, without a sum or the like.
bool is_of_elements(const Definition& definition) {
  const auto* const statement = std::get_if<Statement>(&definition.meaning());
  if (statement != nullptr) return statement->extents.size() == statement->rank;
  return std::holds_alternative<View>(definition.meaning());
}

/// By place: whether it is made of what is there by such definitions alone. Of these a part can be made by itself.
std::vector<bool> made_in_parts(const Walk& walk) {
  std::vector<bool> in_parts;
  for (const Walk::Place& place : walk.places()) {
    const bool of_such = std::all_of(place.operands.begin(), place.operands.end(),
                                     [&](std::size_t operand) { return in_parts[operand]; });
    in_parts.push_back(place.is_leaf || (of_such && is_of_elements(*place.node->definition())));
  }
  return in_parts;
}

/// By place: whether all of its elements are computed.
std::vector<bool> computed_as_a_whole(const Walk& walk) {
  const std::vector<bool> in_parts = made_in_parts(walk);
  std::vector<bool> whole(walk.places().size(), false);
  for (const std::size_t place : walk.wanted()) whole[place] = true;
  for (std::size_t place = whole.size(); place-- > 0;) {
    const Walk::Place& consumer = walk.places()[place];
    if (consumer.is_leaf) continue;
    const Definition& definition = *consumer.node->definition();
    for (const std::size_t operand : consumer.operands) {
      const bool is_smaller = size_of(*definition.type()) < size_of(*walk.places()[operand].node->type());
      const bool takes_a_part = !whole[place] || (is_smaller && is_of_elements(definition));
      if (!takes_a_part || !in_parts[operand]) whole[operand] = true;
    }
  }
  return whole;
}

/// By place: whether it is there, made of numbers alone, or such an array under other dimensions.
std::vector<bool> made_without_work(const Walk& walk) {
  std::vector<bool> without_work;
  const auto is_number = [&](std::size_t place) {
    const Walk::Place& operand = walk.places()[place];
    return operand.is_leaf && size_of(*operand.node->type()) == 1;
  };
  for (const Walk::Place& place : walk.places()) {
    const std::vector<std::size_t>& operands = place.operands;
    const bool is_view = !place.is_leaf && std::holds_alternative<View>(place.node->definition()->meaning());
    const bool is_of_numbers =
        size_of(*place.node->type()) > 1 && std::all_of(operands.begin(), operands.end(), is_number);
    without_work.push_back(place.is_leaf || is_of_numbers || (is_view && without_work[operands.front()]));
  }
  return without_work;
}

/// The newest ones, as far as there is room for them, the oldest first.
std::vector<HeldNode> within_limits(std::vector<HeldNode> held) {
  std::sort(held.begin(), held.end(),
            [](const HeldNode& a, const HeldNode& b) { return a.array->number() > b.array->number(); });
  std::vector<HeldNode> kept;
  std::int64_t bytes = 0;
  for (HeldNode& one : held) {
    const std::int64_t more = bytes_of(*one.array->type());
    if (kept.size() == most_arrays || more > most_bytes - bytes) continue;
    bytes += more;
    kept.push_back(std::move(one));
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

std::vector<HeldNode> held_on_the_way(const Walk& walk, const api::RunOptions& options) {
  if (options.memory || options.plan) return {};
  std::vector<HeldNode> held;
  const std::vector<bool> whole = computed_as_a_whole(walk);
  std::vector<bool> needs_nothing = made_without_work(walk);
  for (const std::size_t place : walk.wanted()) needs_nothing[place] = true;
  for (std::size_t place = 0; place < whole.size(); ++place) {
    Node& node = *walk.places()[place].node;
    if (needs_nothing[place] || !whole[place] || !is_held(node)) continue;
    NodePtr array = node.original();
    if (!array->is_leaf() && !array->is_traced()) held.push_back({node.shared_from_this(), std::move(array)});
  }
  if (held.empty()) return held;
  const std::optional<api::Ranks> processes = ranks();
  if (processes && processes->count() > 1) return {};
  return within_limits(std::move(held));
}

}  // namespace einrel::python
