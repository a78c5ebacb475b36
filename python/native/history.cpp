#include "history.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_set>
#include <utility>

namespace einrel::python {
namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 20;  // of elements that nobody else holds
constexpr std::size_t most_nodes = 10'000;
constexpr std::size_t fewest_looked_at = 64;
constexpr std::size_t most_later = 256;

struct Record {
  Node* node;
  std::string where;
  std::vector<std::weak_ptr<Node>> lost;  ///< of what it was made, once it has forgotten how
};

struct Histories {
  std::map<std::int64_t, Record> records;  // by number: each after those that it is made of
  std::vector<std::weak_ptr<Node>> later;
  std::unordered_set<std::int64_t> counted;  // leaves by number: those that were looked at, and of new_bytes
  std::size_t new_bytes = 0;                 // at most, since all were looked at
  std::size_t new_nodes = 0;
  std::size_t left = 0;  // then
  int keeping = 0;
};

/// Under Python's lock; owned by nobody: nodes may outlive all else.
Histories& histories() {
  static Histories& all = *new Histories;
  return all;
}

std::size_t bytes_in(const Node& node) { return node.value() ? node.value()->tensor.bytes().size() : 0; }

std::string line_of_computing() {
  return nanobind::cast<std::string>(nanobind::module_::import_("einrel._lines").attr("line_of_computing")());
}

/// What a node was computed of, down to what has elements.
struct Parts {
  std::vector<Node*> leaves;
  std::size_t nodes = 0;
  bool is_asked_for = false;  ///< a gradient by one of these, or by what they were made of, may be
  bool has_lost = false;      ///< one has forgotten how it was made of what is still held
};

Parts parts_of(const Node& node) {
  Parts parts;
  std::unordered_set<const Node*> known;
  std::vector<Node*> waiting;
  const auto add_operands = [&](const Node& of) {
    for (const NodePtr& operand : of.operands()) {
      if (known.insert(operand.get()).second) waiting.push_back(operand.get());
    }
  };
  add_operands(node);
  while (!waiting.empty()) {
    Node& part = *waiting.back();
    waiting.pop_back();
    ++parts.nodes;
    parts.is_asked_for = parts.is_asked_for || is_held(part) || has_history(part);
    if (part.is_leaf()) {
      parts.leaves.push_back(&part);
      parts.has_lost = parts.has_lost || !lost_sources(part).empty();
    } else {
      add_operands(part);
    }
  }
  return parts;
}

/// What of all that it was made of Python holds.
std::vector<std::weak_ptr<Node>> held_sources(const Node& node) {
  std::vector<std::weak_ptr<Node>> sources;
  std::unordered_set<const Node*> known{&node};
  std::vector<const Node*> waiting{&node};
  while (!waiting.empty()) {
    const Node& part = *waiting.back();
    waiting.pop_back();
    for (const NodePtr& operand : part.operands()) {
      if (!known.insert(operand.get()).second) continue;
      if (is_held(*operand)) sources.push_back(operand->original());
      waiting.push_back(operand.get());
    }
    for (const NodePtr& lost : lost_sources(part)) {
      if (known.insert(lost.get()).second) sources.push_back(lost);
    }
  }
  return sources;
}

/// Its operands, which the caller lets go when it has seen all records: they may be gone with that.
std::vector<NodePtr> forget(Record& record) {
  record.lost = held_sources(*record.node);
  return record.node->forget();
}

bool is_lost(const Record& record) {
  return std::all_of(record.lost.begin(), record.lost.end(),
                     [](const std::weak_ptr<Node>& source) { return source.expired(); });
}

using Freed = std::vector<std::vector<NodePtr>>;

/// Those that keep how they were made, though elements are kept for them that nobody else holds, the newest first.
void forget_beyond_budget(const std::vector<std::pair<Record*, Parts>>& kept, Freed& freed) {
  std::unordered_set<const std::byte*> counted;
  std::size_t bytes = 0;
  std::size_t nodes = 0;
  std::size_t first = kept.size();
  while (first > 0) {
    const Parts& parts = kept[first - 1].second;
    for (Node* const leaf : parts.leaves) {
      if (leaf->value() && !is_held(*leaf) && counted.insert(leaf->value()->tensor.bytes().data()).second)
        bytes += bytes_in(*leaf);
    }
    nodes += parts.nodes;
    if (bytes > most_bytes || nodes > most_nodes) break;
    --first;
  }
  for (std::size_t i = 0; i < first; ++i) freed.push_back(forget(*kept[i].first));
}

void look_at_all() {
  Histories& all = histories();
  Freed freed;
  std::vector<std::pair<Record*, Parts>> kept;
  for (auto& [number, record] : all.records) {
    if (!has_history(*record.node)) continue;
    Parts parts = parts_of(*record.node);
    if (parts.is_asked_for)
      kept.emplace_back(&record, std::move(parts));
    else
      freed.push_back(forget(record));
  }
  all.counted.clear();
  for (const auto& [record, parts] : kept) {
    for (const Node* const leaf : parts.leaves) all.counted.insert(leaf->number());
  }
  forget_beyond_budget(kept, freed);
  for (auto at = all.records.begin(); at != all.records.end();) {
    if (!has_history(*at->second.node) && is_lost(at->second))
      at = all.records.erase(at);
    else
      ++at;
  }
  all.left = all.records.size();
  all.new_bytes = all.new_nodes = 0;
}

/// Keeps how a node was made, if that may be of use. Whether it is asked for is known.
void decide(Record record, const Parts& parts, Freed& freed) {
  Histories& all = histories();
  for (const Node* const leaf : parts.leaves) {
    if (all.counted.insert(leaf->number()).second) all.new_bytes += bytes_in(*leaf);
  }
  ++all.new_nodes;
  if (all.keeping == 0 && !parts.is_asked_for) freed.push_back(forget(record));
  if (has_history(*record.node) || !is_lost(record))
    all.records.insert_or_assign(record.node->number(), std::move(record));
}

void look_if_many() {
  const Histories& all = histories();
  if (all.keeping == 0 && (all.new_bytes > most_bytes || all.new_nodes > all.left + fewest_looked_at)) look_at_all();
}

void decide_later_ones(Freed& freed) {
  Histories& all = histories();
  if (all.keeping > 0) return;
  const std::vector<std::weak_ptr<Node>> later = std::exchange(all.later, {});
  for (const std::weak_ptr<Node>& one : later) {
    const NodePtr node = one.lock();
    if (!node || !has_history(*node)) continue;
    Record record = std::move(all.records.at(node->number()));
    all.records.erase(node->number());
    decide(std::move(record), parts_of(*node), freed);
  }
}

}  // namespace

bool is_held(Node& node) { return nanobind::find(*node.original()).is_valid(); }

bool has_history(const Node& node) { return node.value() && !node.operands().empty(); }

void remember(const std::vector<NodePtr>& computed) {
  Freed freed;
  decide_later_ones(freed);
  std::string where;
  for (const NodePtr& node : computed) {
    if (!has_history(*node)) continue;
    const Parts parts = parts_of(*node);
    const bool is_told = parts.is_asked_for || parts.has_lost || histories().keeping > 0;
    if (where.empty() && is_told) where = line_of_computing();
    decide({node.get(), where, {}}, parts, freed);
  }
  look_if_many();
}

void remember_later(const NodePtr& made, std::string where) {
  histories().records.insert_or_assign(made->number(), Record{made.get(), std::move(where), {}});
  histories().later.push_back(made);
  if (histories().later.size() < most_later) return;
  Freed freed;
  decide_later_ones(freed);
  look_if_many();
}

void forget_history(const Node& node) { histories().records.erase(node.number()); }

void keep_histories(bool keeps) { histories().keeping += keeps ? 1 : -1; }

std::vector<NodePtr> lost_sources(const Node& node) {
  std::vector<NodePtr> sources;
  const auto found = histories().records.find(node.number());
  if (found == histories().records.end()) return sources;
  for (const std::weak_ptr<Node>& lost : found->second.lost) {
    if (NodePtr source = lost.lock()) sources.push_back(std::move(source));
  }
  return sources;
}

std::string place_of_making(const Node& node) {
  const auto found = histories().records.find(node.number());
  return found == histories().records.end() ? std::string() : found->second.where;
}

}  // namespace einrel::python
