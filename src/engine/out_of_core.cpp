#include "engine/out_of_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "einsum/vertex_facts.h"
#include "exec/cut_parts_out.h"
#include "exec/read_late.h"
#include "exec/starpu/session.h"
#include "plan/planners/eindecomp.h"
#include "plan/refine/finer_parts.h"

namespace einrel {
namespace {

/// Chunks of more sites than this are too many to plan for while the user waits.
constexpr std::int64_t most_virtual_sites = 4096;

/// Nor is comparing more pairs of ways to cut neighbours: a table of as many numbers would not fit into what the program
/// takes beside its chunks.
constexpr double most_pairs = 1e6;

/// Nor are more kernel calls than these worth waiting for.
constexpr double most_calls = 100'000;
/// Nor more parts that are copied from one chunk to another.
constexpr double most_copies = 100'000;
/// Smaller chunks gain less by another thread than it takes to handle them.
constexpr std::int64_t least_task_bytes = std::int64_t{1} << 20;

/// The most that one task has in memory, and which; and what the program takes for all of them.
struct LargestTask {
  std::int64_t bytes = 0;
  IaId node;
  std::int64_t bookkeeping = 0;
};

LargestTask largest_task(const PlannedTasks& tasks) {
  LargestTask largest{0, {}, bookkeeping_bytes(tasks)};
  for (const Task& task : tasks.graph.tasks) {
    const std::int64_t bytes = bytes_needed(tasks.graph, task);
    if (bytes <= largest.bytes) continue;
    largest.bytes = bytes;
    largest.node = task.node;
  }
  return largest;
}

bool fits(const LargestTask& largest, const TaskMemory& memory) { return largest.bytes <= most_task_bytes(memory); }

bool fits_with_bookkeeping(const LargestTask& largest, TaskMemory memory) {
  memory.limit -= largest.bookkeeping;
  return memory.limit > 0 && fits(largest, memory);
}

/// Each as small as the memory asks.
PlannedTasks tasks_within(const Compiled& compiled, const Plan& plan, const TaskMemory& memory, const Job& job) {
  PlannedTasks tasks = tasks_of(compiled, plan, job, most_task_bytes(memory));
  cut_parts_out(tasks.graph, most_task_bytes(memory));
  read_late(tasks.graph);
  return tasks;
}

/// What all tasks read and make, each by itself.
double bytes_touched(const TaskGraph& graph) {
  return std::transform_reduce(graph.tasks.begin(), graph.tasks.end(), 0.0, std::plus<>(),
                               [&](const Task& task) { return static_cast<double>(bytes_needed(graph, task)); });
}

/// Whether it reads something that it computes at a constant, as A[3,b]. Planners do not cut that along its first
/// dimension, so they have the whole of it read again and again.
bool reads_results_at_constants(const EinGraph& graph) {
  for (const Vertex& vertex : graph.vertices) {
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      const Vertex& read = graph[vertex.inputs[o]];
      for (std::size_t d = 0; d < read.bound.size(); ++d) {
        if (is_at_constant(vertex, o, d) && !is_input(read)) return true;
      }
    }
  }
  return false;
}

/// Which labels of a vertex have to stay whole, and why.
std::string uncut_text(const EinGraph& graph, std::size_t v) {
  const Vertex& vertex = graph.vertices[v];
  const Shape extents = label_extents(vertex);
  const std::vector<std::string> reasons = cannot_be_cut(vertex, graph);
  std::string text;
  for (std::size_t l = 0; l < reasons.size(); ++l) {
    if (reasons[l].empty() || extents[l].value() < 2) continue;
    text += fmt::format("\n  {} of {} cannot be cut: {}", label_title(vertex, l), vertex.name, reasons[l]);
  }
  return text;
}

/// The least limit that such a task fits into, rounded up to three digits, as people read it.
std::int64_t least_limit(const LargestTask& largest, TaskMemory memory) {
  std::int64_t too_little = memory.limit;
  memory.limit = std::max<std::int64_t>(memory.limit, 1);
  while (!fits_with_bookkeeping(largest, memory)) too_little = std::exchange(memory.limit, 2 * memory.limit);
  while (memory.limit - too_little > 1) {
    const std::int64_t middle = too_little + (memory.limit - too_little) / 2;
    (fits_with_bookkeeping(largest, {middle, memory.threads, memory.is_in_job}) ? memory.limit : too_little) = middle;
  }
  std::int64_t unit = 1;
  while (memory.limit / unit >= 1000) unit *= 10;
  return (memory.limit + unit - 1) / unit * unit;
}

/// The vertices on whose account a task takes more: its own, or, of a part that is put together for others, those that
/// read it. What several read belongs to the operation of the first.
std::set<std::size_t> vertices_over(const PlannedTasks& tasks, std::int64_t most) {
  std::vector<bool> is_for_readers(tasks.graph.arrays.size(), false);
  std::set<std::size_t> found;
  for (const Task& task : tasks.graph.tasks) {
    const bool is_over =
        bytes_needed(tasks.graph, task) > most ||
        std::any_of(task.reads.begin(), task.reads.end(), [&](ArrayId read) { return is_for_readers[read.index]; });
    if (!is_over) continue;
    const bool is_needed_as_it_is =
        std::holds_alternative<CallKernel>(task.op) || std::holds_alternative<WriteOutput>(task.op);
    if (!is_needed_as_it_is) is_for_readers[task.makes.index] = true;
    const std::optional<std::size_t> vertex = tasks.vertices[task.node.index];
    if (is_needed_as_it_is && vertex) found.insert(*vertex);
  }
  return found;
}

/// Of these vertices, what they read in parts as small as theirs, or, where it is, parts that take half as much.
/// Whether anything is left to ask for: not where nothing helps any of those with the largest task.
bool ask_for_smaller(const EinGraph& graph, const std::set<std::size_t>& vertices, const std::set<std::size_t>& largest,
                     std::vector<std::int64_t>& most_bytes, Plan& plan) {
  bool helps_largest = false;
  for (const std::size_t v : vertices) {
    const bool has_cut = cut_operands(graph, plan, v);
    if (!has_cut) most_bytes[v] /= 2;
    const bool helps = has_cut || (can_be_finer(graph, plan, v) && most_bytes[v] > 0);
    helps_largest = helps_largest || (helps && largest.count(v) != 0);
  }
  return helps_largest;
}

}  // namespace

std::int64_t bookkeeping_bytes(const PlannedTasks& tasks) {
  constexpr std::int64_t of_vertex = 8000;  // with its plan and kernels
  constexpr std::int64_t of_task = 400;
  constexpr std::int64_t of_array = 5000;  // that is alive: what StarPU keeps of it
  constexpr std::int64_t own = std::int64_t{1} << 20;
  const TaskGraph& graph = tasks.graph;
  const std::vector<std::vector<ArrayId>> freed = last_uses(graph);
  std::int64_t live = 0;
  std::int64_t most_live = 0;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    if (!std::holds_alternative<WriteOutput>(graph.tasks[t].op)) ++live;
    most_live = std::max(most_live, live);
    live -= static_cast<std::int64_t>(freed[t].size());
  }
  if (graph.memory == SiteMemory::apart) most_live /= graph.sites;
  const std::int64_t all = of_vertex * static_cast<std::int64_t>(tasks.names.size()) +
                           of_task * static_cast<std::int64_t>(graph.tasks.size()) + of_array * most_live;
  return std::max<std::int64_t>(0, all - own);
}

std::int64_t most_task_bytes(const TaskMemory& memory) {
  const std::int64_t shares = memory.is_in_job ? 4 : 2 * static_cast<std::int64_t>(memory.threads);
  return chunk_memory(memory.limit, memory.threads) / shares;
}

void check_tasks_fit(const Compiled& compiled, const PlannedTasks& tasks, const TaskMemory& memory) {
  LargestTask largest = largest_task(tasks);
  if (fits_with_bookkeeping(largest, memory)) return;
  const bool is_for_tasks = fits(largest, memory) || largest.bookkeeping >= memory.limit;
  if (largest.bookkeeping >= memory.limit) largest.bytes = 0;  // a part can be smaller, but no plan has fewer tasks
  const std::string help = fmt::format("\n  help: give at least {}{}", bytes_text(least_limit(largest, memory)),
                                       memory.is_in_job      ? ", or more ranks"
                                       : memory.threads == 1 ? ""
                                                             : ", or fewer --threads");
  const std::string bookkeeping = fmt::format(
      "the bookkeeping of {} takes {}", counted(tasks.graph.tasks.size(), "task"), bytes_text(largest.bookkeeping));
  if (is_for_tasks)
    throw UserError(fmt::format("--memory {} is too little: {}{}", bytes_text(memory.limit), bookkeeping, help));
  const std::optional<std::size_t> vertex = tasks.vertices[largest.node.index];
  throw UserError(fmt::format(
      "--memory {} is too little: a part of '{}' takes {}{}, when cut for {}{}{}{}", bytes_text(memory.limit),
      vertex ? compiled.graph.vertices[*vertex].name : "the program", bytes_text(largest.bytes),
      memory.threads == 1 || memory.is_in_job ? "" : fmt::format(" on each of {}", counted(memory.threads, "thread")),
      counted(static_cast<std::size_t>(tasks.graph.sites), "site"), vertex ? uncut_text(compiled.graph, *vertex) : "",
      largest.bookkeeping == 0 ? "" : "\n  " + bookkeeping, help));
}

std::size_t threads_that_fit(const PlannedTasks& tasks, TaskMemory memory) {
  const LargestTask largest = largest_task(tasks);
  while (memory.threads > 1 && !fits_with_bookkeeping(largest, memory)) --memory.threads;
  return memory.threads;
}

PlannedTasks make_tasks_fit(const Compiled& compiled, Plan& plan, const TaskMemory& memory, const Job& job) {
  const std::int64_t most = most_task_bytes(memory);
  std::vector<std::int64_t> most_bytes(compiled.graph.vertices.size(), most);
  PlannedTasks best = tasks_within(compiled, plan, memory, job);
  std::set<std::size_t> too_large = vertices_over(best, most);
  for (Plan finer = plan; !too_large.empty();) {
    make_parts_finer(compiled.graph, finer, most_bytes);
    if (calls_of(compiled.graph, finer) > most_calls || copies_of(compiled.graph, finer) > most_copies) break;
    PlannedTasks tasks = tasks_within(compiled, finer, memory, job);
    too_large = vertices_over(tasks, most);
    const LargestTask largest = largest_task(tasks);
    const std::set<std::size_t> of_largest = vertices_over(tasks, largest.bytes - 1);
    if (largest.bytes < largest_task(best).bytes) {
      plan = finer;
      best = std::move(tasks);
    }
    if (!ask_for_smaller(compiled.graph, too_large, of_largest, most_bytes, finer)) break;
  }
  return best;
}

namespace {

/// A plan whose parts are made finer until they fit, or as far as that goes.
OutOfCorePlan made_finer(const Compiled& compiled, Plan plan, PlanRequest request, const TaskMemory& memory) {
  PlannedTasks tasks = make_tasks_fit(compiled, plan, memory, {});
  const std::size_t threads = threads_that_fit(tasks, memory);
  request.sites = plan.sites;
  return {report_of(compiled, std::move(plan), request), std::move(tasks), threads};
}

/// As many sites as it takes until the parts of a plan fit, or more do not help, or there are more calls than `most`.
OutOfCorePlan plan_for_more_sites(const Compiled& compiled, const std::string& planner, PlanRequest request,
                                  const TaskMemory& memory, double most) {
  constexpr int most_in_vain = 2;
  std::optional<OutOfCorePlan> best;
  for (int in_vain = 0; in_vain < most_in_vain && request.sites <= most_virtual_sites; request.sites *= 2) {
    if (best && planner == "eindecomp" && pairs_compared(compiled.graph, request.sites) > most_pairs) break;
    std::variant<PlanReport, PlanRefusal> planned = try_plan(compiled, planner, request);
    const auto* const refusal = std::get_if<PlanRefusal>(&planned);
    if (refusal != nullptr && best) break;  // a product of schemes is for so many sites
    if (refusal != nullptr) throw UserError(refusal_text(compiled, *refusal));
    PlanReport plan = std::get<PlanReport>(std::move(planned));
    if (best && calls_of(compiled.graph, plan.plan) > most) break;
    PlannedTasks tasks = tasks_within(compiled, plan.plan, memory, {});
    const LargestTask largest = largest_task(tasks);
    const bool gains = !best || largest.bytes < largest_task(best->tasks).bytes;
    if (gains) best = OutOfCorePlan{std::move(plan), std::move(tasks), memory.threads};
    if (fits(largest, memory)) return std::move(*best);
    in_vain = gains ? 0 : in_vain + 1;
  }
  return std::move(*best);
}

/// Of a program that reads its results at constants: parts of a plan for no more sites, if they fit.
std::optional<OutOfCorePlan> plan_for_constants(const Compiled& compiled, const std::string& planner,
                                                const PlanRequest& request, const TaskMemory& memory) {
  if (!reads_results_at_constants(compiled.graph)) return std::nullopt;
  OutOfCorePlan finer = made_finer(compiled, plan_with(compiled, planner, request).plan, request, memory);
  const bool fit = fits(largest_task(finer.tasks), {memory.limit, finer.threads});
  return fit ? std::optional(std::move(finer)) : std::nullopt;
}

/// Whatever the program takes beside chunks.
OutOfCorePlan plan_chunks(const Compiled& compiled, const std::string& planner, PlanRequest request,
                          TaskMemory memory) {
  while (memory.threads > 1 && most_task_bytes(memory) < least_task_bytes) --memory.threads;
  request.memory.reset();  // of a site; the process has all of them
  std::optional<OutOfCorePlan> finer = plan_for_constants(compiled, planner, request, memory);
  constexpr double many_times = 4;  // as many calls cannot be better
  const double calls = finer ? many_times * calls_of(compiled.graph, finer->plan.plan) : HUGE_VAL;
  OutOfCorePlan best = plan_for_more_sites(compiled, planner, request, memory, calls);
  const bool fit = fits(largest_task(best.tasks), memory);
  if (finer && (!fit || bytes_touched(finer->tasks.graph) < bytes_touched(best.tasks.graph))) return std::move(*finer);
  return fit ? std::move(best) : made_finer(compiled, std::move(best.plan.plan), request, memory);
}

}  // namespace

OutOfCorePlan plan_out_of_core(const Compiled& compiled, const std::string& planner, const PlanRequest& request,
                               std::size_t threads, std::int64_t limit) {
  OutOfCorePlan best = plan_chunks(compiled, planner, request, {limit, threads});
  LargestTask largest = largest_task(best.tasks);
  const bool can_fit = fits(largest, {limit, best.threads});
  // Smaller chunks leave room for the bookkeeping; fewer threads need fewer of them.
  for (std::size_t fewer = best.threads; can_fit && fewer > 0; fewer /= 2) {
    if (fits_with_bookkeeping(largest, {limit, best.threads})) break;
    const std::int64_t left = std::max<std::int64_t>(limit - 2 * largest.bookkeeping, 1);
    OutOfCorePlan next = plan_chunks(compiled, planner, request, {left, fewer});
    const LargestTask next_largest = largest_task(next.tasks);
    if (next_largest.bookkeeping >= largest.bookkeeping && !fits(next_largest, {left, next.threads})) break;
    best = std::move(next);
    largest = next_largest;
  }
  check_tasks_fit(compiled, best.tasks, {limit, best.threads});
  return best;
}

}  // namespace einrel
