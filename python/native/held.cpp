#include "held.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "history.h"
#include "lasting_program.h"

namespace einrel::python {
namespace {

constexpr std::size_t most_arrays = 1'024;
constexpr std::int64_t most_bytes = std::int64_t{1} << 30;

std::int64_t size_of(const Type& type) {
  return std::accumulate(type.shape.begin(), type.shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t bytes_of(const Type& type) { return size_of(type) * static_cast<std::int64_t>(api::size_of(type.dtype)); }

/// Whether Python holds what is made of nodes, by way of what is still to be computed.
class Uses {
 public:
  explicit Uses(const Walk& walk) : walk_(walk) {}

  /// Whether it is an operand of what is so held and no part of the walk: to compute that, it is needed again.
  bool are_elsewhere(const Node& node) {
    return std::any_of(node.consumers().begin(), node.consumers().end(),
                       [&](Node* consumer) { return !walk_.has(*consumer) && leads_to_held(*consumer); });
  }

 private:
  struct Step {
    Node* node;
    std::unordered_set<Node*>::const_iterator next;
  };

  /// Without recursion: graphs are as deep as loops are long.
  bool leads_to_held(Node& from) {
    std::vector<Step> path;
    const auto enter = [&](Node& node) {
      const auto [known, is_new] = leads_.emplace(&node, false);
      if (is_new) path.push_back({&node, node.consumers().begin()});
      return known->second || (is_new && is_held(node));
    };
    bool found = enter(from);
    while (!found && !path.empty()) {
      Step& step = path.back();
      if (step.next == step.node->consumers().end())
        path.pop_back();
      else
        found = enter(**step.next++);
    }
    for (const Step& step : path) leads_[step.node] = found;
    return found;
  }

  const Walk& walk_;
  std::unordered_map<const Node*, bool> leads_;  // of those that it has been asked of
};

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

/// By place: whether it has the elements of its operand.
bool is_like_its_operand(const Walk::Place& place) {
  return place.node->is_apart() || std::holds_alternative<View>(place.node->definition()->meaning());
}

/// By place: whether Python holds it, or what is still to be computed of it.
struct Wishes {
  std::vector<bool> held;
  std::vector<bool> needed;
};

Wishes wishes_of(const Walk& walk) {
  const std::size_t count = walk.places().size();
  Wishes wishes{std::vector<bool>(count), std::vector<bool>(count)};
  Uses uses(walk);
  for (std::size_t at = count; at-- > 0;) {
    const Walk::Place& place = walk.places()[at];
    if (place.is_leaf) continue;
    Node& node = *place.node;
    wishes.held[at] = is_held(node);
    if (wishes.held[at]) continue;
    const bool is_needed = wishes.needed[at] || uses.are_elsewhere(node) || uses.are_elsewhere(*node.original());
    const bool needs_operand = is_needed && is_like_its_operand(place);
    wishes.needed[at] = is_needed && !needs_operand;
    if (needs_operand) wishes.needed[place.operands.front()] = true;
  }
  return wishes;
}

void sort_by_number(std::vector<HeldNode>& nodes) {
  std::sort(nodes.begin(), nodes.end(),
            [](const HeldNode& a, const HeldNode& b) { return a.array->number() < b.array->number(); });
}

/// Those that there is room for: first what is held, then what is needed, of both the newest. The oldest first.
std::vector<HeldNode> within_limits(std::vector<HeldNode> held, std::vector<HeldNode> needed) {
  std::vector<HeldNode> kept;
  std::int64_t bytes = 0;
  for (std::vector<HeldNode>* const some : {&held, &needed}) {
    sort_by_number(*some);
    for (std::size_t i = some->size(); i-- > 0 && kept.size() < most_arrays;) {
      const std::int64_t more = bytes_of(*(*some)[i].array->type());
      if (more > most_bytes - bytes) continue;
      bytes += more;
      kept.push_back(std::move((*some)[i]));
    }
  }
  sort_by_number(kept);
  return kept;
}

}  // namespace

std::vector<HeldNode> held_on_the_way(const Walk& walk, const api::RunOptions& options) {
  if (options.memory || options.plan) return {};
  std::vector<HeldNode> held;
  std::vector<HeldNode> needed;
  const Wishes wishes = wishes_of(walk);
  std::vector<bool> needs_nothing = made_without_work(walk);
  for (const std::size_t place : walk.wanted()) needs_nothing[place] = true;
  for (std::size_t place = 0; place < needs_nothing.size(); ++place) {
    if (needs_nothing[place] || !(wishes.held[place] || wishes.needed[place])) continue;
    Node& node = *walk.places()[place].node;
    NodePtr array = node.original();
    const bool takes_value = !array->is_leaf() && !array->is_traced();
    if (takes_value && wishes.held[place])
      held.push_back({node.shared_from_this(), std::move(array)});
    else if (takes_value && array->identity() == array->number())  // a copy shows a gradient how it is made
      needed.push_back({node.shared_from_this(), std::move(array)});
  }
  if (held.empty() && needed.empty()) return {};
  const std::optional<api::Ranks> processes = ranks();
  if (processes && processes->count() > 1) return {};
  return within_limits(std::move(held), std::move(needed));
}

}  // namespace einrel::python
