#include "plan/cost/modelled.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "einsum/expr/functions.h"
#include "einsum/graph/vertex_facts.h"
#include "machine/seconds.h"
#include "plan/cost/cost.h"

namespace einrel {

double elements_in(const Shape& bound) { return static_cast<double>(element_count(bound)); }

double copies_in(const Layout& layout) {
  return std::transform_reduce(layout.copies.begin(), layout.copies.end(), 1.0, std::multiplies<>(),
                               [](const SiteCopies& copies) { return static_cast<double>(copies.count); });
}

double sites_in(const Layout& layout) {
  double sites = copies_in(layout);
  for (const LayoutAxis& axis : layout.axes) sites *= static_cast<double>(axis.grid);
  return sites;
}

bool is_argument(const Vertex& vertex) {
  const EinSum* const einsum = einsum_of(vertex);
  return einsum != nullptr && finds_position(einsum->reducer);
}

/// Bytes of each result that go back to those who have a part of it.
std::int64_t bytes_back(const Vertex& vertex) {
  return is_argument(vertex) ? static_cast<std::int64_t>(size_of(std::get<EinSum>(vertex.op).body.type())) : 0;
}

namespace {
/// How often partial results travel.
double partial_passes(const Vertex& vertex) { return is_argument(vertex) ? 3 : 1; }
}  // namespace

double reduced_floats(const Vertex& vertex, const VertexPlan& plan) {
  const auto sites = static_cast<double>(partial_sites(vertex, plan));
  const double passes = partial_passes(vertex) + (plan.all_reduced ? 1 : 0);
  return sites == 1 ? 0 : sites * passes * elements_in(vertex.bound);
}

namespace {
/// Bytes that the owners of results receive.
double gathered_bytes(const Vertex& vertex, const VertexPlan& plan) {
  const auto each = static_cast<double>(partial_bytes(vertex));
  return static_cast<double>(partial_sites(vertex, plan) - 1) * elements_in(vertex.bound) * each;
}
}  // namespace

double reduced_bytes(const Vertex& vertex, const VertexPlan& plan) {
  return (plan.all_reduced ? 2 : 1) * gathered_bytes(vertex, plan);
}

namespace {
/// What a vertex multiplies and adds: f64 where anything is, narrow numbers where it reads nothing else, as units for
/// products of these do; else what it computes in.
DType computed_on(const EinGraph& graph, const Vertex& vertex) {
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr) return vertex.dtype;
  DType found = einsum->body.type();
  bool is_narrow_alone = true;
  for (const std::size_t operand : operands_read(vertex)) {
    const DType read = graph[vertex.inputs[operand]].dtype;
    if (read == DType::f64) return read;
    if (!is_narrow(read)) is_narrow_alone = false;
    if (is_narrow_alone && found != DType::f64) found = read;
  }
  return is_narrow_alone ? found : einsum->body.type();
}
}  // namespace

/// Work and memory traffic of the site that has most of them, and the start of its kernel calls.
double vertex_seconds(const EinGraph& graph, const Vertex& vertex, const VertexPlan& plan, const Machine& machine) {
  if (is_input(vertex)) return 0;
  const Shape extents = label_extents(vertex);
  double share = 1;
  double calls = 1;
  for (std::size_t l = 0; l < extents.size(); ++l) {
    if (extents[l] == Extent(0)) return 0;
    const std::int64_t parts_here = (plan.parts[l] + plan.grid[l] - 1) / plan.grid[l];
    const std::int64_t largest = (extents[l].value() + plan.parts[l] - 1) / plan.parts[l];
    share *= static_cast<double>(std::min(parts_here * largest, extents[l].value())) /
             static_cast<double>(extents[l].value());
    calls *= static_cast<double>(parts_here);
  }
  const std::int64_t results = sites_used(plan) / partial_sites(vertex, plan);  // that differ in more than their part
  double touched = bytes_of(vertex) / static_cast<double>(results);
  for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
    const Vertex& operand = graph[vertex.inputs[o]];
    double grid = 1;
    for (const std::optional<std::size_t> label : operand_labels(vertex, o)) {
      if (label) grid *= static_cast<double>(plan.grid[*label]);
    }
    touched += bytes_of(operand) / grid;
  }
  if (const std::int64_t each = bytes_between(vertex, plan); each > 0) {
    constexpr double passes = 3;  // written, read, and read again
    double bindings = share;
    for (const Extent extent : extents) bindings *= static_cast<double>(extent.value());
    touched += passes * static_cast<double>(each) * bindings;
  }
  return computing_seconds(
      {flops(vertex) * share, computed_on(graph, vertex), touched, calls, sites_used(plan) * copies_of(plan)}, machine);
}

/// Whether a site has several parts in one layout that are not made of whole parts of another: what lies in the other
/// has to be cut to lie like this. (When a result is shared out, its operands are cut finer than sites are.)
bool cuts_parts_of(const Layout& other, const Layout& layout) {
  bool cuts = false;
  for (std::size_t d = 0; d < layout.axes.size(); ++d) {
    const std::int64_t parts = layout.axes[d].cut.parts;
    cuts = cuts || (parts > layout.axes[d].grid && other.axes[d].cut.parts % parts != 0);
  }
  return cuts;
}

/// Copying, on each site, what it needs: where that cuts finer than it lies, or puts together what lies there in
/// several parts. Inputs with one reader lie as that wants them. What one site cuts out for another, and puts together
/// of what comes from several, is not counted: most of it is done while others compute.
double copying_seconds(const Vertex& tensor, const Layout& have, const Layout& need, const Machine& machine) {
  if (!cuts_parts_of(have, need) && !cuts_parts_of(need, have) && !has_windows(need)) return 0;
  const double sites = sites_in(need);
  const double needed = bytes_of(tensor) * copies_in(need) / sites;
  return memory_seconds(2 * needed, static_cast<std::int64_t>(sites), machine);
}

/// What many sites need goes from one to two others, from these to the next ones, and so on (ia/traffic, deliveries).
double tree_depth(double copies) { return std::max(1.0, std::floor(std::log2(copies))); }

/// Sites that own results of which others have parts.
std::int64_t owners_of(const Vertex& vertex, const VertexPlan& plan) {
  return plan.scatter ? sites_used(plan) : sites_used(plan) / partial_sites(vertex, plan);
}

namespace {
/// Bytes read and written once all parts of a result are together: a mean is divided, a narrow result rounded.
double finishing_bytes(const Vertex& vertex) {
  const auto& einsum = std::get<EinSum>(vertex.op);
  const bool is_rounded = reduced_type(*einsum.reducer, einsum.body.type()) != vertex.dtype;
  if (einsum.reducer != Reducer::mean && !is_rounded) return 0;
  return elements_in(vertex.bound) * static_cast<double>(partial_bytes(vertex)) + bytes_of(vertex);
}
}  // namespace

/// An owner of results adds the others' parts of these to its own, one after the other, and finishes them. A small sum
/// stays in a cache meanwhile.
double adding_seconds(const Vertex& vertex, const VertexPlan& plan, const Machine& machine) {
  if (partial_sites(vertex, plan) == 1) return 0;
  const std::int64_t owners = owners_of(vertex, plan);
  const auto each = static_cast<double>(partial_bytes(vertex));
  const double sum = elements_in(vertex.bound) * each / static_cast<double>(owners);
  const bool stays = sum < static_cast<double>(machine.processor.second_cache);
  const double passes = stays ? 1 : 3;  // a large sum is read and written again
  const double touched = passes * gathered_bytes(vertex, plan) + finishing_bytes(vertex);
  return memory_seconds(touched / static_cast<double>(owners), owners, machine);
}

/// An owner of results receives the others' parts of these.
double receiving_parts_seconds(const Vertex& vertex, const VertexPlan& plan, const Machine& machine) {
  const std::int64_t sites = partial_sites(vertex, plan);
  double messages = static_cast<double>(sites - 1);
  if (is_argument(vertex)) messages += messages + tree_depth(static_cast<double>(sites));  // back from the owners
  const auto receivers = static_cast<double>(owners_of(vertex, plan));
  const double parts = gathered_bytes(vertex, plan);
  const double gathering = receiving_seconds(parts / receivers, messages, receivers, machine);
  if (!plan.all_reduced) return gathering;
  const double others = receivers * static_cast<double>(sites - 1);  // which get it back
  return gathering + receiving_seconds(parts / others, tree_depth(static_cast<double>(sites)), others, machine);
}

namespace {
/// Into how many pieces that lie in one chunk each falls what a site needs.
double pieces_needed(const Layout& have, const Layout& need) {
  double pieces = 1;
  for (std::size_t d = 0; d < need.axes.size(); ++d) {
    const std::int64_t had = have.axes[d].cut.parts;
    const std::int64_t needed = need.axes[d].cut.parts;
    if (had == 1 && needed == 1) continue;
    const std::int64_t all = had + needed - std::gcd(had, needed);  // both cut evenly
    const std::int64_t grid = need.axes[d].grid;
    const std::int64_t each = (all + grid - 1) / grid;
    pieces *= static_cast<double>(each);
  }
  return pieces;
}
}  // namespace

/// How many messages a site waits for that receives this part of what it needs: a piece each, and no fewer than copies
/// take to come to it (tree_depth).
double messages_to(const Layout& have, const Layout& need, double part, double fewest) {
  return std::max(fewest, std::round(pieces_needed(have, need) * part));
}

}  // namespace einrel
