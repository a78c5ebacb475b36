#include "ia/traffic.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>

#include "base/error.h"
#include "ia/infer.h"
#include "tra/repartition.h"

namespace einrel {
namespace {

/// Is told of every tuple, or piece of one, that goes from a site to another, and of its bytes.
using DeliveryListener = std::function<void(const Delivery& delivery, std::int64_t bytes)>;

/// Tells of what one operation moves.
class Mover {
 public:
  Mover(const IaStore& store, const IaNode& node, const DeliveryListener& tell)
      : store_(store), node_(node), tell_(tell) {}

  void operator()(const Bcast&) {
    if (is_everywhere(in())) return;
    const SiteLists holders = sites_of_chunks(in());
    std::vector<Site> all(static_cast<std::size_t>(store_.sites()));
    std::iota(all.begin(), all.end(), Site{0});
    for (std::size_t c = 0; c < holders.size(); ++c)
      deliver(holders[c], all, bytes_of_array(in().relation.chunks[c].bound));
  }

  void operator()(const Shuf&) {
    if (is_everywhere(in())) return;
    const std::vector<Chunk>& chunks = in().relation.chunks;
    const std::vector<PlacedChunk>& targets = node_.type.tuples;
    if (in().partial) {  // one target for each tuple, in the same order
      for (std::size_t t = 0; t < targets.size(); ++t)
        deliver({in().tuples[t].site}, {targets[t].site}, bytes_of_array(chunks[targets[t].chunk].bound));
      return;
    }
    const SiteLists holders = sites_of_chunks(in());
    const SiteLists wanted = sites_of_chunks(node_.type);
    for (std::size_t c = 0; c < chunks.size(); ++c) deliver(holders[c], wanted[c], bytes_of_array(chunks[c].bound));
  }

  void operator()(const Repart& op) {
    if (is_everywhere(in())) return;
    const Shape bound = tensor_bound(in().relation);
    std::vector<std::vector<std::vector<Piece>>> pieces;  // per dimension and new part
    for (std::size_t d = 0; d < bound.size(); ++d) pieces.push_back(pieces_of(bound[d], op.from[d], op.to[d]));
    const SiteLists holders = sites_of_chunks(in());
    const SiteLists targets = sites_of_chunks(node_.type);
    for (std::size_t c = 0; c < targets.size(); ++c) {
      std::vector<const std::vector<Piece>*> of_chunk;
      for (std::size_t d = 0; d < bound.size(); ++d)
        of_chunk.push_back(&pieces[d][static_cast<std::size_t>(node_.type.relation.chunks[c].key[d])]);
      deliver_pieces(op, of_chunk, holders, targets[c]);
    }
    for (const auto& [begin, piece] : shared_) deliver(holders[piece.old_chunk], piece.targets, piece.bytes);
  }

  template <class LocalOp>
  void operator()(const LocalOp&) {}

 private:
  const PhysicalType& in() const { return store_[node_.inputs.front()].type; }
  std::int64_t bytes_of_array(const Shape& bound) const {
    return checked_multiply(element_count(bound), static_cast<std::int64_t>(size_of(in().relation.dtype)));
  }

  void deliver(const std::vector<Site>& holders, const std::vector<Site>& targets, std::int64_t bytes) {
    for (const Delivery& delivery : deliveries(holders, targets)) tell_(delivery, bytes);
  }

  /// Delivers every piece of one new chunk: `pieces` holds those of its part of each dimension.
  void deliver_pieces(const Repart& op, const std::vector<const std::vector<Piece>*>& pieces, const SiteLists& holders,
                      const std::vector<Site>& targets) {
    if (std::any_of(pieces.begin(), pieces.end(), [](const auto* each) { return each->empty(); })) return;
    std::vector<std::size_t> at(pieces.size(), 0);
    std::size_t d = 0;
    do {
      std::int64_t old_chunk = 0;  // chunks of a tensor are in row-major order of their keys
      std::vector<std::int64_t> begin;
      auto bytes = static_cast<std::int64_t>(size_of(in().relation.dtype));
      for (std::size_t i = 0; i < at.size(); ++i) {
        const Piece& piece = (*pieces[i])[at[i]];
        old_chunk = old_chunk * op.from[i].parts + piece.part;
        bytes = checked_multiply(bytes, piece.extent);
        begin.push_back(piece.begin);
      }
      if (has_windows(op.to)) {
        SharedPiece& piece = shared_[begin];
        piece = {static_cast<std::size_t>(old_chunk), bytes, sites_of_either(piece.targets, targets)};
      } else {
        deliver(holders[static_cast<std::size_t>(old_chunk)], targets, bytes);
      }
      for (d = at.size(); d > 0 && ++at[d - 1] == pieces[d - 1]->size(); --d) at[d - 1] = 0;
    } while (d > 0);
  }

  /// A piece of an old chunk that several new ones may have.
  struct SharedPiece {
    std::size_t old_chunk = 0;
    std::int64_t bytes = 0;
    std::vector<Site> targets;
  };

  const IaStore& store_;
  const IaNode& node_;
  const DeliveryListener& tell_;
  std::map<std::vector<std::int64_t>, SharedPiece> shared_;  // by where it begins
};

template <class Nodes>
void move_nodes(const IaStore& store, const Nodes& nodes, const DeliveryListener& tell) {
  for (const IaId id : nodes) std::visit(Mover(store, store[id], tell), store[id].op);
}

/// Of a plan, which can run.
std::vector<IaId> checked_nodes(const IaStore& store, const IaPlan& plan) {
  if (const std::string fault = fault_of(store, plan); !fault.empty()) throw Bug("a plan that cannot run: " + fault);
  return nodes_of(store, plan);
}

template <class Nodes>
Traffic traffic_of(const IaStore& store, const Nodes& nodes) {
  const std::vector<std::int64_t> none(static_cast<std::size_t>(store.sites()), 0);
  Traffic traffic{none, none, 0};
  move_nodes(store, nodes, [&](const Delivery& delivery, std::int64_t bytes) {
    std::int64_t& received = traffic.received[static_cast<std::size_t>(delivery.to)];
    std::int64_t& sent = traffic.sent[static_cast<std::size_t>(delivery.from)];
    received = checked_add(received, bytes);
    sent = checked_add(sent, bytes);
    traffic.total = checked_add(traffic.total, bytes);
  });
  return traffic;
}

}  // namespace

std::vector<Site> sites_of_either(const std::vector<Site>& a, const std::vector<Site>& b) {
  std::vector<Site> both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

std::vector<Delivery> deliveries(const std::vector<Site>& holders, const std::vector<Site>& targets) {
  std::vector<Site> tree{holders.front()};
  std::set_difference(targets.begin(), targets.end(), holders.begin(), holders.end(), std::back_inserter(tree));
  std::vector<Delivery> found;
  for (std::size_t i = 1; i < tree.size(); ++i) found.push_back({tree[(i - 1) / 2], tree[i]});
  return found;
}

std::int64_t bytes_of(const IaStore& store, IaId id) {
  std::int64_t total = 0;
  const DeliveryListener add = [&](const Delivery&, std::int64_t bytes) { total = checked_add(total, bytes); };
  std::visit(Mover(store, store[id], add), store[id].op);
  return total;
}

Traffic bytes_of(const IaStore& store, const IaPlan& plan) { return traffic_of(store, checked_nodes(store, plan)); }

Traffic bytes_of(const IaStore& store, const std::set<IaId>& nodes) { return traffic_of(store, nodes); }

std::vector<std::vector<std::int64_t>> bytes_between(const IaStore& store, const IaPlan& plan, std::int64_t group) {
  const auto groups = static_cast<std::size_t>((store.sites() + group - 1) / group);
  std::vector<std::vector<std::int64_t>> sent(groups, std::vector<std::int64_t>(groups, 0));
  move_nodes(store, checked_nodes(store, plan), [&](const Delivery& delivery, std::int64_t bytes) {
    std::int64_t& known =
        sent[static_cast<std::size_t>(delivery.from / group)][static_cast<std::size_t>(delivery.to / group)];
    known = checked_add(known, bytes);
  });
  return sent;
}

}  // namespace einrel
