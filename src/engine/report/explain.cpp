#include "engine/report/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "einsum/text/print.h"
#include "einsum/vertex_facts.h"
#include "engine/kernels.h"
#include "engine/report/explain_summary.h"

namespace einrel {
namespace {

std::string label_list(const std::vector<Label>& labels, const std::vector<std::size_t>& positions) {
  std::vector<std::string> texts;
  for (const std::size_t p : positions) texts.push_back(fmt::format("{}={}", labels[p].name, labels[p].extent.value()));
  return fmt::format("{}", fmt::join(texts, " "));
}

/// "b=1000 h=4096, sum over f=1600"
std::string labels_text(const Vertex& vertex) {
  const EinSum* const einsum = einsum_of(vertex);
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

/// Two lines on a vertex and all that it stands for: "2 Gflop  4 MB  by packed, 21.1 ms on one thread".
std::string short_text(const Compiled& compiled, const std::vector<std::optional<VertexKernel>>& kernels,
                       const Folding& folding, std::size_t v) {
  const EinGraph& graph = compiled.graph;
  double operations = 0;
  double bytes = 0;
  double seconds = 0;
  for (const std::size_t other : folding.alike[v]) {
    operations += flops(graph.vertices[other]);
    bytes += tensor_bytes(graph.vertices[other]);
    if (kernels[other]) seconds += kernels[other]->seconds;
  }
  const std::string_view indent = is_in_group(folding, v) ? "  " : "";
  std::string kernel;
  if (kernels[v]) kernel = fmt::format("by {}, {} on one thread", kernels[v]->kernel, seconds_text(seconds));
  if (!kernels[v] && view_of(graph.vertices[v]) != nullptr) kernel = "lies in the memory of what it reads";
  return fmt::format("{}  {}\n{}      {:>12} {:>9}   {}\n", indent, formula(graph.vertices[v], graph), indent,
                     flops_text(operations), bytes_text(bytes), kernel);
}

/// Inputs, then vertices, equal layers once.
std::string folded_text(const Compiled& compiled, const std::vector<std::optional<VertexKernel>>& kernels,
                        const Folding& folding) {
  const EinGraph& graph = compiled.graph;
  std::string inputs = "\ninputs\n";
  std::string vertices = "\nvertices, in order of computation (operations; bytes; kernel); more with --verbose\n";
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (folding.shown[v] != v) continue;
    if (!is_input(graph.vertices[v])) {
      if (const FoldedGroup* const group = group_at(folding, v)) vertices += group_text(graph, *group);
      vertices += short_text(compiled, kernels, folding, v);
      continue;
    }
    const std::size_t times = folding.alike[v].size();
    inputs += fmt::format("  {:<60} {:>10}{}\n", formula(graph.vertices[v], graph),
                          bytes_text(static_cast<double>(times) * tensor_bytes(graph.vertices[v])),
                          times > 1 ? fmt::format("  x {}", times) : "");
  }
  return inputs + vertices;
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

double tensor_bytes(const Vertex& vertex) {
  return static_cast<double>(element_count(vertex.bound)) * static_cast<double>(size_of(vertex.dtype));
}

std::string vertices_text(const Compiled& compiled) {
  const EinGraph& graph = compiled.graph;
  double total = 0;
  std::string text = "\ninputs\n";
  for (const Vertex& vertex : graph.vertices) {
    total += flops(vertex);
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
  return text;
}

std::string explain_text(const Compiled& compiled, const SourceText& source, Detail detail) {
  const EinGraph& graph = compiled.graph;
  const std::vector<std::optional<VertexKernel>> kernels = chosen_kernels(compiled);
  if (detail == Detail::full) return summary_text(compiled, kernels, unfolded(graph), source) + vertices_text(compiled);
  const Folding folding = fold(graph, {});
  return summary_text(compiled, kernels, folding, source) + folded_text(compiled, kernels, folding);
}

}  // namespace einrel
