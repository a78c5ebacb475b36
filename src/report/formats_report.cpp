#include "report/formats_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "report/database_times.h"

namespace einrel {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t tile_of_baseline = 1000;

/// What all tensors in tiles would cost, as the paper's baseline has them.
FormatPlan all_tile(const EinGraph& graph, const FormatWeights& weights) {
  return costs_of_formats(graph, cuts_for(graph, {}, tile_of_baseline), weights);
}

/// What stands in the column of measured seconds, where there is one.
std::string measured_text(const std::optional<double>& seconds) { return seconds ? seconds_text(*seconds) : "-"; }

/// A line of the table; `measured` is a cell of it where something was.
std::string row(const std::string& name, const FormatCost& cost, const FormatWeights& weights,
                const std::string& measured, const std::string& remark) {
  return fmt::format("  {:<36} {:>12} {:>9} {:>9.7g} {:>9} {:>9} {:>9} {:>9}{}{}\n", name, flops_text(cost.compute),
                     bytes_text(cost.network), cost.tuples + cost.pieces, bytes_text(cost.read),
                     bytes_text(cost.intermediate), bytes_text(cost.stored), seconds_text(seconds_of(cost, weights)),
                     measured.empty() ? "" : fmt::format(" {:>9}", measured), remark.empty() ? "" : "   " + remark);
}

std::string tensor_text(const EinGraph& graph, const ChosenFormats& chosen, std::size_t v, DatabaseTimes* times) {
  const Vertex& vertex = graph.vertices[v];
  const VertexFormat& own = chosen.plan.vertices[v];
  const bool is_gathered = is_input(vertex) && !is_state(graph, v) && !lies_so(chosen, vertex.name);
  std::string text = fmt::format("{}{}\n", formula(vertex, graph), is_gathered ? ", gathered" : "");
  for (const Transformation& change : own.transformations) {
    const Vertex& tensor = graph.vertices[change.tensor];
    text += row(fmt::format("{} to {}", tensor.name, format_text(change.to, tensor.bound)), change.cost, chosen.weights,
                times == nullptr ? "" : measured_text(times->of_transformation(tensor, change.to)), "");
  }
  std::string remark = given_text(chosen, vertex.name);
  if (const std::optional<OtherFormat>& other = chosen.plan.others[v]; remark.empty() && other)
    remark =
        fmt::format("next: {}, {} more", format_text(other->format, vertex.bound), seconds_text(other->more_seconds));
  return text + row(format_text(own.format, vertex.bound), own.cost, chosen.weights,
                    times == nullptr ? "" : measured_text(times->of_tensor(vertex)), remark);
}

std::string heading(const Compiled& compiled, const std::string& proof, bool is_measured) {
  return fmt::format("{}: {}\n  {:<36} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}{}\n\n", printable(compiled.name),
                     proof, "", "compute", "network", "tuples", "read", "arrays", "stored", "seconds",
                     is_measured ? "  measured" : "");
}

std::string proof_text(const ChosenFormats& chosen) {
  if (chosen.given.most_extent)
    return fmt::format("formats as --formats says, all others chunks of at most {} along each dimension",
                       *chosen.given.most_extent);
  return chosen.plan.is_least ? "formats of least cost"
                              : "formats of low cost; not proven least: there are too many ways to compare";
}

ordered_json cost_json(const FormatCost& cost, const FormatWeights& weights) {
  ordered_json json;
  for (const FormatComponent& component : format_components) json[component.name] = cost.*component.count;
  json["seconds"] = seconds_of(cost, weights);
  return json;
}

ordered_json weights_json(const FormatWeights& weights) {
  ordered_json json{{"workers", weights.workers}};
  for (const FormatComponent& component : format_components) json[component.weight_name] = weights.*component.weight;
  return json;
}

ordered_json measured_json(const std::optional<double>& seconds) {
  return seconds ? ordered_json(*seconds) : ordered_json();
}

ordered_json tensor_json(const EinGraph& graph, const ChosenFormats& chosen, std::size_t v, DatabaseTimes* times) {
  const Vertex& vertex = graph.vertices[v];
  const VertexFormat& own = chosen.plan.vertices[v];
  ordered_json parts = ordered_json::object();
  const std::vector<std::string> names = label_names(vertex);
  for (std::size_t l = 0; l < names.size(); ++l) parts[names[l]] = chosen.plan.cuts.parts[v][l];
  ordered_json transformations = ordered_json::array();
  for (const Transformation& change : own.transformations) {
    const Vertex& tensor = graph.vertices[change.tensor];
    transformations.push_back({{"tensor", tensor.name},
                               {"from", format_text(change.from, tensor.bound)},
                               {"to", format_text(change.to, tensor.bound)},
                               {"cost", cost_json(change.cost, chosen.weights)}});
    if (times != nullptr)
      transformations.back()["measured"] = measured_json(times->of_transformation(tensor, change.to));
  }
  const std::optional<OtherFormat>& other = chosen.plan.others[v];
  ordered_json json{{"name", vertex.name},
                    {"formula", formula(vertex, graph)},
                    {"format", format_text(own.format, vertex.bound)},
                    {"given", !given_text(chosen, vertex.name).empty()},
                    {"parts", std::move(parts)},
                    {"cost", cost_json(own.cost, chosen.weights)},
                    {"transformations", std::move(transformations)},
                    {"next", other ? ordered_json{{"format", format_text(other->format, vertex.bound)},
                                                  {"more_seconds", other->more_seconds}}
                                   : ordered_json()}};
  if (times != nullptr) json["measured"] = measured_json(times->of_tensor(vertex));
  return json;
}

std::string text_of(const Compiled& compiled, const ChosenFormats& chosen, DatabaseTimes* times) {
  const EinGraph& graph = compiled.graph;
  std::string text = heading(compiled, proof_text(chosen), times != nullptr);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) text += tensor_text(graph, chosen, v, times);
  return text + "\n";
}

ordered_json json_of(const Compiled& compiled, const ChosenFormats& chosen, DatabaseTimes* times) {
  const EinGraph& graph = compiled.graph;
  ordered_json tensors = ordered_json::array();
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) tensors.push_back(tensor_json(graph, chosen, v, times));
  return {{"program", compiled.name},
          {"planner", chosen.given.most_extent ? "given" : "formats"},
          {"is_least", chosen.plan.is_least},
          {"weights", weights_json(chosen.weights)},
          {"cost", cost_json(chosen.plan.cost, chosen.weights)},
          {"all_tile", cost_json(all_tile(graph, chosen.weights).cost, chosen.weights)},
          {"tensors", std::move(tensors)}};
}

std::string dumped(const ordered_json& json) { return json.dump(2, ' ', true, ordered_json::error_handler_t::replace); }

}  // namespace

std::string formats_text(const Compiled& compiled, const ChosenFormats& chosen) {
  std::string text = text_of(compiled, chosen, nullptr) + row("in all", chosen.plan.cost, chosen.weights, "", "");
  if (!chosen.given.most_extent)
    text += row("with tiles alone (all-tile)", all_tile(compiled.graph, chosen.weights).cost, chosen.weights, "", "");
  return text;
}

std::string formats_json(const Compiled& compiled, const ChosenFormats& chosen) {
  return dumped(json_of(compiled, chosen, nullptr));
}

std::string formats_analysis_text(const Compiled& compiled, const ChosenFormats& chosen,
                                  const sql::DatabaseResults& results) {
  DatabaseTimes times(compiled.graph, results);
  std::string text = text_of(compiled, chosen, &times);
  for (const DatabaseTimes::Rest& rest : times.rest())
    text += fmt::format("  {:<36} {:>62} {:>9}\n", rest.about, "", seconds_text(rest.seconds));
  text += row("in all", chosen.plan.cost, chosen.weights, seconds_text(times.in_all()), "");
  if (results.steps > 1)
    text += fmt::format("  {} steps: what is computed and brought to other formats is that of one; in all is all\n",
                        results.steps);
  return text;
}

std::string read_text(const std::vector<ReadTable>& read) {
  std::string text;
  for (const ReadTable& table : read)
    text += fmt::format("read {} {} from {}: {}\n", table.tensor, table.type, table.from, table.how);
  return text;
}

std::string formats_analysis_json(const Compiled& compiled, const ChosenFormats& chosen,
                                  const std::vector<ReadTable>& read, const sql::DatabaseResults& results) {
  DatabaseTimes times(compiled.graph, results);
  ordered_json json = json_of(compiled, chosen, &times);
  ordered_json rest = ordered_json::array();
  for (const DatabaseTimes::Rest& each : times.rest())
    rest.push_back({{"about", each.about}, {"seconds", each.seconds}});
  json["read"] = ordered_json::array();
  for (const ReadTable& table : read)
    json["read"].push_back({{"tensor", table.tensor}, {"type", table.type}, {"from", table.from}, {"how", table.how}});
  json["measured"] = {{"steps", results.steps}, {"seconds", times.in_all()}, {"rest", std::move(rest)}};
  return dumped(json);
}

}  // namespace einrel
