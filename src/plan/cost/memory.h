#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace einrel {

/// Why a site holds bytes of a tensor.
enum class HeldAs : std::uint8_t {
  stored,   ///< its share of an input or of a result
  copy,     ///< what it has received for a vertex, in chunks as that vertex needs them
  partial,  ///< partial results: its own and those that it receives to add them up
  between,  ///< what lies between the joins of a vertex (bytes_between)
};

/// "stored", "copy", "partial", "between".
std::string_view name_of(HeldAs as);

/// One tensor on one site.
struct HeldTensor {
  std::size_t vertex = 0;
  HeldAs as = HeldAs::stored;
  std::int64_t bytes = 0;
  bool operator==(const HeldTensor&) const = default;
};

/// The same while vertices `from` to `to` are computed, both included.
struct HeldForSome {
  HeldTensor tensor;
  std::size_t from = 0;
  std::size_t to = 0;
};

/// The most that a site holds at any time.
struct SitePeak {
  std::int64_t bytes = 0;
  std::size_t site = 0;             ///< the first of those that hold so much
  std::size_t vertex = 0;           ///< while it is computed, the first
  std::vector<HeldTensor> tensors;  ///< that make it up, largest first
  /// The most that any site holds while each vertex is computed, also where that is on another site or less.
  std::vector<std::int64_t> by_vertex;
  std::vector<std::int64_t> by_site;  ///< the most that each site holds while any vertex is computed
  /// All that `site` ever holds, in the order in which it comes; nothing of a forecast from tasks.
  std::vector<HeldForSome> held = {};
};

/// The peak of a plan, vertices computed one after the other, each on all of its sites at once. A site holds
/// - inputs and results that are still to be read, and outputs, as they lie; an input from the start;
/// - while a vertex is computed, and until the last that needs them likewise: the chunks of operands that it does not
///   have in that cut;
/// - of inputs that stay where they are brought (staying_inputs.h): these chunks, all the time, and the inputs;
/// - while a vertex is computed: its result and, where what it reduces is spread, a partial result, at the owners of
///   the result those of all others of their group besides, of what they own; a partial result for each of its parts
///   where they are not reduced one onto the other.
/// - while a vertex is computed in several joins: bytes_between for its share of the iteration space, the most that
///   their results may be.
/// Searches reckon with it, which have no tasks: what these cut out and put together on the way comes on top. Memory of
/// kernels and of the runtime is not counted. O(vertices * sites); each layout is looked at once.
/// Throws UserError when a sum needs more than 63 bits.
SitePeak peak_of(const EinGraph& graph, const Plan& plan);

/// The least that site 0 holds while a vertex is computed so, whatever the rest of the plan.
std::int64_t least_memory_of(const EinGraph& graph, const Vertex& vertex, const VertexPlan& plan);

}  // namespace einrel
