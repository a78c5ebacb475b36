#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "einsum/front/build/formula.h"
#include "tensor/dtype.h"

namespace einrel {

/// A number that an optimiser takes: `eta` of sgd(eta).
struct OptimiserParameter {
  std::string name;
  std::optional<double> value;  ///< without, it has to be given
};

/// Of what an optimiser makes a tensor W of weights and its moments anew, element by element.
struct UpdateParts {
  build::Formula weight;
  build::Formula gradient;
  std::map<std::string, build::Formula> moments;
  std::map<std::string, build::Formula> parameters;  ///< by name
  std::map<std::string, build::Formula> numbers;     ///< those of Optimiser::numbers
};

/// A way to minimise: `minimize loss over W by NAME(...)`. Formulas and defaults are PyTorch's (torch.optim), whose
/// `lr` is eta here.
struct Optimiser {
  std::string name;
  std::vector<OptimiserParameter> parameters;  ///< in order
  std::vector<std::string> moments;            ///< tensors like W that go on from step to step; 0 at first
  /// Numbers that are the same for all tensors, in f64: of the parameters, and of how many steps this one ends.
  std::map<std::string, build::Formula> (*numbers)(const std::map<std::string, build::Formula>& parameters,
                                                   const build::Formula& steps);
  /// What becomes of moments, of those before the step.
  std::map<std::string, build::Formula> (*new_moments)(const UpdateParts& before);
  /// What becomes of W; `parts` has the new moments.
  build::Formula (*new_weight)(const UpdateParts& parts);
};

/// To add one: a row.
const std::vector<Optimiser>& optimisers();

/// "adam(eta, b1 = 0.9, b2 = 0.999, eps = 1e-08)".
std::string usage_of(const Optimiser& optimiser);

}  // namespace einrel
