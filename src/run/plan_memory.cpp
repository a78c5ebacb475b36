#include "run/plan_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "plan/planners/within_memory.h"
#include "run/made_of_expressions.h"

namespace einrel {

std::string with_line(const Vertex& vertex, const SourceText& source) {
  if (source.name() == made_of_expressions) return vertex.name;
  return fmt::format("{} (line {})", vertex.name, source.locate(vertex.where.begin).line);
}

std::string tensors_text(const EinGraph& graph, const SitePeak& peak, const SourceText& source) {
  constexpr std::size_t most = 5;
  std::vector<std::string> texts;
  std::int64_t rest = peak.bytes;
  for (std::size_t t = 0; t < std::min(most, peak.tensors.size()); ++t) {
    const HeldTensor& held = peak.tensors[t];
    constexpr std::array<std::string_view, 4> prefixes{"", "copied ", "partial results of ", "between the joins of "};
    const std::string_view as = prefixes.at(static_cast<std::size_t>(held.as));
    texts.push_back(fmt::format("{}{} {}", as, with_line(graph.vertices[held.vertex], source), bytes_text(held.bytes)));
    rest -= held.bytes;
  }
  if (peak.tensors.size() > most)
    texts.push_back(fmt::format("and {} more of {}", peak.tensors.size() - most, bytes_text(rest)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

void check_fits(const Compiled& compiled, const PlanReport& report, const PlanRequest& request,
                const SourceText& source, const std::string& more) {
  if (!request.memory) return;
  const std::string reason = over_limit(compiled.graph, report.peak, *request.memory);
  if (reason.empty()) return;
  throw UserError(fmt::format("the plan by {} does not fit: {}\n  it holds {}{}", report.plan.planner, reason,
                              tensors_text(compiled.graph, report.peak, source), more));
}

}  // namespace einrel
