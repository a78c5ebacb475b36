#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/fold.h"
#include "run/kernels.h"

namespace einrel {

/// "Q_1 x 32" where it stands for 32 vertices.
std::string folded_name(const EinGraph& graph, const Folding& folding, std::size_t vertex);

/// A name and a figure.
struct Amount {
  std::string name;
  double value = 0;
};
/// The three largest above 0, largest first.
std::vector<Amount> largest(std::vector<Amount> amounts);

/// The vertices that take most of `seconds`, equal ones together, in per cent of the whole.
std::vector<Amount> slowest(const EinGraph& graph, const Folding& folding, const std::vector<double>& seconds);

/// A program in figures.
struct ProgramFacts {
  std::size_t inputs = 0;
  std::size_t vertices = 0;  ///< that are computed
  double input_bytes = 0;
  std::vector<Amount> largest_inputs;  ///< bytes, equal ones together
  double flops = 0;
  double flops_as_written = 0;  ///< were products multiplied as they are written
};
ProgramFacts facts_of(const Compiled& compiled, const Folding& folding);

/// What a vertex that is shown takes with all that it stands for.
struct VertexTotals {
  double flops = 0;
  double bytes = 0;    ///< of its tensor
  double seconds = 0;  ///< of its kernels, on one thread
};
/// Per vertex that is shown; `calls` may be nothing.
std::vector<VertexTotals> totals_together(const EinGraph& graph, const std::vector<std::vector<KernelCall>>& calls,
                                          const Folding& folding);

/// What a kernel takes.
struct KernelSeconds {
  std::string name;
  double seconds = 0;
};
/// What would be taken without the chosen kernel.
std::optional<KernelSeconds> next_kernel(const KernelCall& chosen);

}  // namespace einrel
