#include "run/choose_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <utility>
#include <variant>

#include "base/text.h"
#include "base/unnamed_file.h"
#include "einsum/graph/vertex_facts.h"
#include "exec/executors/starpu/session.h"
#include "exec/memory/alive.h"
#include "exec/tasks/read_late.h"
#include "ia/traffic.h"
#include "plan/planners/default_planner.h"
#include "run/bookkeeping.h"
#include "run/forecast_memory.h"
#include "run/memory.h"
#include "run/out_of_core.h"
#include "run/plan_memory.h"
#include "run/plans_on_ranks.h"
#include "run/recompute.h"

namespace einrel {
namespace {

/// What a request comes to for one program.
struct Asked {
  PlanRequest plan;
  std::string planner;
  std::vector<std::string> compared;
  std::optional<Plan> given;
  std::size_t threads = 1;
  std::optional<std::string> spill;
};

std::optional<std::int64_t> sites_of(const std::optional<Plan>& given) {
  return given ? std::optional(given->sites) : std::nullopt;
}

Asked asked_for(const RunRequest& request, std::optional<Plan> given, const Job& job) {
  PlanRequest plan = plan_request(request, job, sites_of(given));
  return {std::move(plan),  request.planner.value_or(default_planner),
          request.compared, std::move(given),
          request.threads,  request.spill};
}

/// Where nobody runs it, several sites are the ranks of a job.
Job ranks_explained(const RunRequest& request, std::optional<std::int64_t> decided) {
  Job job;
  job.ranks = static_cast<int>(plan_request(request, decided).sites);
  job.is_started = job.ranks > 1;
  return job;
}

/// A plan, and its tasks on ranks where they were made.
struct PlanAndTasks {
  ByPlan by_plan;
  std::optional<PlannedTasks> tasks;
};

/// Whether a plan is to fit into the memory of each site as it is: nothing is given beforehand, or goes to disk.
bool keeps_within_limit(const Asked& asked, const Job& job) { return job.is_started && !asked.spill; }

/// The plan that was given, or the planner's; beside it those that it is compared with.
PlansOnRanks plans_by_name(const Compiled& compiled, Asked& asked, TasksWanted wanted, const Job& job,
                           const SourceText& source) {
  std::vector<std::string> planners = asked.compared;
  if (asked.given) {
    asked.plan.sites = asked.given->sites;
  } else {
    planners.insert(planners.begin(), asked.planner);
  }
  PlanRequest request = asked.plan;
  if (!keeps_within_limit(asked, job)) request.memory.reset();
  return plans_side_by_side(compiled, asked.given, planners, request, wanted, source);
}

/// The first of them. Throws UserError with all reasons where there is none.
PlanAndTasks first_of(PlansOnRanks plans, const Compiled& compiled, const Asked& asked) {
  PlanComparison& all = plans.comparison;
  if (all.plans.empty()) {
    std::vector<std::string> reasons;
    for (const PlanRefusal& refusal : all.refused) reasons.push_back(refusal_text(compiled, refusal));
    throw UserError(fmt::format("{}", fmt::join(reasons, "\n")));
  }
  ByPlan chosen{asked.plan, std::move(all.plans.front()), asked.given.has_value(), {}, std::move(all.refused)};
  chosen.others.assign(std::make_move_iterator(all.plans.begin() + 1), std::make_move_iterator(all.plans.end()));
  return {std::move(chosen), std::move(plans.tasks)};
}

/// A plan of a program that has inputs by the names of the steps' states, where those lie.
Plan plan_beside(const Compiled& program, const StepsChosen& steps, const PlanRequest& request) {
  const Plan& plan_of_steps = std::get<ByPlan>(steps.chosen.how).plan.plan;
  PlanRequest asked = request;
  asked.sites = plan_of_steps.sites;
  asked.beside.clear();
  asked.batch.reset();
  Plan plan = plan_with(program, default_planner, asked).plan;
  const EinGraph& graph = steps.chosen.program(*steps.program).graph;
  std::map<std::string, std::size_t> states;
  for (const State& state : graph.steps.states) states[graph[state.now].name] = state.now.index;
  for (std::size_t v = 0; v < program.graph.vertices.size(); ++v) {
    const Vertex& vertex = program.graph.vertices[v];
    const auto state = states.find(vertex.name);
    if (is_input(vertex) && state != states.end()) plan.vertices[v] = plan_of_steps.vertices[state->second];
  }
  return plan;
}

/// StarPU cannot go on without a chunk that it could not write, and has no way to stop.
void end_process(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& reason) {
    std::fputs(fmt::format("einrel: a run had to end with its process: {}\n", reason.what()).c_str(), stderr);
  }
  constexpr int run_failed = 2;
  std::_Exit(run_failed);
}

std::string folder_of(const std::optional<std::string>& spill) { return spill.value_or(temporary_folder()); }

RunMemory memory_in_order(const std::optional<std::string>& spill) { return InOrder{folder_of(spill)}; }

RunMemory spilling(const PlannedTasks& tasks, std::int64_t limit, const std::optional<std::string>& spill,
                   const Job& job) {
  const auto on_failure = [job](std::exception_ptr error) {
    if (!job.on_failure) end_process(error);
    job.on_failure(std::move(error), job);
  };
  return Spilling{left_for_arrays(limit, bookkeeping_by_starpu(tasks)), {folder_of(spill), on_failure}};
}

/// The least limit within which all fits, one task after the other.
std::int64_t limit_in_order(const PlannedTasks& tasks, std::size_t threads) {
  const std::int64_t live = most_live_bytes(tasks.graph);
  const std::int64_t enough = least_that(0, [&](std::int64_t limit) { return chunk_memory(limit, threads) >= live; });
  return enough + most_of(bookkeeping_in_order(tasks));
}

/// Whether everything fits into a process on its own when one task runs after the other. Throws UserError where not
/// even what is kept of the tasks does.
bool runs_in_order(const PlannedTasks& tasks, std::int64_t limit, std::size_t threads) {
  const Bookkeeping bookkeeping = bookkeeping_in_order(tasks);
  if (left_for_arrays(limit, bookkeeping) > 0) return fits_in_order(tasks, limit, threads);
  throw UserError(fmt::format("--memory {} is too little: {}\n  help: give at least {}", bytes_text(limit),
                              bookkeeping_text(tasks, bookkeeping),  // nor does what has more tasks fit
                              bytes_text(rounded_up(limit_in_order(tasks, threads)))));
}

/// How many threads work on chunks that come and go. Throws UserError where a task takes more than there is.
std::size_t threads_that_spill(const PlannedTasks& tasks, const TaskMemory& memory, const UncutText& uncut) {
  const std::size_t threads = threads_that_fit(tasks, memory);
  check_tasks_fit(tasks, {memory.limit, threads}, uncut);
  return threads;
}

/// Throws UserError where a plan whose chunks stay in memory does not fit on a rank.
void check_rank_fits(const Compiled& compiled, const ByPlan& by_plan, const std::optional<PlannedTasks>& tasks,
                     const SourceText& source) {
  const std::optional<std::int64_t>& limit = by_plan.request.memory;
  if (!limit) return;
  const std::optional<TooLarge> too_large = why_too_large(compiled, by_plan.plan, tasks, *limit, source);
  if (too_large)
    throw UserError(refusal_text(compiled, {by_plan.plan.plan.planner, too_large->reason, too_large->held}));
}

Chosen for_rank(const Compiled& compiled, const Asked& asked, PlanAndTasks planned, const SourceText& source,
                const Job& job) {
  const std::optional<std::int64_t> limit = asked.plan.memory;
  const bool may_spill = asked.spill && limit;
  ByPlan by_plan = std::move(planned.by_plan);
  // A plan for one site has tasks that share a memory, as long as there is no other rank.
  const bool are_its_own = planned.tasks && (by_plan.plan.plan.sites > 1 || job.ranks == 1);
  PlannedTasks tasks = are_its_own ? *std::exchange(planned.tasks, std::nullopt)
                                   : tasks_in_memory(compiled, by_plan.plan.plan, limit.has_value(), job);
  raise_to_tasks(tasks, by_plan.plan.peak);
  if (!may_spill || by_plan.plan.peak.bytes <= chunk_memory(left_beside(tasks, *limit), asked.threads)) {
    check_rank_fits(compiled, by_plan, tasks, source);
    const std::int64_t most_bytes = by_plan.plan.peak.bytes;
    return {std::move(tasks), asked.threads, limit ? memory_in_order(asked.spill) : RunMemory{}, most_bytes,
            std::move(by_plan)};
  }
  const TaskMemory memory{*limit, asked.threads, true};
  if (by_plan.is_given) {
    tasks = tasks_within(compiled, by_plan.plan.plan, memory, job);
    check_tasks_fit(tasks, memory, uncut_labels(compiled));
  } else {
    OutOfCorePlan fine = finer_out_of_core(compiled, by_plan.plan, asked.plan, memory, job);
    by_plan.plan = std::move(fine.plan);
    tasks = std::move(fine.tasks);
  }
  raise_to_tasks(tasks, by_plan.plan.peak);
  RunMemory spills = spilling(tasks, *limit, asked.spill, job);
  const std::int64_t most_bytes = by_plan.plan.peak.bytes;
  return {std::move(tasks), asked.threads, std::move(spills), most_bytes, std::move(by_plan)};
}

/// The tasks of a plan that stays in memory, in the process that all of its sites share.
PlannedTasks tasks_in_process(const Compiled& compiled, PlanAndTasks& planned, bool read_late, const Job& job) {
  PlanReport& report = planned.by_plan.plan;
  if (report.plan.sites > 1) {
    planned.tasks.reset();  // those of ranks
    raise_to_tasks(compiled, {MakesTasks::of_few_chunks, read_late}, report);
    return tasks_in_memory(compiled, report.plan, read_late, job);
  }
  if (planned.tasks) return *std::exchange(planned.tasks, std::nullopt);
  PlannedTasks tasks = tasks_in_memory(compiled, report.plan, read_late, job);
  raise_to_tasks(tasks, report.peak);
  return tasks;
}

Chosen for_process(const Compiled& compiled, const Asked& asked, PlanAndTasks planned, const Job& job) {
  const std::optional<std::int64_t> limit = asked.plan.memory;
  PlannedTasks tasks = tasks_in_process(compiled, planned, limit.has_value(), job);
  ByPlan by_plan = std::move(planned.by_plan);
  if (!limit) {
    const std::int64_t most_bytes = most_bytes_in_process(tasks.graph, {asked.threads});
    return {std::move(tasks), asked.threads, Unlimited{}, most_bytes, std::move(by_plan)};
  }
  if (runs_in_order(tasks, *limit, asked.threads))
    return {std::move(tasks), asked.threads, memory_in_order(asked.spill), 0, std::move(by_plan)};
  const TaskMemory memory{*limit, std::min(asked.threads, most_session_threads())};
  std::size_t threads = memory.threads;
  if (by_plan.is_given) {
    tasks = tasks_within(compiled, by_plan.plan.plan, memory, job);
    threads = threads_that_spill(tasks, memory, uncut_labels(compiled));
  } else {
    const std::int64_t enough = limit_in_order(tasks, asked.threads);
    Traffic between = std::move(tasks.traffic);
    tasks = {};  // not beside those of finer plans
    OutOfCorePlan fine = plan_out_of_core({compiled, asked.planner, asked.plan, enough}, memory);
    tasks = std::move(fine.tasks);
    // Chunks of the finer plan's sites go to disk and back, but from none of the sites that were asked for to another.
    tasks.traffic = std::move(between);
    threads = fine.threads;
    by_plan.request.sites = fine.plan.plan.sites;
    fine.plan.costs = std::move(by_plan.plan.costs);
    fine.plan.least = std::move(by_plan.plan.least);
    fine.plan.costs.received.resize(static_cast<std::size_t>(by_plan.request.sites));
    fine.plan.is_in_parts = true;
    by_plan.plan = std::move(fine.plan);
  }
  RunMemory spills = spilling(tasks, *limit, asked.spill, job);
  return {std::move(tasks), threads, std::move(spills), any_bytes, std::move(by_plan)};
}

/// From here on the C library gives large blocks back when they are freed. It would keep what planning and running
/// free, in pieces, beside what they count.
void give_back_at_once() {
  constexpr int least_bytes = 1 << 16;
  mallopt(M_MMAP_THRESHOLD, least_bytes);
}

/// What the sites of a plan of relations hold at a time, in a job whose chunks are to stay in memory.
void check_relations_fit(const PlannedTasks& tasks, std::int64_t needed, std::int64_t limit,
                         const AlgebraFacts& facts) {
  const Bookkeeping bookkeeping = bookkeeping_by_starpu(tasks);
  const std::int64_t left = left_for_arrays(limit, bookkeeping);
  if (left > 0 && needed <= left) return;
  const auto [wanted, given] = bytes_texts(needed, limit);
  throw UserError(
      fmt::format("the plan by {} does not fit: a site holds {} at a time, and the limit is {}\n  beside it, {}\n"
                  "  help: give more, or more ranks, or let chunks go to disk with --spill FOLDER",
                  planner_of(facts), wanted, given, bookkeeping_text(tasks, bookkeeping)));
}

/// Chunks of relations that stay in memory or, where they may have to, come and go; sets how many threads compute.
RunMemory memory_of_relations(PlannedTasks& tasks, const AlgebraFacts& facts, std::int64_t limit,
                              const std::optional<std::string>& spill, const Job& job, std::size_t& threads) {
  const UncutText cut_by_program = [](std::size_t) {
    return std::string(
        "\n  a .tra program says itself how it is cut: cut its inputs into more parts; a .ein program is cut "
        "more finely for more sites");
  };
  read_late(tasks.graph, std::numeric_limits<std::int64_t>::max());
  if (!job.is_started) {
    if (runs_in_order(tasks, limit, threads)) return memory_in_order(spill);
    const TaskMemory memory{limit, std::min(threads, most_session_threads())};
    order_within(tasks.graph, memory);
    threads = threads_that_spill(tasks, memory, cut_by_program);
    return spilling(tasks, limit, spill, job);
  }
  const std::int64_t needed = most_live_bytes(tasks.graph);
  const std::int64_t left = left_for_arrays(limit, bookkeeping_by_starpu(tasks));
  if (!spill || left <= 0 || needed <= chunk_memory(left, threads)) {
    check_relations_fit(tasks, needed, limit, facts);
    return memory_in_order(spill);
  }
  const TaskMemory memory{limit, threads, true};
  order_within(tasks.graph, memory);
  check_tasks_fit(tasks, memory, cut_by_program);
  return spilling(tasks, limit, spill, job);
}

Chosen choose_relations(const AlgebraPlan& plan, std::optional<std::int64_t> limit, const RunRequest& request,
                        const Job& job) {
  if (limit) give_back_at_once();
  ByRelations by_relations{facts_of(plan), {}};
  if (request.explains && plan.ia.store.tuples() > most_chunks_looked_at)
    return {.tasks = {}, .threads = request.threads, .how = std::move(by_relations)};
  for (const IaId id : nodes_of(plan.ia.store, plan.ia.plan)) by_relations.bytes.push_back(bytes_of(plan.ia.store, id));
  Chosen chosen{tasks_of(plan, job), request.threads};
  if (limit)
    chosen.memory = memory_of_relations(chosen.tasks, by_relations.facts, *limit, request.spill, job, chosen.threads);
  chosen.most_bytes = chosen.tasks.graph.memory == SiteMemory::apart
                          ? most_live_bytes(chosen.tasks.graph)
                          : most_bytes_in_process(chosen.tasks.graph, chosen.resources());
  chosen.how = std::move(by_relations);
  return chosen;
}

bool wants_search(const RunRequest& request) { return request.planner == "ia-rules"; }

Chosen choose_relations(const Compiled& compiled, const RunRequest& request, const Job& job) {
  const PlanRequest asked = plan_request(request, job);
  Chosen chosen =
      choose_relations(plan_algebra(compiled, asked.sites, wants_search(request)), asked.memory, request, job);
  add_steps(compiled.graph, chosen.tasks);
  if (!request.explains && job.ranks > 1 && !chosen.tasks.states.empty())
    throw UserError(fmt::format("the planner '{}' does not keep states on ranks; use another one", *request.planner));
  return chosen;
}

/// With --spill the cheapest plan is run, from disk where it does not fit. Where it cannot be, one that fits as it is.
Chosen for_rank_or_kept(const Compiled& compiled, const Asked& asked, PlanAndTasks planned, const SourceText& source,
                        const Job& job) {
  if (!asked.spill || !asked.plan.memory || asked.given)
    return for_rank(compiled, asked, std::move(planned), source, job);
  try {
    return for_rank(compiled, asked, std::move(planned), source, job);
  } catch (const UserError&) {
    Asked kept = asked;
    kept.spill.reset();
    PlansOnRanks plans = plans_by_name(compiled, kept, {MakesTasks::always, true}, job, source);
    if (plans.comparison.plans.empty()) throw;
    return for_rank(compiled, kept, first_of(std::move(plans), compiled, kept), source, job);
  }
}

MakesTasks tasks_wanted(const RunRequest& request, const Asked& asked, const Job& job) {
  if (request.explains) return MakesTasks::of_few_chunks;
  return keeps_within_limit(asked, job) ? MakesTasks::always : MakesTasks::never;
}

/// `steps`: where the plan has their states where theirs has them.
Chosen chosen_for(const Compiled& compiled, const RunRequest& request, const SourceText& source, const Job& own_job,
                  const StepsChosen* steps) {
  std::optional<Plan> given = given_plan(request, compiled);
  const Job job = request.explains ? ranks_explained(request, sites_of(given)) : own_job;
  if (!asks_for_plan(request, job)) return {whole_tasks(compiled), request.threads};
  if (request.planner && plans_relations(*request.planner)) return choose_relations(compiled, request, job);
  Asked asked = asked_for(request, std::move(given), job);
  check_ranks(asked.given ? asked.given->sites : asked.plan.sites, job);
  std::optional<Compiled> planned =
      planned_with_inputs(compiled, request, asked.plan.sites, asked.plan.memory && (!job.is_started || asked.spill));
  const auto program = [&]() -> const Compiled& { return planned ? *planned : compiled; };
  // Else what is looked for below tells whether anything has to be computed again.
  const bool is_told = keeps_within_limit(asked, job) && asked.planner == default_planner && steps == nullptr;
  if (!asked.given && !is_told) {
    std::optional<Compiled> again = recomputed_for(program(), asked.plan, asked.threads, job);
    if (again) planned = std::move(again);
  }
  if (asked.given) check_placements(program().graph, *asked.given);
  if (steps != nullptr) asked.given = plan_beside(program(), *steps, asked.plan);
  if (asked.plan.memory) give_back_at_once();
  const TasksWanted tasks{tasks_wanted(request, asked, job), asked.plan.memory.has_value()};
  PlansOnRanks plans = plans_by_name(program(), asked, tasks, job, source);
  if (plans.comparison.plans.empty() && is_told) {
    std::optional<Compiled> again = recomputed_on_sites(program(), asked.plan);
    if (again) {
      planned = std::move(again);
      plans = plans_by_name(program(), asked, tasks, job, source);
    }
  }
  PlanAndTasks by_name = first_of(std::move(plans), program(), asked);
  if (request.explains && !has_few_chunks(by_name.by_plan.plan.plan)) {
    check_rank_fits(program(), by_name.by_plan, std::nullopt, source);
    return {.tasks = {}, .threads = asked.threads, .how = std::move(by_name.by_plan), .planned = std::move(planned)};
  }
  const double planning = by_name.by_plan.plan.seconds;
  const auto start = std::chrono::steady_clock::now();
  Chosen chosen = job.is_started ? for_rank_or_kept(program(), asked, std::move(by_name), source, job)
                                 : for_process(program(), asked, std::move(by_name), job);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ByPlan& made = std::get<ByPlan>(chosen.how);
  if (!made.is_given && !request.explains) made.plan.seconds = planning + seconds;  // and cutting it, and its tasks
  chosen.planned = std::move(planned);
  return chosen;
}

}  // namespace

bool fits_in_order(const PlannedTasks& tasks, std::int64_t limit, std::size_t threads) {
  const std::int64_t left = left_for_arrays(limit, bookkeeping_in_order(tasks));
  return left > 0 && most_live_bytes(tasks.graph) <= chunk_memory(left, threads);
}

Chosen choose(const Compiled& compiled, const RunRequest& request, const SourceText& source, const Job& job) {
  return chosen_for(compiled, request, source, job, nullptr);
}

Chosen choose_beside(const StepsChosen& steps, const Compiled& compiled, const SourceText& source, const Job& job) {
  const auto* const by_plan = std::get_if<ByPlan>(&steps.chosen.how);
  const bool is_on_sites = by_plan != nullptr && (job.ranks > 1 || by_plan->plan.plan.sites > 1);
  const bool is_within_limit = by_plan != nullptr && job.ranks == 1 && is_limited(steps.chosen.memory);
  if (!is_on_sites && !is_within_limit) return choose(compiled, {.threads = steps.request.threads}, source, {});
  RunRequest asked = steps.request;
  asked.planner = default_planner;
  if (std::exchange(asked.given, std::nullopt)) asked.sites = by_plan->plan.plan.sites;
  asked.steps = 1;  // by itself
  asked.fed.clear();
  asked.placements.clear();
  asked.batch.reset();  // a label that the other program may not have, or that has another extent there
  return chosen_for(compiled, asked, source, job, is_within_limit ? nullptr : &steps);
}

ChosenFigures figures_of(const Chosen& chosen) {
  const auto* const by_plan = std::get_if<ByPlan>(&chosen.how);
  if (by_plan == nullptr) return {.planner = std::nullopt, .peak = forecast_memory(chosen.tasks).bytes};
  const PlanReport& plan = by_plan->plan;
  return {plan.plan.planner, plan.plan.sites, plan.seconds, plan.peak.bytes};
}

Chosen choose(const AnyProgram& program, const RunRequest& request, const SourceText& source, const Job& own_job) {
  if (const auto* const compiled = std::get_if<Compiled>(&program)) return choose(*compiled, request, source, own_job);
  const auto& parsed = std::get<ParsedTra>(program);
  const Job job = request.explains ? ranks_explained(request, std::nullopt) : own_job;
  const PlanRequest asked = plan_request(request, job);
  const AlgebraPlan plan = plan_algebra(parsed.program, asked.sites, parsed.layouts, wants_search(request));
  if (request.explains) return {.tasks = {}, .threads = request.threads, .how = ByRelations{facts_of(plan), {}}};
  return choose_relations(plan, asked.memory, request, job);
}

void check_room(const Chosen& chosen, const Job& job, const LayoutBindings& layouts,
                const std::function<bool(const StoredRelation&)>& in_place, std::string_view limit) {
  if (job.is_started || std::holds_alternative<Spilling>(chosen.memory)) return;
  const SitePeak peak = forecast_memory(chosen.tasks, layouts, in_place);
  check_available(peak.bytes, fmt::format("computing '{}'", chosen.tasks.names[peak.vertex]), limit);
}

}  // namespace einrel
