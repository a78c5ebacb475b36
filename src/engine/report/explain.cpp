#include "engine/report/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/text.h"
#include "einsum/text/print.h"
#include "einsum/vertex_facts.h"
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

/// "by packed (packed 14x32 (AVX-512)), 1.2 ms on one thread, workspace 394 kB; next direct, 2.3 ms"
std::string kernel_text(const VertexKernel& kernel) {
  std::string text = fmt::format("      by {} ({}), {} on one thread, workspace {}", kernel.kernel, kernel.path,
                                 seconds_text(kernel.seconds), bytes_text(kernel.own_bytes + kernel.shared_bytes));
  if (const std::optional<KernelSeconds> next = next_kernel(kernel))
    text += fmt::format("; next {}, {}", next->name, seconds_text(next->seconds));
  if (!kernel.together.empty()) text += fmt::format("; in one pass with {}", fmt::join(kernel.together, ", "));
  if (kernel.row_by_row) text += ", softmax row by row";
  return text + "\n";
}

std::string input_text(const Vertex& vertex, const EinGraph& graph, const VertexTotals& totals) {
  return fmt::format("  {:<60} {:>10}", formula(vertex, graph), bytes_text(totals.bytes));
}

std::string vertex_text(const Vertex& vertex, const EinGraph& graph, const VertexTotals& totals, double all_flops) {
  const std::string share = all_flops > 0 ? fmt::format("{:.1f} %", 100 * totals.flops / all_flops) : "-";
  const std::string type = fmt::format("{} {}", name_of(vertex.dtype), to_string(vertex.bound));
  return fmt::format("  {}\n      {:<24} {:<34} {:>12} {:>8} {:>10}\n", formula(vertex, graph), type,
                     labels_text(vertex), flops_text(totals.flops), share, bytes_text(totals.bytes));
}

/// Vertices by name: a program may have as many contractions as vertices.
using VertexNames = std::unordered_map<std::string_view, const Vertex*>;

std::string contraction_text(const OrderedContraction& contraction, const EinGraph& graph, const VertexNames& names) {
  const double saved = contraction.flops_as_written / std::max(contraction.flops_ordered, 1.0);
  std::string text =
      fmt::format("  {}: {} factors, {} as written, {} in this order ({:.3g} times fewer, {})\n", contraction.tensor,
                  contraction.factors, flops_text(contraction.flops_as_written), flops_text(contraction.flops_ordered),
                  saved, contraction.optimal ? "optimal" : "found greedily");
  for (const std::string& step : contraction.steps) text += fmt::format("      {}\n", formula(*names.at(step), graph));
  return text;
}

/// Two lines on a vertex and all that it stands for: "2 Gflop  4 MB  by packed, 21.1 ms on one thread".
std::string short_text(const Vertex& vertex, const EinGraph& graph, const std::optional<VertexKernel>& kernel,
                       const VertexTotals& totals, std::string_view indent) {
  std::string how;
  if (kernel) how = fmt::format("by {}, {} on one thread", kernel->kernel, seconds_text(totals.seconds));
  if (!kernel && view_of(vertex) != nullptr) how = "lies in the memory of what it reads";
  return fmt::format("{0}  {1}\n{0}      {2:>12} {3:>9}   {4}\n", indent, formula(vertex, graph),
                     flops_text(totals.flops), bytes_text(totals.bytes), how);
}

/// Inputs, then vertices, equal layers once.
std::string folded_text(const Compiled& compiled, const std::vector<std::optional<VertexKernel>>& kernels,
                        const Folding& folding) {
  const EinGraph& graph = compiled.graph;
  const std::vector<VertexTotals> totals = totals_together(graph, kernels, folding);
  std::string inputs = "\ninputs\n";
  std::string vertices = "\nvertices, in order of computation (operations; bytes; kernel); more with --verbose\n";
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (folding.shown[v] != v) continue;
    const Vertex& vertex = graph.vertices[v];
    if (!is_input(vertex)) {
      if (const FoldedGroup* const group = group_at(folding, v)) vertices += group_text(graph, *group);
      vertices += short_text(vertex, graph, kernels[v], totals[v], is_in_group(folding, v) ? "  " : "");
      continue;
    }
    const std::size_t times = folding.alike[v].size();
    inputs += input_text(vertex, graph, totals[v]) + (times > 1 ? fmt::format("  x {}\n", times) : "\n");
  }
  return inputs + vertices;
}

}  // namespace

std::string vertices_text(const Compiled& compiled, const std::vector<std::optional<VertexKernel>>& kernels) {
  const EinGraph& graph = compiled.graph;
  const std::vector<VertexTotals> totals = totals_together(graph, kernels, unfolded(graph));
  double all_flops = 0;
  for (const VertexTotals& each : totals) all_flops += each.flops;
  std::string inputs = "\ninputs\n";
  std::string text =
      "\nvertices, in order of computation (type and bound; labels; flops and their share; bytes; kernel)\n";
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (is_input(vertex)) {
      inputs += input_text(vertex, graph, totals[v]) + "\n";
      continue;
    }
    text += vertex_text(vertex, graph, totals[v], all_flops);
    if (kernels[v]) text += kernel_text(*kernels[v]);
  }
  if (!compiled.contractions.empty()) text += "\ncontraction order\n";
  VertexNames names;
  for (const Vertex& vertex : graph.vertices) names.emplace(vertex.name, &vertex);
  for (const OrderedContraction& contraction : compiled.contractions)
    text += contraction_text(contraction, graph, names);
  return inputs + text;
}

std::string explain_text(const Compiled& compiled, const SourceText& source, Detail detail) {
  const bool full = detail == Detail::full;
  const PlannedTasks whole = whole_tasks(compiled);
  const std::vector<std::optional<VertexKernel>> kernels = chosen_kernels(compiled, whole);
  const Folding folding = full ? unfolded(compiled.graph) : fold(compiled.graph, {});
  return summary_text(compiled, kernels, forecast_memory(whole), folding, source) +
         (full ? vertices_text(compiled, kernels) : folded_text(compiled, kernels, folding));
}

}  // namespace einrel
