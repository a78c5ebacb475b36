#include "engine/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "einsum/print.h"
#include "engine/kernels.h"
#include "engine/memory.h"

namespace einrel {
namespace {

double tensor_bytes(const Vertex& vertex) {
  return static_cast<double>(element_count(vertex.bound)) * static_cast<double>(size_of(vertex.dtype));
}

std::string label_list(const std::vector<Label>& labels, const std::vector<std::size_t>& positions) {
  std::vector<std::string> texts;
  for (const std::size_t p : positions) texts.push_back(fmt::format("{}={}", labels[p].name, labels[p].extent.value()));
  return fmt::format("{}", fmt::join(texts, " "));
}

/// "b=1000 h=4096, sum over f=1600"
std::string labels_text(const Vertex& vertex) {
  const auto* einsum = std::get_if<EinSum>(&vertex.op);
  if (einsum == nullptr) return "";
  std::string text = label_list(einsum->labels, einsum->output);
  if (einsum->reducer) {
    text += fmt::format("{}{} over {}", text.empty() ? "" : ", ", name_of(*einsum->reducer),
                        label_list(einsum->labels, einsum->reduced));
  }
  return text;
}

/// "; next direct, 2.3 ms": what would be taken without the chosen kernel.
std::string next_text(const VertexKernel& kernel) {
  const Considered* next = nullptr;
  double least = 0;
  for (const Considered& other : kernel.considered) {
    const auto* const seconds = std::get_if<double>(&other.outcome);
    if (seconds == nullptr || other.kernel == kernel.kernel || (next != nullptr && *seconds >= least)) continue;
    next = &other;
    least = *seconds;
  }
  return next == nullptr ? "" : fmt::format("; next {}, {}", next->kernel, seconds_text(least));
}

/// "by packed (packed 14x32 (AVX-512)), 1.2 ms on one thread, workspace 394 kB; next direct, 2.3 ms"
std::string kernel_text(const VertexKernel& kernel) {
  std::string text = fmt::format("      by {} ({}), {} on one thread, workspace {}", kernel.kernel, kernel.path,
                                 seconds_text(kernel.seconds), bytes_text(kernel.own_bytes + kernel.shared_bytes));
  text += next_text(kernel);
  if (!kernel.together.empty()) text += fmt::format("; in one pass with {}", fmt::join(kernel.together, ", "));
  if (kernel.row_by_row) text += ", softmax row by row";
  return text + "\n";
}

std::string vertex_text(const Vertex& vertex, const EinGraph& graph, double total_flops) {
  if (is_input(vertex))
    return fmt::format("  {:<60} {:>10}\n", formula(vertex, graph), bytes_text(tensor_bytes(vertex)));
  const double own = flops(vertex);
  const std::string share = total_flops > 0 ? fmt::format("{:.1f} %", 100 * own / total_flops) : "-";
  const std::string type = fmt::format("{} {}", name_of(vertex.dtype), to_string(vertex.bound));
  return fmt::format("  {}\n      {:<24} {:<34} {:>12} {:>8} {:>10}\n", formula(vertex, graph), type,
                     labels_text(vertex), flops_text(own), share, bytes_text(tensor_bytes(vertex)));
}

std::string contraction_text(const OrderedContraction& contraction, const EinGraph& graph) {
  const double saved = contraction.flops_as_written / std::max(contraction.flops_ordered, 1.0);
  std::string text =
      fmt::format("  {}: {} factors, {} as written, {} in this order ({:.3g} times fewer, {})\n", contraction.tensor,
                  contraction.factors, flops_text(contraction.flops_as_written), flops_text(contraction.flops_ordered),
                  saved, contraction.optimal ? "optimal" : "found greedily");
  for (const std::string& step : contraction.steps) {
    const auto found = std::find_if(graph.vertices.begin(), graph.vertices.end(),
                                    [&](const Vertex& vertex) { return vertex.name == step; });
    text += fmt::format("      {}\n", formula(*found, graph));
  }
  return text;
}

}  // namespace

std::string flops_text(double flops) {
  constexpr std::array<const char*, 7> units{"flop", "kflop", "Mflop", "Gflop", "Tflop", "Pflop", "Eflop"};
  std::size_t unit = 0;
  while (flops >= 999.5 && unit + 1 < units.size()) {
    flops /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", flops, units[unit]);
}

std::string explain_text(const Compiled& compiled) {
  const EinGraph& graph = compiled.graph;
  const MemoryForecast memory = forecast_memory(compiled);
  double total = 0;
  std::size_t inputs = 0;
  for (const Vertex& vertex : graph.vertices) {
    total += flops(vertex);
    inputs += is_input(vertex) ? 1U : 0U;
  }
  const std::size_t vertices = graph.vertices.size() - inputs;
  std::string text =
      fmt::format("{}: {}, {}, {}, peak memory {}", printable(compiled.name, 400), counted(inputs, "input"),
                  vertices == 1 ? "1 vertex" : fmt::format("{} vertices", vertices), flops_text(total),
                  bytes_text(memory.peak_bytes));
  if (!graph.vertices.empty()) text += fmt::format(" (at {})", graph.vertices[memory.peak_vertex].name);
  text += "\n\ninputs\n";
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) text += vertex_text(vertex, graph, total);
  }
  text += "\nvertices, in order of computation (type and bound; labels; flops and their share; bytes; kernel)\n";
  const std::vector<std::optional<VertexKernel>> kernels = chosen_kernels(compiled);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v])) continue;
    text += vertex_text(graph.vertices[v], graph, total);
    if (kernels[v]) text += kernel_text(*kernels[v]);
  }
  if (!compiled.contractions.empty()) text += "\ncontraction order\n";
  for (const OrderedContraction& contraction : compiled.contractions) text += contraction_text(contraction, graph);
  std::vector<std::string> outputs;
  for (const VertexId output : graph.outputs) outputs.push_back(graph[output].name);
  text += fmt::format("\noutputs: {}\n", fmt::join(outputs, ", "));
  return text;
}

}  // namespace einrel
