#include "sql/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/vertex_facts.h"

namespace einrel::sql {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// A whole number of at least 1 and below 2^40.
std::optional<std::int64_t> extent_in(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_all = error == std::errc() && end == text.data() + text.size();
  return is_all && value >= 1 && value <= most_key_value ? std::optional(value) : std::nullopt;
}

constexpr const char* format_names =
    "single, row, column, row-strip-H, column-strip-W, tile-H-W; for all others tile-N or element";

/// The most elements of a chunk along dimension `d` of a tensor in that format.
std::optional<std::int64_t> extent_of(const Format& format, std::size_t rank, std::size_t d) {
  if (d + 2 == rank || (rank == 1 && d == 0)) return format.rows;
  return d + 1 == rank ? format.columns : std::nullopt;
}

std::int64_t parts_of(Extent extent, std::int64_t most) {
  if (extent.value() == 0) return 1;
  return (extent.value() - 1) / most + 1;
}

/// Says how the labels of a vertex are cut.
class VertexCuts {
 public:
  VertexCuts(const EinGraph& graph, const Formats& formats, std::size_t v)
      : graph_(graph), formats_(formats), vertex_(graph.vertices[v]), parts_(label_extents(vertex_).size(), 0) {}

  std::vector<std::int64_t> run() {
    const Shape extents = label_extents(vertex_);
    if (is_input(vertex_)) {
      for (std::size_t d = 0; d < extents.size(); ++d) parts_[d] = wanted(vertex_, d);
      return parts_;
    }
    take(vertex_, result_labels(vertex_), false);
    for (std::size_t i = 0; i < vertex_.inputs.size(); ++i)
      take(graph_[vertex_.inputs[i]], operand_labels(vertex_, i), true);
    const std::vector<std::string> reasons = cannot_be_cut(vertex_, graph_);
    for (std::size_t l = 0; l < parts_.size(); ++l) {
      if (parts_[l] == 0) parts_[l] = parts_of(extents[l], formats_.most_extent);
      parts_[l] = reasons[l].empty()
                      ? std::clamp<std::int64_t>(parts_[l], 1, std::max<std::int64_t>(extents[l].value(), 1))
                      : 1;
    }
    return parts_;
  }

 private:
  std::int64_t wanted(const Vertex& tensor, std::size_t d) const {
    const auto named = formats_.tensors.find(tensor.name);
    if (named == formats_.tensors.end()) return parts_of(tensor.bound[d], formats_.most_extent);
    const std::optional<std::int64_t> most = extent_of(named->second, tensor.bound.size(), d);
    return most ? parts_of(tensor.bound[d], *most) : 1;
  }

  /// Labels that nothing has said anything of are cut as the dimensions are that they walk through. Of operands only
  /// those count that have a format of their own.
  void take(const Vertex& tensor, const std::vector<std::optional<std::size_t>>& labels, bool only_named) {
    if (only_named && formats_.tensors.count(tensor.name) == 0) return;
    for (std::size_t d = 0; d < labels.size(); ++d) {
      if (labels[d] && parts_[*labels[d]] == 0) parts_[*labels[d]] = wanted(tensor, d);
    }
  }

  const EinGraph& graph_;
  const Formats& formats_;
  const Vertex& vertex_;
  std::vector<std::int64_t> parts_;
};

}  // namespace

Format format_named(const std::string& name) {
  if (name == "single") return {name, std::nullopt, std::nullopt};
  if (name == "row") return {name, 1, std::nullopt};
  if (name == "column") return {name, std::nullopt, 1};
  const std::vector<std::string> words = split(name, '-');
  if (words.size() == 3 && words[0] == "row" && words[1] == "strip") {
    if (const auto rows = extent_in(words[2])) return {name, rows, std::nullopt};
  }
  if (words.size() == 3 && words[0] == "column" && words[1] == "strip") {
    if (const auto columns = extent_in(words[2])) return {name, std::nullopt, columns};
  }
  if (words.size() == 3 && words[0] == "tile") {
    const auto rows = extent_in(words[1]);
    const auto columns = extent_in(words[2]);
    if (rows && columns) return {name, rows, columns};
  }
  throw UserError(fmt::format("there is no format '{}'; formats are {}", printable(name), format_names));
}

Formats parse_formats(const std::string& given) {
  Formats formats;
  for (const std::string& entry : split(given, ',')) {
    const std::size_t sign = entry.find('=');
    if (sign != std::string::npos) {
      const std::string tensor = entry.substr(0, sign);
      if (!formats.tensors.insert({tensor, format_named(entry.substr(sign + 1))}).second)
        throw UserError(fmt::format("--formats gives '{}' two formats", printable(tensor)));
      continue;
    }
    const auto tile = entry.starts_with("tile-") ? extent_in(entry.substr(5)) : std::nullopt;
    if (entry != "element" && !tile)
      throw UserError(
          fmt::format("--formats takes TENSOR=FORMAT, not '{}'; formats are {}", printable(entry), format_names));
    if (tile) formats.most_extent = *tile;
    formats.is_element = entry == "element";
  }
  if (formats.is_element && !formats.tensors.empty())
    throw UserError("--formats element is for all tensors of a program; leave the others out");
  return formats;
}

GraphCuts cuts_for(const EinGraph& graph, const Formats& formats) {
  std::vector<std::string> known;
  for (const Vertex& vertex : graph.vertices) known.push_back(vertex.name);
  for (const auto& [tensor, format] : formats.tensors) {
    if (std::find(known.begin(), known.end(), tensor) != known.end()) continue;
    const std::string near = did_you_mean(tensor, known);
    throw UserError(fmt::format("--formats: the program computes no tensor '{}'{}", printable(tensor),
                                near.empty() ? "" : "; " + near));
  }
  GraphCuts cuts;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) cuts.parts.push_back(VertexCuts(graph, formats, v).run());
  return cuts;
}

}  // namespace einrel::sql
