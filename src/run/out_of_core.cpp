#include "run/out_of_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "exec/executors/starpu/session.h"
#include "exec/tasks/cut_parts_out.h"
#include "exec/tasks/read_late.h"
#include "plan/planners/default_planner.h"
#include "plan/planners/eindecomp.h"
#include "plan/refine/finer_parts.h"
#include "run/bookkeeping.h"

namespace einrel {
namespace {

/// Chunks of more sites than this are too many to plan for while the user waits.
constexpr std::int64_t most_virtual_sites = 4096;

/// Nor is comparing more pairs of ways to cut neighbours: a table of as many numbers would not fit into what the
/// program takes beside its chunks.
constexpr double most_pairs = 1e6;

/// Nor are more kernel calls than these worth waiting for.
constexpr double most_calls = 100'000;
/// Nor more parts that are copied from one chunk to another.
constexpr double most_copies = 100'000;
/// Smaller chunks gain less by another thread than it takes StarPU to handle them, on any processor of today.
constexpr std::int64_t least_task_bytes = std::int64_t{1} << 20;

/// The most that one task has in memory, and which; and what the program takes for all of them.
struct LargestTask {
  std::int64_t bytes = 0;
  IaId node;
  Bookkeeping bookkeeping;
};

LargestTask largest_task(const PlannedTasks& tasks) {
  LargestTask largest{0, {}, bookkeeping_by_starpu(tasks)};
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
  memory.limit = left_for_arrays(memory.limit, largest.bookkeeping);
  return memory.limit > 0 && fits(largest, memory);
}

std::size_t threads_that_fit(const LargestTask& largest, TaskMemory memory) {
  if (memory.is_in_job) return memory.threads;
  while (memory.threads > 1 && !fits_with_bookkeeping(largest, memory)) --memory.threads;
  return memory.threads;
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
  const std::vector<std::string> reasons = stays_whole(vertex, graph);
  std::string text;
  for (std::size_t l = 0; l < reasons.size(); ++l) {
    if (reasons[l].empty() || extents[l].value() < 2) continue;
    text += fmt::format("\n  {} of {} cannot be cut: {}", label_title(vertex, l), vertex.name, reasons[l]);
  }
  return text;
}

/// The same of a vertex, or, where all of its labels can be cut, of those that read its result.
std::string uncut_here_or_behind(const EinGraph& graph, std::size_t v) {
  std::string text = uncut_text(graph, v);
  if (!text.empty()) return text;
  for (std::size_t reader = v + 1; reader < graph.vertices.size(); ++reader) {
    const std::vector<VertexId>& inputs = graph.vertices[reader].inputs;
    if (std::find(inputs.begin(), inputs.end(), VertexId{v}) != inputs.end()) text += uncut_text(graph, reader);
  }
  return text;
}

/// The least limit that such a task fits into, rounded up.
std::int64_t least_limit(const LargestTask& largest, const TaskMemory& memory) {
  return rounded_up(least_that(memory.limit, [&](std::int64_t limit) {
    return fits_with_bookkeeping(largest, {limit, memory.threads, memory.is_in_job});
  }));
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
    if (!is_needed_as_it_is) is_for_readers[task.makes.front().index] = true;
    if (!is_needed_as_it_is) continue;
    for (const IaId node : nodes_of(tasks.graph, task)) {
      if (const auto vertex = tasks.vertices[node.index]) found.insert(*vertex);
    }
  }
  return found;
}

/// Of these vertices, what they read in parts as small as theirs, or, where it is, parts that take half as much.
/// Whether anything is left to ask for: not where nothing helps any of those with the largest task.
bool ask_for_smaller(const EinGraph& graph, const std::set<std::size_t>& vertices, const std::set<std::size_t>& largest,
                     std::vector<std::int64_t>& most_bytes, Plan& plan, InputParts inputs) {
  bool helps_largest = false;
  for (const std::size_t v : vertices) {
    const bool has_cut = cut_operands(graph, plan, v, inputs);
    if (!has_cut) most_bytes[v] /= 2;
    const bool helps = has_cut || (can_be_finer(graph, plan, v) && most_bytes[v] > 0);
    helps_largest = helps_largest || (helps && largest.count(v) != 0);
  }
  return helps_largest;
}

/// A plan cut so finely that its tasks fit, or as finely as it can be, and what is known of its tasks. Not these
/// themselves: there are many, and several such plans are looked at.
struct FinePlan {
  Plan plan;
  LargestTask largest;
  double touched = 0;  ///< bytes
};

FinePlan looked_at(Plan plan, const PlannedTasks& tasks) {
  return {std::move(plan), largest_task(tasks), bytes_touched(tasks.graph)};
}

FinePlan made_finer(const Compiled& compiled, Plan plan, const TaskMemory& memory, const Job& job) {
  const std::int64_t most = most_task_bytes(memory);
  const InputParts inputs = job.ranks > 1 ? InputParts::of_chunks : InputParts::any_box;
  std::vector<std::int64_t> most_bytes(compiled.graph.vertices.size(), most);
  std::optional<FinePlan> best;
  for (Plan finer = std::move(plan);;) {
    const PlannedTasks tasks = tasks_within(compiled, finer, memory, job);
    FinePlan found = looked_at(finer, tasks);
    const std::set<std::size_t> too_large = vertices_over(tasks, most);
    const std::set<std::size_t> of_largest = vertices_over(tasks, found.largest.bytes - 1);
    const bool is_first = !best;
    if (is_first || found.largest.bytes < best->largest.bytes) best = std::move(found);
    if (too_large.empty()) break;
    if (!is_first && !ask_for_smaller(compiled.graph, too_large, of_largest, most_bytes, finer, inputs)) break;
    make_parts_finer(compiled.graph, finer, most_bytes, inputs);
    if (calls_of(compiled.graph, finer) > most_calls) break;
    if (copies_of(compiled.graph, finer, inputs) > most_copies) break;
  }
  return std::move(*best);
}

}  // namespace

std::int64_t rounded_up(std::int64_t bytes) {
  std::int64_t unit = 1;
  while (bytes / unit >= 1000) unit *= 10;
  return (bytes + unit - 1) / unit * unit;
}

std::int64_t least_that(std::int64_t too_little, const std::function<bool(std::int64_t)>& fits) {
  std::int64_t enough = std::max<std::int64_t>(too_little, 1);
  while (!fits(enough)) too_little = std::exchange(enough, 2 * enough);
  while (enough - too_little > 1) {
    const std::int64_t middle = too_little + (enough - too_little) / 2;
    (fits(middle) ? enough : too_little) = middle;
  }
  return enough;
}

PlannedTasks tasks_within(const Compiled& compiled, const Plan& plan, const TaskMemory& memory, const Job& job) {
  PlannedTasks tasks = tasks_of(compiled, plan, job, most_task_bytes(memory));
  order_within(tasks.graph, memory);
  return tasks;
}

void order_within(TaskGraph& tasks, const TaskMemory& memory) {
  cut_parts_out(tasks, most_task_bytes(memory));
  read_late(tasks, chunk_memory(memory.limit, memory.threads));
}

std::string bookkeeping_text(const PlannedTasks& tasks, const Bookkeeping& bookkeeping) {
  return fmt::format("the bookkeeping of {} takes {}", counted(tasks.graph.tasks.size(), "task"),
                     bytes_text(most_of(bookkeeping)));
}

std::int64_t most_task_bytes(const TaskMemory& memory) {
  const std::int64_t shares = memory.is_in_job ? 4 : 2 * static_cast<std::int64_t>(memory.threads);
  return chunk_memory(memory.limit, memory.threads) / shares;
}

UncutText uncut_labels(const Compiled& compiled) {
  return [&graph = compiled.graph](std::size_t vertex) { return uncut_here_or_behind(graph, vertex); };
}

UserError too_little(const PlannedTasks& tasks, const TaskMemory& memory, std::int64_t enough, const UncutText& uncut) {
  const LargestTask largest = largest_task(tasks);
  const std::string help = fmt::format("\n  help: give at least {}{}", bytes_text(rounded_up(enough)),
                                       memory.is_in_job      ? ", or more ranks"
                                       : memory.threads == 1 ? ""
                                                             : ", or fewer --threads");
  const std::string bookkeeping = bookkeeping_text(tasks, largest.bookkeeping);
  if (fits(largest, memory) || left_for_arrays(memory.limit, largest.bookkeeping) == 0)
    return UserError(fmt::format("--memory {} is too little: {}{}", bytes_text(memory.limit), bookkeeping, help));
  const std::optional<std::size_t> vertex = tasks.vertices[largest.node.index];
  return UserError(fmt::format(
      "--memory {} is too little: computing a part of '{}' takes {}{}, with what it reads, when cut for {}{}{}{}",
      bytes_text(memory.limit), vertex ? tasks.names[*vertex] : "the program", bytes_text(largest.bytes),
      memory.threads == 1 || memory.is_in_job ? "" : fmt::format(" on each of {}", counted(memory.threads, "thread")),
      counted(static_cast<std::size_t>(tasks.graph.sites), "site"), vertex ? uncut(*vertex) : "",
      most_of(largest.bookkeeping) == 0 ? "" : "\n  " + bookkeeping, help));
}

void check_tasks_fit(const PlannedTasks& tasks, const TaskMemory& memory, const UncutText& uncut) {
  const LargestTask largest = largest_task(tasks);
  if (fits_with_bookkeeping(largest, memory)) return;
  throw too_little(tasks, memory, least_limit(largest, memory), uncut);
}

std::size_t threads_that_fit(const PlannedTasks& tasks, const TaskMemory& memory) {
  return threads_that_fit(largest_task(tasks), memory);
}

namespace {

/// As many sites as it takes until the parts of a plan fit, or more do not help, or there are more calls than `most`.
FinePlan plan_for_more_sites(const OutOfCoreRequest& asked, const TaskMemory& memory, double most) {
  constexpr int most_in_vain = 2;
  const EinGraph& graph = asked.compiled.graph;
  PlanRequest request = asked.request;
  request.is_for_parts = true;
  std::optional<FinePlan> best;
  for (int in_vain = 0; in_vain < most_in_vain && request.sites <= most_virtual_sites; request.sites *= 2) {
    if (best && asked.planner == default_planner && pairs_compared(graph, request.sites) > most_pairs) break;
    std::variant<PlanReport, PlanRefusal> planned = try_plan(asked.compiled, asked.planner, request);
    const auto* const refusal = std::get_if<PlanRefusal>(&planned);
    if (refusal != nullptr && best) break;  // a product of schemes is for so many sites
    if (refusal != nullptr) throw UserError(refusal_text(asked.compiled, *refusal));
    Plan plan = std::get<PlanReport>(std::move(planned)).plan;
    if (best && calls_of(graph, plan) > most) break;
    const PlannedTasks tasks = tasks_within(asked.compiled, plan, memory, {});
    FinePlan found = looked_at(std::move(plan), tasks);
    const bool gains = !best || found.largest.bytes < best->largest.bytes;
    if (gains) best = std::move(found);
    if (fits(best->largest, memory)) break;
    in_vain = gains ? 0 : in_vain + 1;
  }
  return std::move(*best);
}

/// Of a program that reads its results at constants: parts of a plan for no more sites, if they fit.
std::optional<FinePlan> plan_for_constants(const OutOfCoreRequest& asked, const TaskMemory& memory) {
  if (!reads_results_at_constants(asked.compiled.graph)) return std::nullopt;
  Plan plan = plan_with(asked.compiled, asked.planner, asked.request).plan;
  FinePlan finer = made_finer(asked.compiled, std::move(plan), memory, {});
  return fits(finer.largest, memory) ? std::optional(std::move(finer)) : std::nullopt;
}

/// Whatever the program takes beside chunks.
FinePlan plan_chunks(const OutOfCoreRequest& asked, const TaskMemory& memory) {
  std::optional<FinePlan> finer = plan_for_constants(asked, memory);
  constexpr double many_times = 4;  // as many calls cannot be better
  const double calls = finer ? many_times * calls_of(asked.compiled.graph, finer->plan) : HUGE_VAL;
  FinePlan best = plan_for_more_sites(asked, memory, calls);
  const bool fit = fits(best.largest, memory);
  if (finer && (!fit || finer->touched < best.touched)) return std::move(*finer);
  return fit ? std::move(best) : made_finer(asked.compiled, std::move(best.plan), memory, {});
}

/// Makes a plan for such memory.
using PlanFor = std::function<FinePlan(const TaskMemory&)>;

/// A plan, and the memory that its parts were made for.
struct CutPlan {
  FinePlan fine;
  TaskMemory memory;
  std::size_t threads = 1;  ///< that can work on it within the whole limit
};

bool fits_within(const CutPlan& cut, std::int64_t limit) {
  return fits_with_bookkeeping(cut.fine.largest, {limit, cut.threads, cut.memory.is_in_job});
}

/// The least limit that the tasks of a plan fit into, on as few threads as that takes.
std::int64_t least_limit(const CutPlan& cut, std::int64_t too_little) {
  const std::size_t threads = cut.memory.is_in_job ? cut.memory.threads : 1;
  return least_limit(cut.fine.largest, {too_little, threads, cut.memory.is_in_job});
}

CutPlan cut_for(const PlanFor& plan_for, TaskMemory left, std::int64_t limit) {
  while (!left.is_in_job && left.threads > 1 && most_task_bytes(left) < least_task_bytes) --left.threads;
  FinePlan fine = plan_for(left);
  const std::size_t working = threads_that_fit(fine.largest, {limit, left.threads, left.is_in_job});
  return {std::move(fine), left, working};
}

/// A plan that fits into a limit, or what comes nearest to that. Smaller chunks leave room for the bookkeeping; so do
/// fewer threads, which need fewer of them.
CutPlan cut_within(const PlanFor& plan_for, const TaskMemory& memory) {
  constexpr int most_attempts = 6;
  CutPlan best = cut_for(plan_for, memory, memory.limit);
  TaskMemory less = best.memory;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const LargestTask& largest = best.fine.largest;
    if (fits_within(best, memory.limit)) break;
    if (!fits(largest, {memory.limit, best.threads, memory.is_in_job})) break;
    less.limit = std::max<std::int64_t>(memory.limit - 2 * largest.bookkeeping.running, 1);
    CutPlan next = cut_for(plan_for, less, memory.limit);
    const bool is_nearer = least_limit(next, memory.limit) < least_limit(best, memory.limit);
    if (is_nearer || fits_within(next, memory.limit)) best = std::move(next);
    if (!less.is_in_job) less.threads = std::max<std::size_t>(less.threads / 2, 1);
  }
  return best;
}

/// A limit into which a plan fits: looked for where one nearly did, as another limit has other plans. From `in_order`
/// on nothing has to be cut.
std::int64_t enough_for(const PlanFor& plan_for, const CutPlan& refused, TaskMemory memory, std::int64_t in_order) {
  constexpr int most_looked_at = 6;
  constexpr double near = 1.1;
  const auto fits_into = [&](std::int64_t limit, std::int64_t& needed) {
    const CutPlan cut = cut_within(plan_for, {limit, memory.threads, memory.is_in_job});
    const bool fit = fits_within(cut, limit);
    needed = fit ? limit : least_limit(cut, limit);
    return fit;
  };
  std::int64_t needed = 0;
  std::int64_t enough = least_limit(refused, memory.limit);
  for (int i = 0; i < most_looked_at && enough < in_order && !fits_into(enough, needed); ++i) {
    memory.limit = enough;
    enough = std::max(needed, rounded_up(enough + enough / 4));
  }
  enough = std::min(enough, rounded_up(in_order));
  for (int i = 0; i < most_looked_at; ++i) {
    const double middle = std::sqrt(static_cast<double>(memory.limit) * static_cast<double>(enough));
    const std::int64_t tried = rounded_up(static_cast<std::int64_t>(middle));
    if (tried >= enough || static_cast<double>(enough) <= near * static_cast<double>(memory.limit)) break;
    (fits_into(tried, needed) ? enough : memory.limit) = tried;
  }
  return enough;
}

/// The tasks of a plan that fits. Throws UserError where none does.
OutOfCorePlan planned_within(const OutOfCoreRequest& asked, const PlanFor& plan_for, const TaskMemory& memory,
                             const Job& job) {
  CutPlan cut = cut_within(plan_for, memory);
  PlannedTasks tasks = tasks_within(asked.compiled, cut.fine.plan, cut.memory, job);
  if (!fits_within(cut, memory.limit)) {
    throw too_little(tasks, {memory.limit, cut.threads, memory.is_in_job},
                     enough_for(plan_for, cut, memory, asked.in_order), uncut_labels(asked.compiled));
  }
  PlanRequest request = asked.request;
  request.sites = cut.fine.plan.sites;
  return {report_of(asked.compiled, std::move(cut.fine.plan), request), std::move(tasks), cut.threads};
}

}  // namespace

OutOfCorePlan plan_out_of_core(OutOfCoreRequest asked, const TaskMemory& memory) {
  asked.request.memory.reset();  // of a site; the process has all of them
  return planned_within(asked, [&](const TaskMemory& within) { return plan_chunks(asked, within); }, memory, {});
}

OutOfCorePlan finer_out_of_core(const Compiled& compiled, const PlanReport& plan, const PlanRequest& request,
                                const TaskMemory& memory, const Job& job) {
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max() / 2;  // no limit is known
  return planned_within(
      {compiled, plan.plan.planner, request, any},
      [&](const TaskMemory& within) { return made_finer(compiled, plan.plan, within, job); }, memory, job);
}

}  // namespace einrel
