#include "plan/refine/recompute.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "einsum/front/build/fresh_name.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/plan.h"

namespace einrel {
namespace {

/// What it takes to drop a tensor.
struct Drop {
  std::size_t tensor = 0;
  std::size_t reader = 0;             ///< in front of which it is computed again
  std::vector<std::size_t> computed;  ///< what is computed again for it, ascending, it among them
  double flops = 0;
  double per_byte = std::numeric_limits<double>::infinity();
};

/// Where most bytes are kept.
struct Tightest {
  std::size_t vertex = 0;
  double bytes = 0;
};

Tightest tightest_of(const EinGraph& graph) {
  const std::size_t count = graph.vertices.size();
  std::vector<std::size_t> last(count);
  for (std::size_t v = 0; v < count; ++v) {
    last[v] = v;
    for (const VertexId input : graph.vertices[v].inputs) last[input.index] = v;
  }
  for (const VertexId output : graph.outputs) last[output.index] = count - 1;
  std::vector<double> freed(count, 0);  // behind each vertex
  Tightest tightest;
  double kept = 0;
  for (std::size_t v = 0; v < count; ++v) {
    if (!is_input(graph.vertices[v])) {
      const double bytes = bytes_of(graph.vertices[v]);
      kept += bytes;
      freed[last[v]] += bytes;
    }
    if (kept > tightest.bytes) tightest = {v, kept};
    kept -= freed[v];
  }
  return tightest;
}

Recomputed as_it_is(const EinGraph& graph) {
  Recomputed same{graph, std::vector<std::size_t>(graph.vertices.size())};
  std::iota(same.origin.begin(), same.origin.end(), std::size_t{0});
  return same;
}

/// Takes vertices that can be computed, one after the other.
class LeanOrder {
 public:
  explicit LeanOrder(const EinGraph& graph)
      : graph_(graph), readers_(graph.vertices.size()), waits_for_(graph.vertices.size(), 0) {
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      for (const std::size_t input : inputs_of(v)) {
        readers_[input].push_back(v);
        ++waits_for_[v];
      }
      if (waits_for_[v] == 0) ready_.insert(v);
    }
    for (const std::vector<std::size_t>& readers : readers_) left_.push_back(readers.size());
    for (const VertexId output : graph.outputs) ++left_[output.index];  // never freed
  }

  std::vector<std::size_t> run() {
    std::vector<std::size_t> order;
    while (!ready_.empty()) {
      const std::size_t next = leanest();
      ready_.erase(next);
      order.push_back(next);
      for (const std::size_t input : inputs_of(next)) --left_[input];
      for (const std::size_t reader : readers_[next]) {
        if (--waits_for_[reader] == 0) ready_.insert(reader);
      }
    }
    return order;
  }

 private:
  std::set<std::size_t> inputs_of(std::size_t v) const {
    std::set<std::size_t> inputs;
    for (const VertexId input : graph_.vertices[v].inputs) inputs.insert(input.index);
    return inputs;
  }

  /// Of those that add as little, the first.
  std::size_t leanest() const {
    std::size_t best = *ready_.begin();
    double least = std::numeric_limits<double>::infinity();
    for (const std::size_t v : ready_) {
      if (is_input(graph_.vertices[v])) return v;
      double more = left_[v] == 0 ? 0 : bytes_of(graph_.vertices[v]);
      for (const std::size_t input : inputs_of(v)) {
        if (left_[input] == 1 && !is_input(graph_.vertices[input])) more -= bytes_of(graph_.vertices[input]);
      }
      if (more >= least) continue;
      least = more;
      best = v;
    }
    return best;
  }

  const EinGraph& graph_;
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<std::size_t> waits_for_;  // per vertex, inputs that are still to be computed
  std::vector<std::size_t> left_;       // per vertex, readers that are
  std::set<std::size_t> ready_;
};

class Recomputation {
 public:
  explicit Recomputation(Recomputed start) : now_(std::move(start)) {
    for (const Vertex& vertex : now_.graph.vertices) names_.insert(vertex.name);
    for (const ScalarDeclaration& scalar : now_.graph.scalars) names_.insert(scalar.name);
  }

  const Recomputed& now() const { return now_; }
  Recomputed take() { return std::move(now_); }

  /// Drops something that is held while a vertex is computed; the operations that it costs. Nothing where there is
  /// nothing to drop.
  std::optional<double> drop_at(const Tightest& tightest) {
    constexpr double worthwhile = 1e-4;  // of all that is kept there
    const std::size_t vertex = tightest.vertex;
    find_readers();
    Drop best;
    for (std::size_t v = 0; v < vertex; ++v) {
      if (!is_droppable(v, vertex, worthwhile * tightest.bytes)) continue;
      Drop drop = drop_of(v, vertex);
      if (drop.per_byte < best.per_byte) best = std::move(drop);
    }
    if (best.computed.empty()) return std::nullopt;
    apply(best);
    return best.flops;
  }

 private:
  const std::vector<Vertex>& vertices() const { return now_.graph.vertices; }

  void find_readers() {
    readers_.assign(vertices().size(), {});
    for (std::size_t v = 0; v < vertices().size(); ++v) {
      for (const VertexId input : vertices()[v].inputs) {
        std::vector<std::size_t>& readers = readers_[input.index];
        if (readers.empty() || readers.back() != v) readers.push_back(v);
      }
    }
    is_output_.assign(vertices().size(), false);
    for (const VertexId output : now_.graph.outputs) is_output_[output.index] = true;
  }

  bool is_droppable(std::size_t v, std::size_t at, double least_bytes) const {
    const std::vector<std::size_t>& readers = readers_[v];
    const bool is_held = !readers.empty() && readers.back() > at;
    const bool is_read = std::binary_search(readers.begin(), readers.end(), at);
    return is_held && !is_read && !is_output_[v] && einsum_of(vertices()[v]) != nullptr &&
           bytes_of(vertices()[v]) > least_bytes;
  }

  bool stays_until(std::size_t v, std::size_t reader) const {
    if (is_input(vertices()[v]) || is_output_[v]) return true;
    return !readers_[v].empty() && readers_[v].back() >= reader;
  }

  Drop drop_of(std::size_t v, std::size_t at) const {
    const std::vector<std::size_t>& readers = readers_[v];
    Drop drop{v, *std::upper_bound(readers.begin(), readers.end(), at), {}, 0};
    std::set<std::size_t> known{v};
    std::vector<std::size_t> open{v};
    constexpr std::size_t most = 32;  // of a segment
    while (!open.empty()) {
      const std::size_t next = open.back();
      open.pop_back();
      drop.flops += flops(vertices()[next]);
      for (const VertexId input : vertices()[next].inputs) {
        if (!stays_until(input.index, drop.reader) && known.insert(input.index).second) open.push_back(input.index);
      }
      if (known.size() > most) return {};
    }
    drop.computed.assign(known.begin(), known.end());
    drop.per_byte = drop.flops / bytes_of(vertices()[v]);
    return drop;
  }

  /// Moves all vertices to a new graph: formulas are copied of what is computed again alone.
  void apply(const Drop& drop) {
    EinGraph before = std::move(now_.graph);
    const std::vector<std::size_t> origin = std::move(now_.origin);
    now_ = {};
    std::vector<VertexId> moved;
    std::map<VertexId, VertexId> again;  // by what it is again
    const auto add = [&](Vertex vertex, std::size_t v) {
      now_.graph.vertices.push_back(std::move(vertex));
      now_.origin.push_back(origin[v]);
      return VertexId{now_.graph.vertices.size() - 1};
    };
    const auto read_again = [&](Vertex& vertex) {
      for (VertexId& input : vertex.inputs) {
        const auto known = again.find(input);
        if (known != again.end()) input = known->second;
      }
    };
    for (std::size_t v = 0; v < before.vertices.size(); ++v) {
      if (v == drop.reader) {
        for (const std::size_t each : drop.computed) {
          Vertex copy = now_.graph[moved[each]];
          copy.name = unused_name(copy.name);
          read_again(copy);
          again[moved[each]] = add(std::move(copy), each);
        }
      }
      Vertex vertex = std::move(before.vertices[v]);
      for (VertexId& input : vertex.inputs) input = moved[input.index];
      if (v >= drop.reader) read_again(vertex);
      moved.push_back(add(std::move(vertex), v));
    }
    copy_interface(before, moved, now_.graph);
  }

  std::string unused_name(const std::string& name) {
    return build::fresh_name(name + "_again", [&](const std::string& free) { return names_.insert(free).second; });
  }

  Recomputed now_;
  std::set<std::string> names_;
  std::vector<std::vector<std::size_t>> readers_;  // per vertex, ascending
  std::vector<bool> is_output_;
};

}  // namespace

std::int64_t most_kept_bytes(const EinGraph& graph) { return static_cast<std::int64_t>(tightest_of(graph).bytes); }

Recomputed in_lean_order(const EinGraph& graph) {
  Recomputed ordered{{}, LeanOrder(graph).run()};
  std::vector<VertexId> moved(graph.vertices.size());
  for (const std::size_t v : ordered.origin) {
    moved[v] = VertexId{ordered.graph.vertices.size()};
    Vertex vertex = graph.vertices[v];
    for (VertexId& input : vertex.inputs) input = moved[input.index];
    ordered.graph.vertices.push_back(std::move(vertex));
  }
  copy_interface(graph, moved, ordered.graph);
  return most_kept_bytes(ordered.graph) < most_kept_bytes(graph) ? ordered : as_it_is(graph);
}

std::optional<Recomputed> recompute_within(Recomputed start, std::int64_t most_bytes, double most_flops) {
  constexpr double most_work = 1e6;  // vertices looked at: a second
  Recomputation recomputation(std::move(start));
  double more = 0;
  double work = 0;
  for (;;) {
    const Tightest tightest = tightest_of(recomputation.now().graph);
    if (tightest.bytes <= static_cast<double>(most_bytes)) return recomputation.take();
    const std::optional<double> flops = recomputation.drop_at(tightest);
    if (!flops) return std::nullopt;
    more += *flops;
    work += static_cast<double>(recomputation.now().graph.vertices.size());
    if (more > most_flops || work > most_work) return std::nullopt;
  }
}

}  // namespace einrel
