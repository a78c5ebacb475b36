#include "report/program_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "einsum/graph/vertex_facts.h"

namespace einrel {

std::string folded_name(const EinGraph& graph, const Folding& folding, std::size_t vertex) {
  const std::size_t times = folding.alike[vertex].size();
  const std::string& name = graph.vertices[vertex].name;
  return times > 1 ? fmt::format("{} x {}", name, times) : name;
}

std::vector<Amount> largest(std::vector<Amount> amounts) {
  constexpr std::size_t most = 3;
  std::erase_if(amounts, [](const Amount& amount) { return !(amount.value > 0); });
  std::stable_sort(amounts.begin(), amounts.end(), [](const Amount& a, const Amount& b) { return a.value > b.value; });
  amounts.resize(std::min(most, amounts.size()));
  return amounts;
}

std::vector<Amount> slowest(const EinGraph& graph, const Folding& folding, const std::vector<double>& seconds) {
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  std::vector<Amount> amounts;
  for (std::size_t v = 0; v < seconds.size(); ++v) {
    if (folding.shown[v] != v) continue;
    Amount amount{folded_name(graph, folding, v), 0};
    for (const std::size_t other : folding.alike[v]) amount.value += seconds[other];
    amounts.push_back(std::move(amount));
  }
  std::vector<Amount> parts = largest(std::move(amounts));
  for (Amount& part : parts) part.value = 100 * part.value / all;
  return parts;
}

ProgramFacts facts_of(const Compiled& compiled, const Folding& folding) {
  const EinGraph& graph = compiled.graph;
  ProgramFacts facts;
  std::vector<Amount> inputs;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    facts.flops += flops(vertex);
    if (!is_input(vertex)) {
      ++facts.vertices;
      continue;
    }
    ++facts.inputs;
    const double bytes = bytes_of(vertex);
    facts.input_bytes += bytes;
    if (folding.shown[v] != v) continue;
    inputs.push_back({folded_name(graph, folding, v), bytes * static_cast<double>(folding.alike[v].size())});
  }
  facts.largest_inputs = largest(std::move(inputs));
  facts.flops_as_written = facts.flops;
  for (const OrderedContraction& contraction : compiled.contractions)
    facts.flops_as_written += contraction.flops_as_written - contraction.flops_ordered;
  return facts;
}

std::vector<VertexTotals> totals_together(const EinGraph& graph, const std::vector<std::vector<KernelCall>>& calls,
                                          const Folding& folding) {
  std::vector<VertexTotals> totals(graph.vertices.size());
  for (std::size_t v = 0; v < totals.size(); ++v) {
    VertexTotals& shown = totals[folding.shown[v]];
    shown.flops += flops(graph.vertices[v]);
    shown.bytes += bytes_of(graph.vertices[v]);
    if (calls.empty()) continue;
    for (const KernelCall& call : calls[v]) shown.seconds += call.all_seconds();
  }
  return totals;
}

std::optional<KernelSeconds> next_kernel(const KernelCall& chosen) {
  std::optional<KernelSeconds> next;
  for (const Considered& other : chosen.considered) {
    const auto* const seconds = std::get_if<double>(&other.outcome);
    if (seconds == nullptr || other.kernel == chosen.kernel || (next && *seconds >= next->seconds)) continue;
    next = KernelSeconds{std::string(other.kernel), *seconds};
  }
  return next;
}

}  // namespace einrel
