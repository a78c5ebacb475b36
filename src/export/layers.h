#pragma once

#include <cstddef>
#include <set>
#include <variant>
#include <vector>

#include "einsum/graph/vertex_parameters.h"
#include "export/device_steps.h"
#include "report/fold.h"

namespace einrel {

/// Steps that come several times one after the other, the same but for the tensors: a function, and its calls. Its
/// values are its arguments, and then what its steps give.
struct Layer {
  std::vector<DeviceStep> steps;  ///< vertices are those of the first time
  std::size_t arguments = 0;
  std::vector<std::size_t> results;                      ///< what is read outside
  std::vector<std::vector<std::size_t>> values;          ///< per time and value of the layer: that of DeviceSteps
  std::vector<std::vector<VertexParameter>> parameters;  ///< each as it is in each time
  std::vector<std::vector<std::size_t>>
      takes;  ///< per step: of each place of its formula (parameters_of) the parameter
};

/// What is folded (report/fold.h) as layers, as far as layouts and moves are the same, too: the steps of a device in
/// order. What several times need moved alike is moved before the first of them. `kept` are values that are read at
/// last.
std::vector<std::variant<DeviceStep, Layer>> with_layers(const EinGraph& graph, const Plan& plan,
                                                         const DeviceSteps& program, const Folding& folding,
                                                         const std::set<std::size_t>& kept);

}  // namespace einrel
