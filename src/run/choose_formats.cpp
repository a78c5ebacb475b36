#include "run/choose_formats.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"

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

/// Gives a view that is kept the format of one chunk.
void keep_whole(const Vertex& vertex, Formats& formats) {
  if (view_of(vertex) == nullptr) return;
  Format whole = format_named("single");
  whole.why = "kept in one chunk";
  const auto [known, is_new] = formats.tensors.try_emplace(vertex.name, whole);
  if (!is_new && tuples_of(cuts_in(known->second, vertex.bound)) > 1)
    throw UserError(fmt::format("--formats {0}={1}: {0} is a view, which is kept in one chunk; leave that out",
                                vertex.name, known->second.name));
}

}  // namespace

std::string given_text(const ChosenFormats& chosen, const std::string& tensor) {
  const auto given = chosen.given.tensors.find(tensor);
  return given == chosen.given.tensors.end() ? "" : given->second.why;
}

bool lies_so(const ChosenFormats& chosen, const std::string& tensor) {
  const auto given = chosen.given.tensors.find(tensor);
  return given != chosen.given.tensors.end() && given->second.as_it_lies;
}

ChosenFormats choose_formats(const EinGraph& graph, const Formats& given, const FormatWeights& weights,
                             const std::set<std::string>& kept) {
  ChosenFormats chosen{given, weights, {}};
  for (const VertexId id : graph.outputs) {
    if (kept.count(graph[id].name) != 0) keep_whole(graph[id], chosen.given);
  }
  const std::map<std::string, Format>& tensors = chosen.given.tensors;
  chosen.plan = given.most_extent ? costs_of_formats(graph, cuts_for(graph, tensors, *given.most_extent), weights)
                                  : plan_formats(graph, {tensors, weights});
  return chosen;
}

sql::ChunkedGraph chunked_graph(const EinGraph& graph, const ChosenFormats& chosen) {
  sql::ChunkedGraph chunked{chosen.plan.cuts, {}};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v)
    chunked.reasons[graph.vertices[v].name] = reason(graph, chosen, v);
  return chunked;
}

}  // namespace einrel
