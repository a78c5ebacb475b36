#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "machine/machine.h"
#include "plan/plan.h"
#include "plan/transfers.h"

namespace einrel {

/// Numbers the sites of every vertex, one after the other, so that as much as possible of what its operands' producers
/// have computed is where it is needed, and little of the rest crosses slow links; then lays out the inputs. On a
/// machine with links this is done without looking at them, too, and the faster one is taken. Parts, grids and the
/// number of copies stay as they are; what an Input's plan says is replaced, of one whose placement is given by that.
void number_sites(const EinGraph& graph, Plan& plan, const Machine& machine = {});
/// The same, with what is known of transfers between so many sites.
void number_sites(const EinGraph& graph, Plan& plan, Transfers& transfers);

/// Lays out every input as one of its consumers needs it, each element once, so that the others receive least; or as
/// its placement says, if that is given. An input in whose place a program leaves a result, as a training step leaves
/// new weights (an output, computed from it element by element), lies on all sites on which that is kept. A state lies
/// where steps move least, its next value counted.
void lay_out_inputs(const EinGraph& graph, Plan& plan);

/// Per input, what takes its place in the next step: of a state its next value; of another input, in a program that is
/// a step of a loop outside of it, the output that is computed from it element by element, if any.
std::vector<std::optional<std::size_t>> next_of_inputs(const EinGraph& graph);

/// Ways to lay out an input of this bound that its readers need so, among which lay_out_inputs chooses; of equals the
/// first. `kept`: how what takes its place lies.
std::vector<VertexPlan> input_plans(const Shape& bound, const std::set<Layout>& needs,
                                    const std::optional<Layout>& kept, bool is_state);

}  // namespace einrel
