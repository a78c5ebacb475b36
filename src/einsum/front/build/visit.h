#pragma once

#include <cstddef>
#include <vector>

#include "einsum/front/build/formula.h"

namespace einrel::build {

/// Calls `visit` with each part of a formula that `known` does not have, after those that it takes: once, if `visit`
/// makes it known.
template <class Known, class Visit>
void visit_after_arguments(const Formula& root, const Known& known, Visit visit) {
  struct Step {
    const Formula* formula;
    std::size_t next = 0;  // of its arguments
  };
  std::vector<Step> path;
  if (!known(root)) path.push_back({&root});
  while (!path.empty()) {
    Step& step = path.back();
    if (step.next == step.formula->arguments().size()) {
      visit(*step.formula);
      path.pop_back();
      continue;
    }
    const Formula& argument = step.formula->arguments()[step.next++];
    if (!known(argument)) path.push_back({&argument});
  }
}

}  // namespace einrel::build
