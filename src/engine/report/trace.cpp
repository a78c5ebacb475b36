#include "engine/report/trace.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace einrel {
namespace {

using nlohmann::ordered_json;

/// What a task does, as viewers can filter by.
struct KindOf {
  std::string operator()(const ReadInput&) const { return "read"; }
  std::string operator()(const CallKernel&) const { return "compute"; }
  std::string operator()(const CopyBoxes&) const { return "copy"; }
  std::string operator()(const Send&) const { return "send"; }
  std::string operator()(const WriteOutput&) const { return "write"; }
};

}  // namespace

std::string trace_json(const PlannedTasks& tasks, const PlanRunReport& run) {
  double first = std::numeric_limits<double>::infinity();
  for (const std::vector<TaskSpan>& rank : run.spans) {
    for (const TaskSpan& span : rank) first = std::min(first, span.start);
  }
  constexpr double microseconds = 1e6;
  ordered_json events = ordered_json::array();
  for (std::size_t rank = 0; rank < run.spans.size(); ++rank) {
    const std::string name = "rank " + std::to_string(rank);
    events.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", rank}, {"args", {{"name", name}}}});
    for (const TaskSpan& span : run.spans[rank]) {
      const Task& task = tasks.graph.tasks[span.task];
      events.push_back({{"ph", "X"},
                        {"name", name_of(tasks, span.task)},
                        {"cat", std::visit(KindOf{}, task.op)},
                        {"pid", rank},
                        {"tid", span.thread},
                        {"ts", (span.start - first) * microseconds},
                        {"dur", span.seconds * microseconds},
                        {"args", {{"task", span.task}, {"flops", flops_of(task)}}}});
    }
  }
  const ordered_json trace{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return trace.dump(1, ' ', true, ordered_json::error_handler_t::replace);
}

}  // namespace einrel
