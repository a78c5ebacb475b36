#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/planners/parameter_server.h"
#include "plan/planners/runner_up.h"
#include "plan/search/tilings.h"
#include "report/fold.h"
#include "report/program_facts.h"

namespace einrel {

/// A label and the sites along it.
struct LabelSites {
  std::string label;
  std::int64_t sites = 1;
  std::optional<std::int64_t> parts;  ///< where there are not as many as sites that have one
  bool operator==(const LabelSites&) const = default;
};

/// How a vertex is cut.
struct CutFacts {
  std::vector<LabelSites> labels;     ///< those that are cut
  std::optional<LabelSites> scatter;  ///< along which sites share the result out that have partial ones
  bool all_reduced = false;           ///< each of the sites that have partial results gets the sum
  std::int64_t copies = 1;            ///< sites that compute the same
};
CutFacts cut_of(const Vertex& vertex, const VertexPlan& plan);

/// How a vertex is cut among the groups of sites behind a link, inside each group of the link before.
struct LinkCut {
  std::string link;
  std::vector<LabelSites> labels;  ///< those that are cut there, and into how many
  std::int64_t copies = 1;         ///< groups that compute the same
  bool operator==(const LinkCut&) const = default;
};
/// Of the links, the outermost first, at which anything is cut or computed alike. Where a label is cut by a link and
/// inside a group into numbers that do not divide each other (6 sites behind links of 4), numbers are rounded up.
std::vector<LinkCut> link_cuts(const Vertex& vertex, const VertexPlan& plan, const PlanRequest& request);

/// A dimension of an operand that is not read just at a label's own positions, where the label is cut.
struct WindowFacts {
  std::size_t operand = 0;
  std::size_t dimension = 0;
  std::string label;
  bool is_spread = false;  ///< over several sites
  Window window;
};
std::vector<WindowFacts> windows_of(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan);

/// What a part of a label needs of an operand beyond what lies beside its own positions.
struct Halo {
  std::string label;
  std::size_t before = 0;  ///< elements along the dimension
  std::size_t behind = 0;
};

/// What moves for one operand.
struct OperandMove {
  std::string tensor;
  std::vector<Halo> halos;  ///< of windows that overlap, one after the other, on several sites
  std::int64_t copies = 1;  ///< sites that each element goes to; where it is one, the tensor is cut anew
  std::int64_t bytes = 0;
};

/// What moves for a vertex.
struct MoveFacts {
  std::vector<OperandMove> operands;  ///< those that move
  std::vector<std::string> reduced;   ///< labels over which partial results are added up
  std::int64_t reduced_bytes = 0;
};
MoveFacts moves_of(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan, const VertexCost& cost);

/// The second best way to plan a vertex, and where it loses.
struct RunnerUpFacts {
  CutFacts cut;
  double more = 0;  ///< that the whole plan would cost, of which `more_there` for one cause
  double more_there = 0;
  bool costs_the_same = false;
  std::optional<std::string> moving;  ///< the tensor that would cost more to bring to the vertex `to`; else computing
  std::optional<std::string> to;
};
/// The best other ways to plan one of several vertices that are alike.
struct OtherCutFacts {
  std::vector<std::size_t> vertices;
  std::vector<RunnerUpFacts> best;  ///< of the first of them, the cheapest first
};
/// How each vertex could be planned otherwise, see runner_up.h.
struct OtherPlans {
  std::vector<OtherCutFacts> cuts;
  std::vector<std::optional<RunnerUpFacts>> runners_up;  ///< per vertex
};
/// At most so many ways for each vertex.
OtherPlans other_plans(const EinGraph& graph, const PlanReport& report, const PlanRequest& request, std::size_t most);

/// A label that no plan cuts, or dimension of an input, and why.
struct WholeLabel {
  std::string label;
  std::string reason;
};
std::vector<WholeLabel> whole_labels(const EinGraph& graph, std::size_t vertex);

/// Who sends how many bytes to whom.
struct SentFacts {
  std::int64_t group = 1;                        ///< so many neighbouring sites are told of together
  std::vector<std::vector<std::int64_t>> bytes;  ///< [from][to], by group
};
/// Nothing of a plan for one site, or of more chunks than EXPLAIN makes tasks of. Of many sites, those behind a link of
/// the machine are told of together.
std::optional<SentFacts> sent_facts(const EinGraph& graph, const Plan& plan, const Machine& machine);

/// Per vertex that is shown, what it costs with all that it stands for: as it does alone, but for bytes and seconds.
std::vector<VertexCost> costs_together(const PlanReport& report, const Folding& folding);

/// How planner kcut came to its plan, in SoyBean's terms.
struct TilingFacts {
  std::vector<std::string> tensors;  ///< per vertex, how its result lies: "R.C.r"
  std::optional<ParameterServer> server;
  std::optional<std::int64_t> groups;  ///< of the hybrid that exchanges least with a server
};
/// Of a plan by kcut; nothing of others.
std::optional<TilingFacts> tiling_facts(const EinGraph& graph, const Plan& plan, const PlanRequest& request);

/// What most bytes move for, by what costs_together says: "X for H_1", "partial results of Z".
std::vector<Amount> most_moved(const EinGraph& graph, const Folding& folding, const std::vector<VertexCost>& together);

/// The fewest and the most sites that compute a vertex which reads something.
struct SitesComputing {
  std::int64_t fewest = 1;
  std::int64_t most = 1;
};
SitesComputing sites_computing(const EinGraph& graph, const Plan& plan);
/// "4", or "1 to 4".
std::string sites_computing_text(const EinGraph& graph, const Plan& plan);

/// "proven: no plan that best looks at takes less", or how much less one may take; "" where nothing is known.
std::string proof_text(const PlanReport& report);

}  // namespace einrel
