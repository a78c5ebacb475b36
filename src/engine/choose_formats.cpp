#include "engine/choose_formats.h"

#include <fmt/format.h>

#include "base/text.h"

namespace einrel {
namespace {

/// "column-strip-1000, 4.2 ms; with row-strip-1000 all would take 1.3 ms more"
std::string reason(const EinGraph& graph, const ChosenFormats& chosen, std::size_t v) {
  const Vertex& vertex = graph.vertices[v];
  const VertexFormat& own = chosen.plan.vertices[v];
  const std::string format = format_text(own.format, vertex.bound);
  if (const std::string given = given_text(chosen, vertex.name); !given.empty()) return format + ", " + given;
  if (chosen.given.most_extent)
    return fmt::format("chunks of at most {} along each dimension", *chosen.given.most_extent);
  std::string text = fmt::format("{}, {}", format, seconds_text(seconds_of(own.cost, chosen.weights)));
  const std::optional<OtherFormat>& other = chosen.plan.others[v];
  if (!other) return text;
  return fmt::format("{}; with {} all would take {} more", text, format_text(other->format, vertex.bound),
                     seconds_text(other->more_seconds));
}

}  // namespace

std::string given_text(const ChosenFormats& chosen, const std::string& tensor) {
  const auto given = chosen.given.tensors.find(tensor);
  if (given == chosen.given.tensors.end()) return "";
  return given->second.as_it_lies ? "as it lies" : "as --formats says";
}

ChosenFormats choose_formats(const EinGraph& graph, const Formats& given, const FormatWeights& weights) {
  ChosenFormats chosen{given, weights, {}};
  chosen.plan = given.most_extent
                    ? costs_of_formats(graph, cuts_for(graph, given.tensors, *given.most_extent), chosen.weights)
                    : plan_formats(graph, {given.tensors, chosen.weights});
  return chosen;
}

sql::ChunkedGraph chunked_graph(const EinGraph& graph, const ChosenFormats& chosen) {
  sql::ChunkedGraph chunked{chosen.plan.cuts, {}};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v)
    chunked.reasons[graph.vertices[v].name] = reason(graph, chosen, v);
  return chunked;
}

}  // namespace einrel
