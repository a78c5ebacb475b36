#include "run/plan_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "plan/planners/within_memory.h"
#include "run/bookkeeping.h"
#include "run/made_of_expressions.h"
#include "run/out_of_core.h"

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

std::int64_t left_beside(const std::optional<PlannedTasks>& tasks, std::int64_t limit) {
  return tasks ? left_for_arrays(limit, bookkeeping_by_starpu(*tasks)) : limit;
}

std::optional<TooLarge> why_too_large(const Compiled& compiled, const PlanReport& report,
                                      const std::optional<PlannedTasks>& tasks, std::int64_t limit,
                                      const SourceText& source) {
  const std::int64_t left = left_beside(tasks, limit);
  if (left > 0 && report.peak.bytes <= left) return std::nullopt;
  std::string held = fmt::format("\n  it holds {}", tensors_text(compiled.graph, report.peak, source));
  const Bookkeeping bookkeeping = tasks ? bookkeeping_by_starpu(*tasks) : Bookkeeping();
  const std::int64_t enough = least_that(limit, [&](std::int64_t more) {
    return left_for_arrays(more, bookkeeping) >= std::max<std::int64_t>(report.peak.bytes, 1);
  });
  const std::string help = fmt::format("\n  help: give at least {}, or more sites", bytes_text(rounded_up(enough)));
  if (report.peak.bytes > limit) return TooLarge{over_limit(compiled.graph, report.peak, limit), held + help};
  const std::string beside = bookkeeping_text(*tasks, bookkeeping);
  if (left == 0) return TooLarge{fmt::format("--memory {} is too little: {}", bytes_text(limit), beside), held + help};
  return TooLarge{over_limit(compiled.graph, report.peak, left),
                  fmt::format("{}\n  beside it, {} of {}{}", held, beside, bytes_text(limit), help)};
}

}  // namespace einrel
