#include "report/trace.h"

#include <algorithm>
#include <limits>
#include <map>
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

/// Of a task that copies: the bytes of its boxes that lie on another site than what it makes.
std::int64_t bytes_from_other_sites(const TaskGraph& graph, const Task& task, const CopyBoxes& copy) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < copy.boxes.size(); ++i) {
    const TaskArray& from = graph[task.reads[i]];
    if (from.site == graph[task.makes.front()].site) continue;
    bytes += element_count(copy.boxes[i].bound) * static_cast<std::int64_t>(size_of(from.dtype));
  }
  return bytes;
}

/// Why a thread had nothing to do for a while.
struct Wait {
  std::size_t message = 0;  ///< the Send that it waited for
  double start = 0;
  double end = 0;
};

/// What happened on one rank, by what made each array there.
class RankHistory {
 public:
  RankHistory(const TaskGraph& graph, std::size_t rank, const std::vector<TaskSpan>& spans,
              const std::vector<MessageSpan>& messages)
      : graph_(graph) {
    for (const TaskSpan& span : spans) {
      begin_ = std::min(begin_, span.start);
      const Task& task = graph.tasks[span.task];
      for (const ArrayId made : task.makes) made_[made.index] = {span.start + span.seconds, span.task, &span};
      threads_[span.thread].push_back(&span);
    }
    for (const MessageSpan& message : messages) {
      begin_ = std::min(begin_, message.start);
      const ArrayId made = graph.tasks[message.task].makes.front();
      if (graph[made].site == static_cast<Site>(rank)) made_[made.index] = {message.end, message.task, {}};
    }
    for (auto& [thread, of_thread] : threads_) {
      std::sort(of_thread.begin(), of_thread.end(),
                [](const TaskSpan* a, const TaskSpan* b) { return a->start < b->start; });
    }
  }

  /// When a message that is sent from here could be.
  double could_be_sent(const MessageSpan& message) const {
    const auto made = made_.find(graph_.tasks[message.task].reads.front().index);
    const double ready = made == made_.end() ? message.start : std::max(message.start, made->second.at);
    return std::min(ready, message.end);
  }

  /// By thread: the gaps before its tasks, as far as what the next one needed had not arrived.
  std::map<int, std::vector<Wait>> waits() const {
    std::map<int, std::vector<Wait>> waits;
    for (const auto& [thread, spans] : threads_) {
      double idle_since = begin_;
      for (const TaskSpan* const span : spans) {
        if (const std::optional<Made> last = last_arrival(*span, idle_since))
          waits[thread].push_back({last->task, idle_since, std::min(last->at, span->start)});
        idle_since = std::max(idle_since, span->start + span->seconds);
      }
    }
    return waits;
  }

 private:
  struct Made {
    double at = 0;
    std::size_t task = 0;
    const TaskSpan* span = nullptr;  ///< none of what has arrived
  };

  /// The message that a task began after, itself or by way of tasks that began in the gap before it, if that arrived
  /// there. Each step goes to an earlier task.
  std::optional<Made> last_arrival(const TaskSpan& first, double idle_since) const {
    for (const TaskSpan* span = &first; span != nullptr && span->start > idle_since;) {
      Made last;
      for (const ArrayId read : graph_.tasks[span->task].reads) {
        const auto made = made_.find(read.index);
        if (made != made_.end() && made->second.at > last.at) last = made->second;
      }
      if (last.at <= idle_since) return std::nullopt;
      if (last.span == nullptr) return last;
      span = last.span;
    }
    return std::nullopt;
  }

  const TaskGraph& graph_;
  double begin_ = std::numeric_limits<double>::infinity();
  std::map<std::size_t, Made> made_;  // by array
  std::map<int, std::vector<const TaskSpan*>> threads_;
};

/// Writes events one rank after the other.
class TraceWriter {
 public:
  TraceWriter(const PlannedTasks& tasks, const PlanRunReport& run) : tasks_(tasks), graph_(tasks.graph) {
    for (const std::vector<TaskSpan>& rank : run.spans) {
      for (const TaskSpan& span : rank) first_ = std::min(first_, span.start);
    }
    for (const std::vector<MessageSpan>& rank : run.messages) {
      for (const MessageSpan& message : rank) first_ = std::min(first_, message.start);
    }
  }

  void write(std::size_t rank, const std::vector<TaskSpan>& spans, const std::vector<MessageSpan>& messages) {
    const std::string name = "rank " + std::to_string(rank);
    events_.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", rank}, {"args", {{"name", name}}}});
    for (const TaskSpan& span : spans) write(rank, span);
    const RankHistory history(graph_, rank, spans, messages);
    for (const MessageSpan& message : messages) write(rank, message, history);
    for (const auto& [thread, waits] : history.waits()) {
      for (const Wait& wait : waits) write(rank, thread, wait);
    }
  }

  ordered_json events() { return std::move(events_); }

 private:
  double microseconds(double at) const { return (at - first_) * 1e6; }
  Site sender(const Task& send) const { return graph_[send.reads.front()].site; }

  void write(std::size_t rank, const TaskSpan& span) {
    const Task& task = graph_.tasks[span.task];
    ordered_json args{{"task", span.task}, {"flops", flops_of(task)}};
    if (const auto* const copy = std::get_if<CopyBoxes>(&task.op)) {
      args["bytes"] = bytes_of(graph_[task.makes.front()]);
      args["site"] = graph_[task.makes.front()].site;
      args["bytes_from_other_sites"] = bytes_from_other_sites(graph_, task, *copy);
    }
    events_.push_back({{"ph", "X"},
                       {"name", name_of(tasks_, span.task)},
                       {"cat", std::visit(KindOf{}, task.op)},
                       {"pid", rank},
                       {"tid", span.thread},
                       {"ts", microseconds(span.start)},
                       {"dur", span.seconds * 1e6},
                       {"args", std::move(args)}});
  }

  /// Messages overlap, so that each is a pair of events; of both sides of one the arguments are the same.
  void write(std::size_t rank, const MessageSpan& message, const RankHistory& history) {
    const Task& task = graph_.tasks[message.task];
    const bool is_sent = sender(task) == static_cast<Site>(rank);
    const double start = is_sent ? history.could_be_sent(message) : message.start;
    const ordered_json args{{"task", message.task},
                            {"bytes", bytes_of(graph_[task.makes.front()])},
                            {"from_rank", sender(task)},
                            {"to_rank", graph_[task.makes.front()].site}};
    for (const auto& [phase, at] : {std::pair("b", start), std::pair("e", message.end)}) {
      events_.push_back({{"ph", phase},
                         {"name", name_of(tasks_, message.task)},
                         {"cat", is_sent ? "send" : "receive"},
                         {"id", message.task},
                         {"pid", rank},
                         {"tid", 0},
                         {"ts", microseconds(at)},
                         {"args", args}});
    }
  }

  void write(std::size_t rank, int thread, const Wait& wait) {
    const Task& task = graph_.tasks[wait.message];
    events_.push_back(
        {{"ph", "X"},
         {"name", "waits for " + name_of(tasks_, wait.message) + " from rank " + std::to_string(sender(task))},
         {"cat", "wait"},
         {"pid", rank},
         {"tid", thread},
         {"ts", microseconds(wait.start)},
         {"dur", (wait.end - wait.start) * 1e6},
         {"args",
          {{"task", wait.message}, {"bytes", bytes_of(graph_[task.makes.front()])}, {"from_rank", sender(task)}}}});
  }

  const PlannedTasks& tasks_;
  const TaskGraph& graph_;
  double first_ = std::numeric_limits<double>::infinity();
  ordered_json events_ = ordered_json::array();
};

}  // namespace

std::string trace_json(const PlannedTasks& tasks, const PlanRunReport& run) {
  TraceWriter writer(tasks, run);
  for (std::size_t rank = 0; rank < run.spans.size(); ++rank) writer.write(rank, run.spans[rank], run.messages[rank]);
  const ordered_json trace{{"displayTimeUnit", "ms"}, {"traceEvents", writer.events()}};
  return trace.dump(1, ' ', true, ordered_json::error_handler_t::replace);
}

}  // namespace einrel
