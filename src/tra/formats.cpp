#include "tra/formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "tra/repartition.h"

namespace einrel {
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
    "single, row, column, row-strip-H, column-strip-W, tile-H-W, element; for all others tile-N, all-tile or element";

/// The most elements of a chunk along dimension `d` of a tensor in that format.
std::optional<std::int64_t> extent_of(const Format& format, std::size_t rank, std::size_t d) {
  if (d + 2 == rank || (rank == 1 && d == 0)) return format.rows;
  return d + 1 == rank ? format.columns : std::nullopt;
}

/// Says how the labels of a vertex are cut.
class VertexCuts {
 public:
  VertexCuts(const EinGraph& graph, const std::map<std::string, Format>& tensors, std::int64_t most_extent,
             std::size_t v)
      : graph_(graph),
        tensors_(tensors),
        most_extent_(most_extent),
        vertex_(graph.vertices[v]),
        parts_(label_extents(vertex_).size(), 0) {}

  std::vector<std::int64_t> run() {
    const Shape extents = label_extents(vertex_);
    if (is_input(vertex_)) {
      for (std::size_t d = 0; d < extents.size(); ++d) parts_[d] = wanted(vertex_, d);
      return parts_;
    }
    take(vertex_, result_labels(vertex_), false);
    for (std::size_t i = 0; i < vertex_.inputs.size(); ++i)
      take(graph_[vertex_.inputs[i]], operand_labels(vertex_, i), true);
    const std::vector<std::string> reasons = cannot_be_cut_apart(vertex_, graph_);
    for (std::size_t l = 0; l < parts_.size(); ++l) {
      if (parts_[l] == 0) parts_[l] = parts_of(extents[l], most_extent_);
      parts_[l] = reasons[l].empty()
                      ? std::clamp<std::int64_t>(parts_[l], 1, std::max<std::int64_t>(extents[l].value(), 1))
                      : 1;
    }
    return parts_;
  }

 private:
  std::int64_t wanted(const Vertex& tensor, std::size_t d) const {
    const auto named = tensors_.find(tensor.name);
    if (named == tensors_.end()) return parts_of(tensor.bound[d], most_extent_);
    return cuts_in(named->second, tensor.bound)[d].parts;
  }

  /// Labels that nothing has said anything of are cut as the dimensions are that they walk through. Of operands only
  /// those count that have a format of their own.
  void take(const Vertex& tensor, const std::vector<std::optional<std::size_t>>& labels, bool only_named) {
    if (only_named && tensors_.count(tensor.name) == 0) return;
    for (std::size_t d = 0; d < labels.size(); ++d) {
      if (labels[d] && parts_[*labels[d]] == 0) parts_[*labels[d]] = wanted(tensor, d);
    }
  }

  const EinGraph& graph_;
  const std::map<std::string, Format>& tensors_;
  std::int64_t most_extent_;
  const Vertex& vertex_;
  std::vector<std::int64_t> parts_;
};

}  // namespace

namespace {

std::vector<Format> nineteen_formats() {
  std::vector<Format> formats{
      {"single", std::nullopt, std::nullopt}, {"row", 1, std::nullopt}, {"column", std::nullopt, 1}};
  const std::vector<std::int64_t> sizes{10, 100, 1000};
  for (const std::int64_t h : sizes) formats.push_back({fmt::format("row-strip-{}", h), h, std::nullopt});
  for (const std::int64_t w : sizes) formats.push_back({fmt::format("column-strip-{}", w), std::nullopt, w});
  for (const std::int64_t h : sizes) {
    for (const std::int64_t w : sizes) formats.push_back({fmt::format("tile-{}-{}", h, w), h, w});
  }
  formats.push_back({"element", 1, 1});
  return formats;
}

}  // namespace

const std::vector<Format>& all_formats() {
  static const std::vector<Format> formats = nineteen_formats();
  return formats;
}

std::string chunk_text(const Format& format) {
  if (!format.rows && !format.columns) return "the whole matrix";
  if (format.rows == 1 && format.columns == 1) return "one element";
  const auto side = [](const std::optional<std::int64_t>& most, const char* one) {
    return *most == 1 ? fmt::format("one {}", one) : fmt::format("at most {} {}s", *most, one);
  };
  if (!format.columns) return side(format.rows, "row");
  if (!format.rows) return side(format.columns, "column");
  return fmt::format("{} of {}", side(format.rows, "row"), side(format.columns, "column"));
}

Format format_named(const std::string& name) {
  if (name == "single") return {name, std::nullopt, std::nullopt};
  if (name == "row") return {name, 1, std::nullopt};
  if (name == "column") return {name, std::nullopt, 1};
  if (name == "element") return {name, 1, 1};
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

std::int64_t parts_of(Extent extent, std::int64_t most) {
  return extent.value() == 0 ? 1 : (extent.value() - 1) / most + 1;
}

TensorFormat cuts_in(const Format& format, const Shape& bound) {
  if (format.as_it_lies) return *format.as_it_lies;
  TensorFormat cuts;
  for (std::size_t d = 0; d < bound.size(); ++d) {
    const std::optional<std::int64_t> most = extent_of(format, bound.size(), d);
    cuts.push_back({most ? parts_of(bound[d], *most) : 1, 1});
  }
  return cuts;
}

Shape chunk_bound(const TensorFormat& format, const Shape& bound) {
  Shape chunk;
  for (std::size_t d = 0; d < bound.size(); ++d) chunk.push_back(chunk_extent(bound[d], format[d], 0));
  return chunk;
}

double tuples_of(const TensorFormat& format) {
  return std::accumulate(format.begin(), format.end(), 1.0, [](double product, const DimensionCut& cut) {
    return product * static_cast<double>(cut.parts);
  });
}

bool can_hold(const TensorFormat& format, const Shape& bound, DType dtype) {
  auto bytes = static_cast<double>(size_of(dtype));
  for (const Extent extent : chunk_bound(format, bound)) bytes *= static_cast<double>(extent.value());
  return bytes <= static_cast<double>(most_chunk_bytes) && tuples_of(format) <= static_cast<double>(most_chunks);
}

namespace {

/// The most elements of a chunk: that of format_sizes which cuts alike, if there is one; nothing where it is not cut.
std::optional<std::int64_t> size_of_chunks(Extent extent, const DimensionCut& cut) {
  if (cut.parts == 1) return std::nullopt;
  for (const std::int64_t size : format_sizes) {
    if (cut.unit == 1 && parts_of(extent, size) == cut.parts) return size;
  }
  return chunk_extent(extent, cut, 0).value();
}

std::string matrix_format_text(const std::optional<std::int64_t>& rows, const std::optional<std::int64_t>& columns) {
  if (!rows && !columns) return "single";
  if (rows == 1 && columns == 1) return "element";
  if (!columns) return *rows == 1 ? "row" : fmt::format("row-strip-{}", *rows);
  if (!rows) return *columns == 1 ? "column" : fmt::format("column-strip-{}", *columns);
  return fmt::format("tile-{}-{}", *rows, *columns);
}

}  // namespace

std::string format_text(const TensorFormat& format, const Shape& bound) {
  std::vector<std::optional<std::int64_t>> sizes;
  for (std::size_t d = 0; d < bound.size(); ++d) sizes.push_back(size_of_chunks(bound[d], format[d]));
  const std::size_t rank = sizes.size();
  if (rank == 0) return "single";
  if (rank == 1) return matrix_format_text(sizes[0], std::nullopt);
  const bool is_matrix = std::all_of(sizes.begin(), sizes.end() - 2, [](const auto& size) { return !size; });
  if (is_matrix) return matrix_format_text(sizes[rank - 2], sizes[rank - 1]);
  std::vector<std::string> texts;
  for (const std::optional<std::int64_t>& size : sizes) texts.push_back(size ? std::to_string(*size) : "all");
  return fmt::format("chunks of {}", fmt::join(texts, " x "));
}

Format lying_format(TensorFormat format, const Shape& bound) {
  std::string name = format_text(format, bound);
  return {std::move(name), std::nullopt, std::nullopt, std::move(format), "as it lies"};
}

DirectTransformations direct_transformations(const Format& from) {
  const Shape bound = make_shape({10'000, 10'000});  // in which no two formats have the same chunks
  DirectTransformations direct;
  for (const Format& to : all_formats()) {
    const CutChange change = change_of_cuts(bound, cuts_in(from, bound), cuts_in(to, bound));
    if (change.is_cut == change.is_put_together) continue;  // both, or the same format
    (change.is_cut ? direct.cut : direct.put_together).push_back(to.name);
  }
  return direct;
}

Formats parse_formats(const std::string& given) {
  Formats formats;
  std::optional<std::string> of_others;
  for (const std::string& entry : split(given, ',')) {
    const std::size_t sign = entry.find('=');
    if (sign != std::string::npos) {
      const std::string tensor = entry.substr(0, sign);
      if (!formats.tensors.insert({tensor, format_named(entry.substr(sign + 1))}).second)
        throw UserError(fmt::format("'{}' has two formats; give it one with --formats", printable(tensor)));
      continue;
    }
    const auto tile = entry == "all-tile"          ? std::optional<std::int64_t>(1000)
                      : entry.starts_with("tile-") ? extent_in(entry.substr(5))
                                                   : std::nullopt;
    if (entry != "element" && !tile)
      throw UserError(
          fmt::format("--formats: '{}' is no TENSOR=FORMAT; formats are {}", printable(entry), format_names));
    if (of_others)
      throw UserError(fmt::format("all other tensors have two formats, {} and {}; leave one out of --formats",
                                  printable(*of_others), printable(entry)));
    of_others = entry;
    formats.most_extent = tile;
    formats.is_element = entry == "element";
  }
  if (formats.is_element && !formats.tensors.empty())
    throw UserError("--formats element is for all tensors of a program; leave the others out");
  return formats;
}

bool is_worth_sharing(const Vertex& vertex, const std::vector<std::int64_t>& parts, double most_alone) {
  constexpr double operations_of_a_call = 3e5;
  const double calls =
      std::accumulate(parts.begin(), parts.end(), operations_of_a_call,
                      [](double product, std::int64_t each) { return product * static_cast<double>(each); });
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr || einsum->operands.size() > 2 || finds_position(einsum->reducer) ||
      flops(vertex) + calls <= most_alone)
    return false;
  const std::vector<DimensionCut> cuts = result_cuts(vertex, parts);
  return std::any_of(cuts.begin(), cuts.end(), [](const DimensionCut& cut) { return cut.parts > 1; });
}

void check_tensors(const EinGraph& graph, const std::map<std::string, Format>& tensors) {
  std::vector<std::string> known;
  for (const Vertex& vertex : graph.vertices) known.push_back(vertex.name);
  for (const auto& [tensor, format] : tensors) {
    if (std::find(known.begin(), known.end(), tensor) != known.end()) continue;
    const std::string near = did_you_mean(tensor, known);
    throw UserError(fmt::format("--formats: the program computes no tensor '{}'{}", printable(tensor),
                                near.empty() ? "" : "; " + near));
  }
}

GraphCuts cuts_for(const EinGraph& graph, const std::map<std::string, Format>& tensors, std::int64_t most_extent) {
  check_tensors(graph, tensors);
  GraphCuts cuts;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v)
    cuts.parts.push_back(VertexCuts(graph, tensors, most_extent, v).run());
  return cuts;
}

}  // namespace einrel
