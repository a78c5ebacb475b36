#include "engine/plan_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "plan/refine/within_memory.h"

namespace einrel {
namespace {

std::string named(const Vertex& vertex, const SourceText& source) {
  return fmt::format("{} (line {})", vertex.name, source.locate(vertex.where.begin).line);
}

/// "X (line 2) 4 MB, copied Y (line 2) 1 MB, and 3 more of 2 MB"
std::string tensors_text(const EinGraph& graph, const SitePeak& peak, const SourceText& source) {
  constexpr std::size_t most = 5;
  std::vector<std::string> texts;
  std::int64_t rest = peak.bytes;
  for (std::size_t t = 0; t < std::min(most, peak.tensors.size()); ++t) {
    const HeldTensor& held = peak.tensors[t];
    constexpr std::array<std::string_view, 4> prefixes{"", "copied ", "partial results of ", "between the joins of "};
    const std::string_view as = prefixes.at(static_cast<std::size_t>(held.as));
    texts.push_back(fmt::format("{}{} {}", as, named(graph.vertices[held.vertex], source), bytes_text(held.bytes)));
    rest -= held.bytes;
  }
  if (peak.tensors.size() > most)
    texts.push_back(fmt::format("and {} more of {}", peak.tensors.size() - most, bytes_text(rest)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::string peak_text(const EinGraph& graph, const PlanReport& report, const PlanRequest& request,
                      const SourceText& source) {
  const bool fits = !request.memory || report.peak.bytes <= *request.memory;
  return fmt::format("{}{} on site {} while {} is computed: {}", bytes_text(report.peak.bytes),
                     fits ? "" : ", over the limit,", report.peak.site,
                     named(graph.vertices[report.peak.vertex], source), tensors_text(graph, report.peak, source));
}

std::string peaks_text(const Compiled& compiled, const std::vector<PlanReport>& reports, const PlanRequest& request,
                       const SourceText& source) {
  const EinGraph& graph = compiled.graph;
  std::string text = "\nmost memory of a site";
  if (request.memory) text += fmt::format(" (limit {})", bytes_text(*request.memory));
  text += "\n";
  for (const PlanReport& report : reports) {
    text += fmt::format("{:<18} {:>9}\n", report.plan.planner, peak_text(graph, report, request, source));
  }
  return text;
}

void check_fits(const Compiled& compiled, const PlanReport& report, const PlanRequest& request,
                const SourceText& source) {
  if (!request.memory) return;
  const std::string reason = over_limit(compiled.graph, report.peak, *request.memory);
  if (reason.empty()) return;
  throw UserError(fmt::format("the plan by {} does not fit: {}\n  it holds {}", report.plan.planner, reason,
                              tensors_text(compiled.graph, report.peak, source)));
}

}  // namespace einrel
