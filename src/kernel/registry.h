#pragma once

#include <string>
#include <variant>
#include <vector>

#include "kernel/kernel.h"

namespace einrel {

/// Every kernel there is. To add one: write its row, name it in registry.cpp.
const std::vector<KernelInfo>& all_kernels();

/// What became of one kernel when a spec was offered to all of them.
struct Considered {
  std::string_view kernel;
  std::variant<double, std::string> outcome;  ///< modelled seconds, or why it does not compute the spec
};

/// The kernel of the lowest modelled seconds, and why.
struct Choice {
  std::string_view kernel;
  Offer offer;
  std::vector<Considered> considered;  ///< in the order of all_kernels()
};

/// No label of the spec has extent 0 (evaluate.h). O(kernels), microseconds. Throws UserError when an index or the
/// number of label bindings leaves 63 bits.
Choice choose_kernel(const KernelSpec& spec);

}  // namespace einrel
