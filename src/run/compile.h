#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"
#include "einsum/check/check.h"
#include "einsum/graph/ein_graph.h"
#include "einsum/passes/contraction_order.h"
#include "run/passes.h"

namespace einrel {

/// A tensor that is computed again instead of being kept, and what that takes.
struct RecomputedTensor {
  std::string tensor;
  double flops = 0;  ///< scalar operations
};

/// A program ready to run or to be explained.
struct Compiled {
  std::string name;
  EinGraph graph;                        ///< only what the outputs need, products ordered
  std::vector<std::string> unread = {};  ///< inputs that the outputs do not need
  std::vector<OrderedContraction> contractions;
  std::vector<RecomputedTensor> recomputed;  ///< see recompute.h
  std::shared_ptr<const Compiled> initial;   ///< of a program with state: what gives it its first values
  PassOptions pass_options;
  std::vector<PassRecord> passes;  ///< that ran on the graph, in order; fusion is of tasks
  double seconds = 0;              ///< that compiling took
};

/// Throws UserError when one of the tensors that are wanted as outputs is none of `tensors`.
void check_output_names(const std::vector<std::string>& outputs, const std::vector<std::string>& tensors);

/// Adds tensors that are wanted as outputs, by name. Throws UserError when there is none of a name.
EinGraph with_outputs(EinGraph graph, const std::vector<std::string>& names);

/// Brings a checked graph into the form that runs: the list of passes (passes.h), each timed, and verified after it.
/// `outputs` are tensors wanted besides the program's own outputs; `initial` as of CheckedProgram. Throws UserError
/// when one is unknown.
Compiled compile(std::string name, EinGraph graph, const std::vector<std::string>& outputs = {},
                 const std::optional<EinGraph>& initial = std::nullopt, const PassOptions& options = {});

/// Whether a program does without a pass.
bool skips(const Compiled& compiled, std::string_view pass);

}  // namespace einrel
