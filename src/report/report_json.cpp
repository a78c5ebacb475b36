#include "report/report_json.h"

#include <nlohmann/json.hpp>

#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "report/cuts_json.h"
#include "report/plan_facts.h"
#include "report/program_json.h"
#include "run/plan_file.h"
#include "tra/from_einsum.h"

namespace einrel {
namespace {

using nlohmann::ordered_json;

/// Which kernel tasks call, for chunks of which extents, and what became of the other kernels.
ordered_json kernel_json(const KernelCall& kernel) {
  ordered_json extents = ordered_json::object();
  for (const auto& [label, extent] : kernel.extents) extents[label] = extent;
  ordered_json considered = ordered_json::array();
  for (const Considered& other : kernel.considered) {
    ordered_json line{{"kernel", std::string(other.kernel)}};
    if (const auto* const seconds = std::get_if<double>(&other.outcome)) line["seconds"] = *seconds;
    if (const auto* const reason = std::get_if<std::string>(&other.outcome)) line["refused"] = *reason;
    considered.push_back(std::move(line));
  }
  return {{"name", kernel.kernel},
          {"path", kernel.path},
          {"extents", std::move(extents)},
          {"times", kernel.times},
          {"seconds", kernel.seconds},
          {"workspace", {{"per_thread", kernel.own_bytes}, {"shared", kernel.shared_bytes}}},
          {"together_with", kernel.together},
          {"softmax_row_by_row", kernel.row_by_row},
          {"considered", std::move(considered)}};
}

/// Adds that of the tasks which take longest together, and those of the others.
void add_kernels(ordered_json& json, const std::vector<KernelCall>& calls) {
  json["kernel"] = calls.empty() ? ordered_json() : kernel_json(calls.front());
  json["other_kernels"] = ordered_json::array();
  for (std::size_t c = 1; c < calls.size(); ++c) json["other_kernels"].push_back(kernel_json(calls[c]));
}

/// A file name need not be UTF-8, which JSON must be. In ASCII alone, whatever a name holds is harmless to a terminal.
std::string text_of(const ordered_json& json) {
  return json.dump(2, ' ', true, ordered_json::error_handler_t::replace);
}

/// What both algebras and a search say of a program; `calls` of operations, if there are any.
void add_algebra(ordered_json& json, const AlgebraFacts& facts, const std::vector<std::vector<KernelCall>>& calls) {
  json["tra"] = ordered_json::array();
  for (const OperationLine& line : facts.tra) json["tra"].push_back({{"text", line.text}, {"type", line.note}});
  json["ia"] = ordered_json::array();
  for (const OperationLine& line : facts.found().operations)
    json["ia"].push_back({{"text", line.text}, {"placement", line.note}, {"floats", line.floats}});
  for (std::size_t i = 0; i < calls.size(); ++i) add_kernels(json["ia"][i], calls[i]);
  json["derivation"] = ordered_json::array();
  if (!facts.derivation) return;
  for (const DerivationLine& line : facts.derivation->steps) {
    json["derivation"].push_back({{"rule", line.rule},
                                  {"equation", line.equation},
                                  {"conditions", line.conditions},
                                  {"definitions", line.definitions},
                                  {"from", line.from},
                                  {"to", line.to},
                                  {"floats", line.floats}});
  }
}

/// Of several steps those of the first, and which of these no other has.
ordered_json costs_json(const PlanCosts& costs) {
  ordered_json json{
      {"bound", costs.bound}, {"floats", costs.floats}, {"bytes", costs.bytes}, {"seconds", costs.seconds}};
  if (costs.steps == 1) return json;
  const OnceCosts& once = costs.once;
  json["steps"] = costs.steps;
  json["once"] = {{"floats", once.floats}, {"bytes", once.bytes}, {"seconds", once.seconds}};
  json["each_step"] = {{"floats", costs.floats - once.floats},
                       {"bytes", costs.bytes_of_later_steps()},
                       {"seconds", costs.seconds - once.seconds}};
  return json;
}

/// The peak of the site that holds most. Tensors: largest first.
ordered_json peak_json(const EinGraph& graph, const SitePeak& peak) {
  ordered_json tensors = ordered_json::array();
  for (const HeldTensor& held : peak.tensors) {
    tensors.push_back(
        {{"name", graph.vertices[held.vertex].name}, {"as", std::string(name_of(held.as))}, {"bytes", held.bytes}});
  }
  return {{"predicted", peak.bytes}, {"measured", nullptr},
          {"site", peak.site},       {"vertex", graph.vertices[peak.vertex].name},
          {"by_site", peak.by_site}, {"tensors", std::move(tensors)}};
}

/// What of a vertex is cut across each link: which label, among how many groups.
ordered_json link_cuts_json(const std::vector<LinkCut>& cuts) {
  ordered_json list = ordered_json::array();
  for (const LinkCut& cut : cuts) {
    ordered_json groups = ordered_json::object();
    for (const LabelSites& label : cut.labels) groups[label.label] = label.sites;
    list.push_back({{"link", cut.link}, {"groups", std::move(groups)}, {"copies", cut.copies}});
  }
  return list;
}

/// Bytes that cross each link, the outermost first.
ordered_json links_json(const Machine& machine, const PlanCosts& costs) {
  ordered_json list = ordered_json::array();
  for (std::size_t l = 0; l < machine.links.size(); ++l)
    list.push_back({{"name", machine.links[l].name}, {"sites", machine.links[l].sites}, {"bytes", costs.crossing[l]}});
  return list;
}

/// How a plan computes a vertex. Per label or, of an input, per dimension: parts, sites and the step in their numbers.
ordered_json planned_json(const EinGraph& graph, std::size_t v, const PlanReport& report, const PlanRequest& request,
                          const std::optional<RunnerUpFacts>& other) {
  const Vertex& vertex = graph.vertices[v];
  const VertexPlan& plan = report.plan.vertices[v];
  const VertexCost& cost = report.costs.vertices[v];
  const std::vector<std::string> names = label_names(vertex);
  ordered_json parts = ordered_json::object();
  ordered_json sites = ordered_json::object();
  ordered_json strides = ordered_json::object();
  for (std::size_t l = 0; l < names.size(); ++l) {
    parts[names[l]] = plan.parts[l];
    if (plan.grid[l] == 1) continue;
    sites[names[l]] = plan.grid[l];
    strides[names[l]] = plan.strides[l];
  }
  ordered_json json{{"name", vertex.name},
                    {"parts", std::move(parts)},
                    {"sites", std::move(sites)},
                    {"strides", std::move(strides)},
                    {"bytes", cost.bytes()},
                    {"operand_bytes", cost.operand_bytes},
                    {"reduced_bytes", cost.reduced_bytes},
                    {"least_bytes", report.least[v] ? ordered_json(*report.least[v]) : ordered_json()},
                    {"seconds", cost.seconds}};
  if (is_state(graph, v)) json["feedback_bytes"] = cost.feedback_bytes;
  if (given_plan(vertex)) json["placed"] = true;
  if (plan.scatter) json["scatter"] = names[*plan.scatter];
  if (plan.all_reduced) json["all_reduced"] = true;
  for (const SiteCopies& copies : plan.copies)
    json["copies"].push_back({{"count", copies.count}, {"stride", copies.stride}});
  if (!request.machine.links.empty()) json["links"] = link_cuts_json(link_cuts(vertex, plan, request));
  if (is_input(vertex)) return json;
  for (const WindowFacts& read : windows_of(graph, v, plan)) {
    json["windows"].push_back({{"operand", read.operand},
                               {"dimension", read.dimension},
                               {"label", read.label},
                               {"coefficient", read.window.coefficient},
                               {"low", read.window.low},
                               {"high", read.window.high}});
  }
  json["peak_memory"] = {{"predicted", report.peak.by_vertex[v]}, {"measured", nullptr}};
  json["runner_up"] = other ? runner_up_json(*other) : ordered_json();
  json["not_cut"] = whole_labels_json(whole_labels(graph, v));
  return json;
}

/// The labels that each dimension of a tensor is made of, as a vertex reads or writes it.
ordered_json dimensions_json(const Vertex& vertex, const std::vector<std::vector<std::size_t>>& dimensions) {
  const std::vector<std::string> names = label_names(vertex);
  ordered_json json = ordered_json::array();
  for (const std::vector<std::size_t>& labels : dimensions) {
    ordered_json dimension = ordered_json::array();
    for (const std::size_t label : labels) dimension.push_back(names[label]);
    json.push_back(std::move(dimension));
  }
  return json;
}

/// Which labels cut which dimensions of the result and of each operand.
ordered_json read_and_written_json(const Vertex& vertex) {
  ordered_json operands = ordered_json::array();
  for (std::size_t o = 0; o < vertex.inputs.size(); ++o)
    operands.push_back(dimensions_json(vertex, operand_groups(vertex, o)));
  return {{"result_labels", dimensions_json(vertex, result_groups(vertex))}, {"operand_labels", std::move(operands)}};
}

/// NaN and infinities become null: JSON has neither.
ordered_json summary_json(DType dtype, const Shape& shape, const Summary& summary) {
  ordered_json json = ordered_json::object();
  if (shape.empty()) {
    const ordered_json value = ordered_json::parse(scalar_text(dtype, summary), nullptr, false);
    json["value"] = value.is_discarded() ? nullptr : value;
  }
  json.update({{"min", summary.min}, {"max", summary.max}, {"mean", summary.mean}, {"sum", summary.sum}});
  return json;
}

/// What a run by a plan took.
ordered_json measured_json(const PlanRunReport& run, double plan_seconds) {
  ordered_json json{{"seconds", run.seconds},
                    {"seconds_of_runs", run.runs},
                    {"plan_seconds", plan_seconds},
                    {"bytes_moved", run.is_counted ? run.moved() : 0},
                    {"bytes_moved_per_site", run.is_counted ? ordered_json(run.received) : ordered_json::array()},
                    {"bytes_spilled", run.spilled},
                    {"bytes_read_back", run.read_back},
                    {"peak_memory", run.most_live()},
                    {"peak_memory_per_rank", run.peak_bytes},
                    {"file_pages_per_rank", run.file_bytes},
                    {"tasks", run.tasks}};
  if (run.is_counted && run.moved_once() > 0) json["bytes_moved_once"] = run.moved_once();
  return json;
}

/// `outputs` are told in the order of the graph.
void add_summaries(ordered_json& outputs, const EinGraph& graph, const std::map<std::string, Summary>& summaries) {
  auto output = outputs.begin();
  for (const VertexId id : program_outputs(graph)) {
    const Vertex& vertex = graph[id];
    const auto found = summaries.find(vertex.name);
    if (found != summaries.end()) output->update(summary_json(vertex.dtype, vertex.bound, found->second));
    ++output;
  }
}

ordered_json tilings_json(const EinGraph& graph, const TilingFacts& facts, const PlanReport& report) {
  ordered_json json;
  for (const TilingCut& cut : report.plan.cuts->cuts)
    json["cuts"].push_back({{"groups", cut.groups}, {"elements_moved", cut.moved}});
  json["elements_moved"] = report.plan.cuts->moved();
  if (report.verified) {
    const std::optional<double>& least = report.verified->least_moved;
    json["least_elements_moved"] = least ? ordered_json(*least) : ordered_json(nullptr);
  }
  if (facts.server) {
    const std::int64_t sites = report.plan.sites;
    json["parameter_server"] = {{"parameters", facts.server->parameters},
                                {"activations", facts.server->activations},
                                {"data", facts.server->moved(sites, 1)},
                                {"model", facts.server->moved(1, sites)}};
    if (facts.groups) {
      const std::int64_t devices = sites / *facts.groups;
      json["parameter_server"]["hybrid"] = {{"groups", *facts.groups},
                                            {"bytes", facts.server->moved(*facts.groups, devices)}};
    }
  }
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) json["tilings"][graph.vertices[v].name] = facts.tensors[v];
  return json;
}

/// A plan: what it costs, what sites hold and receive, and how it computes each vertex.
ordered_json plan_json(const EinGraph& graph, const PlanReport& report, const PlanRequest& request) {
  constexpr std::size_t most_other_cuts = 8;
  const OtherPlans others = other_plans(graph, report, request, most_other_cuts);
  ordered_json vertices = ordered_json::array();
  for (std::size_t v = 0; v < graph.vertices.size(); ++v)
    vertices.push_back(planned_json(graph, v, report, request, others.runners_up[v]));
  ordered_json json{{"planner", report.plan.planner},    {"sites", report.plan.sites},
                    {"cost", costs_json(report.costs)},  {"peak_memory", peak_json(graph, report.peak)},
                    {"received", report.costs.received}, {"most_received", report.costs.most_received()},
                    {"plan_seconds", report.seconds},    {"vertices", std::move(vertices)}};
  json["moving_seconds"] = report.costs.moving_seconds();
  json["held"] = held_json(graph, report.peak.held);
  json["is_in_parts"] = report.is_in_parts;
  json["sent"] = sent_json(report.is_in_parts ? std::nullopt : sent_facts(graph, report.plan, request.machine));
  json["other_cuts"] = other_cuts_json(graph, others.cuts);
  if (report.plan.at_least) json["at_least_seconds"] = *report.plan.at_least;
  if (report.unrestricted) json["cost_without_spmd"] = costs_json(*report.unrestricted);
  if (!request.machine.links.empty()) json["links"] = links_json(request.machine, report.costs);
  if (const std::optional<TilingFacts> tilings = tiling_facts(graph, report.plan, request))
    json.update(tilings_json(graph, *tilings, report));
  return json;
}

std::vector<std::string> names_of(const EinGraph& graph, const std::vector<std::size_t>& vertices) {
  std::vector<std::string> names;
  for (const std::size_t v : vertices) names.push_back(graph.vertices[v].name);
  return names;
}

ordered_json layers_json(const EinGraph& graph, const Folding& folding) {
  ordered_json layers = ordered_json::array();
  for (const FoldedGroup& group : folding.groups) {
    layers.push_back({{"times", group.times},
                      {"vertices", names_of(graph, group.vertices)},
                      {"last", graph.vertices[group.last].name}});
  }
  return layers;
}

/// The vertices of equal layers that are the same there, and what they cost together by each plan.
ordered_json alike_json(const EinGraph& graph, const PlanComparison& comparison, const Folding& folding) {
  std::vector<std::vector<VertexCost>> together;
  for (const PlanReport& report : comparison.plans) together.push_back(costs_together(report, folding));
  ordered_json all = ordered_json::array();
  for (const std::vector<std::size_t>& alike : folding.alike) {
    if (alike.size() < 2) continue;
    ordered_json plans = ordered_json::array();
    for (const std::vector<VertexCost>& costs : together) {
      const VertexCost& cost = costs[alike.front()];
      plans.push_back({{"bytes", cost.bytes()},
                       {"operand_bytes", cost.operand_bytes},
                       {"reduced_bytes", cost.reduced_bytes},
                       {"seconds", cost.seconds}});
    }
    all.push_back({{"vertices", names_of(graph, alike)}, {"plans", std::move(plans)}, {"measured", nullptr}});
  }
  return all;
}

/// Each vertex that is computed beside its object.
template <class Add>
void for_each_computed(const EinGraph& graph, ordered_json& vertices, Add&& add) {
  std::size_t next = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (!is_input(graph.vertices[v])) add(v, vertices[next++]);
  }
}

/// The program as the first plan computes it, and all plans.
void add_plans(ordered_json& json, const Explanation& explained, const Folding& folding) {
  const EinGraph& graph = explained.graph();
  const PlanRequest& request = explained.request;
  ordered_json plans = ordered_json::array();
  for (const PlanReport& report : explained.comparison.plans) plans.push_back(plan_json(graph, report, request));
  const ordered_json& first = plans.front();
  json["sites"] = request.sites;
  json["planner"] = first["planner"];
  json["machine"] = request.machine.name;
  json["machine_ranks"] = request.machine.ranks > 0 ? ordered_json(request.machine.ranks) : ordered_json();
  json["cost"] = first["cost"];
  if (first.contains("links")) json["links"] = first["links"];
  json["peak_memory"] = first["peak_memory"];
  json["cost_kind"] = std::string(name_of(request.cost));
  json["memory_limit"] = request.memory ? ordered_json(*request.memory) : ordered_json();
  for_each_computed(graph, json["vertices"], [&](std::size_t v, ordered_json& vertex) {
    vertex.update(first["vertices"][v]);
    vertex.update(read_and_written_json(graph.vertices[v]));
    if (explained.tasks) add_kernels(vertex, explained.calls[v]);
  });
  json["layers"] = layers_json(graph, folding);
  json["alike"] = alike_json(graph, explained.comparison, folding);
  json["plans"] = std::move(plans);
  json["refused"] = ordered_json::array();
  for (const PlanRefusal& refusal : explained.comparison.refused)
    json["refused"].push_back({{"planner", refusal.planner}, {"reason", refusal.reason}});
}

/// A plan of relations. Bytes of such a plan are not modelled yet.
void add_relations(ordered_json& json, const Explanation& explained) {
  const AlgebraFacts& facts = *explained.algebra;
  json["sites"] = facts.sites;
  json["planner"] = planner_of(facts);
  json["cost"]["floats"] = facts.found().cost.moved;
  if (explained.peak) json["peak_memory"] = {{"predicted", *explained.peak}, {"measured", nullptr}};
  if (explained.compiled == nullptr) return;
  const GraphCuts cuts = default_cuts(explained.graph(), facts.sites);
  for_each_computed(explained.graph(), json["vertices"], [&](std::size_t v, ordered_json& vertex) {
    for (std::size_t l = 0; l < vertex["labels"].size(); ++l)
      vertex["parts"][vertex["labels"][l].get<std::string>()] = cuts.parts[v][l];
  });
}

ordered_json json_of(const Explanation& explained, const Folding& folding) {
  ordered_json json = explained.compiled != nullptr
                          ? program_json(*explained.compiled)
                          : ordered_json{{"version", report_version}, {"program", explained.program}};
  if (explained.tasks) json["tasks"] = *explained.tasks;
  if (explained.seconds) json["tasks_seconds"] = *explained.seconds;
  if (const std::optional<SimulatedRun>& run = explained.simulated) {
    json["simulated"] = {{"seconds", run->seconds},
                         {"by", run->is_by_task ? "tasks" : "vertices"},
                         {"computing_seconds", run->computing},
                         {"received_bytes", run->received}};
  }
  if (explained.has_plan()) {
    add_plans(json, explained, folding);
  } else {
    add_relations(json, explained);
  }
  const bool is_of_operations = !explained.has_plan() && explained.tasks;
  if (explained.algebra)
    add_algebra(json, *explained.algebra, is_of_operations ? explained.calls : std::vector<std::vector<KernelCall>>{});
  return json;
}

Folding folding_of(const Explanation& explained) {
  return explained.has_plan() ? fold(explained.graph(), explained.comparison.plans) : Folding{};
}

/// What vertices that are alike took together, where they are told in `alike`.
void add_measured(ordered_json& alike, const PlanRunReport& run, const Folding& folding) {
  std::size_t next = 0;
  for (const std::vector<std::size_t>& vertices : folding.alike) {
    if (vertices.size() < 2) continue;
    double seconds = 0;
    std::int64_t bytes = 0;
    for (const std::size_t v : vertices) {
      seconds += run.vertex_seconds[v];
      if (run.is_counted) bytes += run.vertex_bytes[v];
    }
    alike[next++]["measured"] = {{"seconds", seconds}, {"bytes_moved", bytes}};
  }
}

/// Of a run by a plan of vertices, beside what was predicted.
void add_run(ordered_json& json, const RunOutcome& run, const Folding& folding) {
  const EinGraph& graph = run.explained.graph();
  const PlanRunReport& report = run.report;
  for (const auto& input : json["inputs"].items()) {
    if (const auto found = run.files.find(input.key()); found != run.files.end())
      input.value()["source"] = found->second;
  }
  add_summaries(json["outputs"], graph, run.summaries);
  for_each_computed(graph, json["vertices"], [&](std::size_t v, ordered_json& vertex) {
    vertex["predicted_seconds"] = vertex["seconds"];
    vertex["seconds"] = report.vertex_seconds[v];
    vertex["peak_memory"]["measured"] = report.vertex_live[v];
    vertex["bytes_moved"] = report.is_counted ? report.vertex_bytes[v] : 0;
  });
  add_measured(json["alike"], report, folding);
}

/// Of a run by a plan of relations, whose tensors are those of its tasks.
void add_run_of_relations(ordered_json& json, const RunOutcome& run) {
  const PlannedTasks& tasks = run.chosen.tasks;
  const PlanRunReport& report = run.report;
  ordered_json::object_t inputs;
  for (const StoredRelation& input : tasks.graph.inputs)
    inputs.push_back({input.name, tensor_json(input.bound, input.dtype)});
  ordered_json::object_t results;
  for (const TaskOutput& output : program_outputs(tasks)) {
    results.push_back({output.name, tensor_json(output.bound, output.dtype)});
    const auto summary = run.summaries.find(output.name);
    if (summary != run.summaries.end())
      results.back().second.update(summary_json(output.dtype, output.bound, summary->second));
  }
  json["inputs"] = std::move(inputs);
  json["outputs"] = std::move(results);
  json["cost"]["bytes"] = tasks.traffic.total;
  const std::vector<std::int64_t>& bytes = std::get<ByRelations>(run.chosen.how).bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    json["ia"][i].update({{"bytes", bytes[i]},
                          {"bytes_moved", report.is_counted ? report.vertex_bytes[i] : 0},
                          {"seconds", report.vertex_seconds[i]},
                          {"peak_memory", report.vertex_live[i]}});
  }
}

}  // namespace

std::string explanation_json(const Explanation& explained) {
  return text_of(json_of(explained, folding_of(explained)));
}

std::string run_json(const RunOutcome& run) {
  const Explanation& explained = run.explained;
  const Folding folding = folding_of(explained);
  ordered_json json = json_of(explained, folding);
  if (explained.has_plan()) {
    add_run(json, run, folding);
  } else {
    add_run_of_relations(json, run);
  }
  // Of the run, not with what this report takes.
  json["peak_memory"]["measured"] = run.report.peak_bytes.at(0);
  json["measured"] =
      measured_json(run.report, explained.has_plan() ? explained.plan().seconds : explained.algebra->plan_seconds);
  return text_of(json);
}

}  // namespace einrel
