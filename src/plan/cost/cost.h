#pragma once

#include <array>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "machine/machine.h"
#include "plan/layout.h"
#include "plan/plan.h"

namespace einrel {

class Transfers;

/// What a plan costs, by each of four models.
enum class CostKind : std::uint8_t {
  bound,    ///< floats moved in the worst case, see bound_cost.h (EinDecomp, section 7)
  floats,   ///< floats delivered, as the implementation algebra counts them (TRA paper, section 5.3)
  bytes,    ///< bytes received from other sites
  seconds,  ///< time, by a machine's profile
};
inline constexpr std::array all_cost_kinds{CostKind::bound, CostKind::floats, CostKind::bytes, CostKind::seconds};
std::string_view name_of(CostKind kind);

/// A cost that is a sum over vertices, of what each of them costs alone, and over their operands, of what it costs to
/// bring a tensor from where it lies to where it is needed. Searches use it before sites are numbered: it takes the
/// numbering that leaves most in place.
class CostModel {
 public:
  CostModel() = default;
  CostModel(const CostModel&) = delete;
  CostModel& operator=(const CostModel&) = delete;
  virtual ~CostModel() = default;

  /// Computing and reducing.
  virtual double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const = 0;
  /// A tensor that another vertex has computed, from each of these layouts to each of those: [have * needs + need].
  virtual std::vector<double> of_moves(const Vertex& tensor, const std::vector<Layout>& have,
                                       const std::vector<Layout>& need) const = 0;
  /// An input, which lies wherever that is best; hardly anything moves there for less.
  virtual double of_input(const Vertex& tensor, const Layout& need) const = 0;
  /// At most so much more than of_input is a move to this layout from among so many sites. About so much less than
  /// others is a move from it: searches take that for certain, too, and seldom lose anything by it.
  virtual double of_misplacing(const Vertex& /*tensor*/, const Layout& /*layout*/, std::int64_t /*sites*/) const {
    return std::numeric_limits<double>::infinity();
  }
  /// Whether a tensor that several vertices need in one layout is charged once.
  virtual bool sends_once() const { return true; }
};

/// Seconds in which one site computes a vertex, by the model `seconds`.
double one_site_seconds(const EinGraph& graph, std::size_t vertex, const Machine& machine);

std::unique_ptr<CostModel> cost_model(CostKind kind, const Machine& machine);

/// What one vertex costs in a plan.
struct VertexCost {
  double bound = 0;
  double floats = 0;
  std::vector<std::int64_t> operand_bytes;  ///< received for each operand; 0 where an earlier vertex needed it likewise
  std::int64_t reduced_bytes = 0;           ///< of partial results
  std::int64_t feedback_bytes = 0;          ///< of a state: received of its next value, so that that lies where it does
  std::int64_t once_bytes = 0;       ///< of all these, those of inputs that stay: only the first step receives them
  bool has_received_before = false;  ///< something that it has, or gets, from what an earlier vertex or operand needed
  double seconds = 0;                ///< of which `moving` are spent receiving
  double moving = 0;
  std::int64_t bytes() const;
};

/// What it costs to bring inputs that stay there (staying_inputs.h) to where they are used: in the first step.
struct OnceCosts {
  double floats = 0;
  std::int64_t bytes = 0;
  std::vector<std::int64_t> received;  ///< bytes, per site
  double seconds = 0;
  double moving_seconds = 0;  ///< of these, what sites spend receiving
};

/// What a plan costs, exactly: of the sites that it names. What is said of a step is said of the first; `once` is the
/// part of it that no later one has.
struct PlanCosts {
  double bound = 0;
  double floats = 0;
  std::int64_t bytes = 0;
  std::vector<std::int64_t> received;  ///< bytes, per site
  /// Per link of the machine, bytes that groups behind it receive from others, each element once in a group.
  std::vector<double> crossing;
  double seconds = 0;
  std::vector<VertexCost> vertices;
  OnceCosts once;
  std::int64_t steps = 1;  ///< that the plan is for
  /// Of a step, on average over all of them: what planners make least, since it is least where their sum is.
  double of(CostKind kind) const;
  std::int64_t bytes_of_later_steps() const { return bytes - once.bytes; }
  double seconds_of_later_steps() const { return seconds - once.seconds; }
  double moving_of_later_steps() const { return moving_seconds() - once.moving_seconds; }
  std::int64_t most_received_later() const;
  std::int64_t most_received() const;
  double moving_seconds() const;  ///< of all vertices
};

/// O(vertices * operands * sites). `bytes` are those of the plan's lowering (lower.h): a tensor that several vertices
/// need in one layout is sent once, from where most of it lies (routes.h), and a site receives nothing that it has.
PlanCosts costs_of(const EinGraph& graph, const Plan& plan, const Machine& machine);
/// The same, with what is known of transfers between so many sites.
PlanCosts costs_of(const EinGraph& graph, const Plan& plan, const Machine& machine, Transfers& transfers);

/// Bytes that a site may hold per binding of the labels while it computes its parts of a vertex; 0 where it reads and
/// reduces in one go. Where the labels of argmax are cut, values are compared with the extreme; of a vertex that reads
/// more than two tensors, values may lie in memory before they are reduced.
std::int64_t bytes_between(const Vertex& vertex, const VertexPlan& plan);

/// The type in which a vertex adds up partial results, and how often each of its result's elements travels: where the
/// labels of argmax are cut, the extreme travels before the position.
std::int64_t partial_bytes(const Vertex& vertex);

}  // namespace einrel
