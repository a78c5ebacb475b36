#pragma once

#include "plan/planners/schemes.h"

namespace einrel {

// How people cut transformers by hand, for comparison (EinDecomp, section 9.2, experiment 3), where attention.h finds
// attention. A label means the same in all vertices that it reaches through dimensions of tensors (of a View's group:
// the first), but positions of queries and of keys are two things, also where both come from one tensor. A label is cut
// over as many sites as it is long where there are more. The last two are refused where the graph has no attention, or
// none of the labels that are to be cut, or they are 1 long. O(operands of all vertices), besides what find_attention
// takes.

/// Tensor parallelism (Shoeybi et al. 2019, section 3): heads are cut wherever a vertex has them, and so are the hidden
/// units between two products with weights, so that each block is a product cut by its columns, then one cut by its
/// rows, whose partial results are added up; logits are cut by the vocabulary. A product with weights that has no
/// partner is cut by its columns, too, and gathered. What is between, residual sums and norms, is computed alike by
/// every site. Without attention, data is what has the batch (batch_label), and everything else is weights. Refused
/// where there is nothing to cut.
SchemeGrids tensor_grids(const EinGraph& graph, const PlanRequest& request);

/// EinDecomp's "sequence": positions, in every vertex that has some; of scores those of the queries, so that keys and
/// values, computed in parts, go to all sites. Vertices without positions are computed by every site.
SchemeGrids sequence_grids(const EinGraph& graph, const PlanRequest& request);

/// EinDecomp's "attention": heads, in every vertex that has some, the product that reduces them included. The paper
/// does not say what becomes of the others: here they are cut along positions, else along a batch.
SchemeGrids heads_grids(const EinGraph& graph, const PlanRequest& request);

}  // namespace einrel
