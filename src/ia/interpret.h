#pragma once

#include <map>
#include <string>

#include "ia/ia_program.h"

namespace einrel {

/// What a run on kept-apart sites did.
struct IaRun {
  std::map<std::string, Relation> outputs;  ///< without sites
  double moved = 0;                         ///< floats delivered, counted one tuple at a time
  /// Bytes that each site got from other sites and gave to them, counted one tuple (of Repart: one piece) at a time:
  /// what a site has already does not come again, and of several sites that have a tuple the first one gives it.
  std::vector<std::int64_t> received;
  std::vector<std::int64_t> sent;
  /// Per node of nodes_of(plan): which tuples lay where, as (key, site), ascending.
  std::vector<std::vector<std::pair<Key, Site>>> tuples;
};

/// Runs a plan with a separate store of tuples per site: a local operation sees only the tuples of its site. Slow and
/// obvious; the oracle of the rules and of execution. Throws UserError for inputs that are not bound or do not fit, Bug
/// when the plan is faulty or copies of a tuple differ.
IaRun interpret(const IaStore& store, const IaPlan& plan, const TensorBindings& inputs, const ScalarBindings& scalars);

}  // namespace einrel
