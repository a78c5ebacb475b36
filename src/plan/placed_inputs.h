#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "plan/plan.h"

namespace einrel {

/// Where an input lies: sites along labels by which it is read, along dimensions ("0"), or of copies ("copies"). They
/// are the digits of a site's number, the highest first: "b" 4, "f" 2 is part 3 of b and part 1 of f on site 7. Empty:
/// whole, on site 0. Sites whose numbers no digits give hold nothing.
using GivenPlacement = std::vector<std::pair<std::string, std::int64_t>>;
/// By the names of inputs.
using GivenPlacements = std::map<std::string, GivenPlacement>;

/// A program of which a plan for so many sites has to take these inputs from where they lie (Input::placement). Throws
/// UserError for a name that is none of an input, or is one of a state, whose place its step decides; for a label by
/// which nothing reads the input, or which stands for several of its dimensions; for more parts than positions; and for
/// more sites than there are.
EinGraph with_placed_inputs(EinGraph graph, const GivenPlacements& given, std::int64_t sites);

/// The plan of an input whose placement is given, one part for each site; nothing of other tensors.
std::optional<VertexPlan> given_plan(const Vertex& tensor);

/// Whether it is an input that a plan may lay out as it likes.
bool lies_freely(const Vertex& tensor);

/// How many sites, from 0, the given placements take: no plan for fewer has inputs lie so.
std::int64_t sites_of_placed_inputs(const EinGraph& graph);

/// Which input a plan lays out in another way than its placement says; "" where none is.
std::string placement_fault(const EinGraph& graph, const Plan& plan);

}  // namespace einrel
