#include "run/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "ia/from_tra.h"
#include "ia/placement.h"
#include "plan/layout.h"
#include "run/made_of_expressions.h"
#include "tra/from_einsum.h"

namespace einrel {
namespace {

using nlohmann::json;

constexpr std::size_t most_bytes = std::size_t{1} << 28U;
/// What `explain --json` writes nests less than twenty deep. More would only be printed, level in level, on the stack.
constexpr int most_levels = 100;

/// Says of each part of a file whether a plan has it. Others are read over, and never kept: reports hold much besides,
/// and a file may hold anything.
class PlanParts {
 public:
  PlanParts(const std::string& source, const EinGraph& graph) : source_(source) {
    constexpr std::size_t of_vertex = 400;  // a name, and copies with 64 digits
    constexpr std::size_t of_label = 8;     // a name and a number in three lists
    for (const Vertex& vertex : graph.vertices) most_ += of_vertex + of_label * label_names(vertex).size();
  }

  bool is_wanted(int depth, json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    if (depth > most_levels) refuse(fmt::format("its lists and objects nest more than {} deep", most_levels));
    if (depth == 0 && event == Event::array_start) is_list_ = true;
    if (is_list_ && event != Event::array_start) refuse("it is a list, not an object");
    const bool is_end = event == Event::object_end || event == Event::array_end;
    if (is_end) {
      if (depth < dropped_) dropped_ = none;
      return true;
    }
    if (event == Event::key) {
      if (depth <= dropped_) dropped_ = none;
      if (dropped_ == none && !is_part(depth, parsed.get_ref<const std::string&>())) dropped_ = depth;
    }
    if (event == Event::object_start && depth == of_plans - 1 && has_plans_ && dropped_ == none && plans_++ > 0)
      dropped_ = depth;
    if (dropped_ != none) return false;
    if (++kept_ > most_) refuse("it holds more than a plan of this program does");
    return true;
  }

 private:
  /// Depths of members: of the report, of the plans in its list.
  static constexpr int of_report = 1;
  static constexpr int of_plans = 3;
  static constexpr int none = most_levels + 1;  // deeper than anything

  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(fmt::format("{} is no plan: {}", source_, what));
  }

  static bool is_of(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  bool is_part(int depth, const std::string& name) {
    if (depth == of_report) {
      has_plans_ = name == "plans";
      if (name == "programs") refuse("it holds plans of several, as of a function with loops; give this program's own");
      plans_ = 0;
      return is_of(name, {"plans", "program", "sites", "version", "vertices"});
    }
    if (has_plans_ && depth == of_plans) return is_of(name, {"sites", "vertices"});
    const int of_vertices = has_plans_ ? of_plans + 2 : of_report + 2;
    if (depth == of_vertices)
      return is_of(name, {"name", "parts", "sites", "strides", "scatter", "all_reduced", "copies"});
    return true;
  }

  const std::string& source_;
  std::size_t most_ = 1000;
  std::size_t kept_ = 0;
  int dropped_ = none;  // the depth of the member, or plan, that is being read over
  bool is_list_ = false;
  bool has_plans_ = false;
  std::size_t plans_ = 0;  // of the list, so far
};

json parsed(std::string_view text, const std::string& source, const EinGraph& graph) {
  if (text.size() > most_bytes) throw UserError(fmt::format("{} is no plan: it is larger than 256 MiB", source));
  PlanParts parts(source, graph);
  const auto watch = [&](int depth, json::parse_event_t event, const json& part) {
    return parts.is_wanted(depth, event, part);
  };
  json read = json::parse(text, watch, false);
  if (read.is_discarded()) throw UserError(fmt::format("{} is no plan: it is not JSON", source));
  return read;
}

/// Reads one plan and says what is wrong with it.
class Reader {
 public:
  Reader(std::string source, const Compiled& compiled)
      : source_(std::move(source)), graph_(compiled.graph), has_names_(compiled.name != made_of_expressions) {}

  Plan read(const json& file) {
    const json* plan = &file;
    if (file.is_object() && file.contains("version") && file["version"] != report_version) {
      fail(
          fmt::format("it is of version {} of the format, and only version {} is read; let einrel explain --json of "
                      "this release write it",
                      printable(file["version"].dump()), report_version));
    }
    if (file.is_object() && file.contains("plans")) {
      const json& plans = file["plans"];
      if (!plans.is_array() || plans.empty()) fail("its `plans` is no list of plans");
      plan = &plans[0];
    }
    if (file.is_object() && file.contains("program") && !file.contains("plans"))
      fail("it holds no plan of vertices; einrel explain --sites N --json writes one");
    Plan result;
    result.sites = number(*plan, "sites", "the plan");
    check_sites(result.sites);
    result.planner = "file";
    const json& vertices = member(*plan, "vertices", "the plan");
    if (!vertices.is_array()) fail("its `vertices` is no list");
    if (vertices.size() != graph_.vertices.size()) {
      fail(fmt::format("it is a plan of {} vertices, inputs included, and the program has {}", vertices.size(),
                       graph_.vertices.size()));
    }
    for (std::size_t v = 0; v < vertices.size(); ++v) result.vertices.push_back(vertex(vertices[v], v, result.sites));
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw UserError(fmt::format("{}: {}", source_, what)); }

  const json& member(const json& of, const char* name, const std::string& what) const {
    if (!of.is_object() || !of.contains(name))
      fail(fmt::format("{} has no `{}`; einrel explain --json writes plans", what, name));
    return of[name];
  }
  std::int64_t number(const json& of, const std::string& name, const std::string& what) const {
    const json& value = member(of, name.c_str(), what);
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    const bool is_too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > most;
    if (!value.is_number_integer() || is_too_large)
      fail(fmt::format("`{}` of {} is no whole number that fits 63 bits", printable(name), what));
    return value.get<std::int64_t>();
  }
  std::int64_t optional_number(const json& of, const std::string& name, const std::string& what,
                               std::int64_t otherwise) const {
    return of.contains(name) ? number(of, name, what) : otherwise;
  }

  VertexPlan vertex(const json& given, std::size_t v, std::int64_t sites) const {
    const Vertex& vertex = graph_.vertices[v];
    const std::string what = fmt::format("vertex {}", vertex.name);
    const json& name = member(given, "name", "a vertex");
    if (!name.is_string() || (has_names_ && name.get<std::string>() != vertex.name)) {
      fail(fmt::format("its vertex number {} is {}, but that of the program is {}", v, printable(name.dump()),
                       vertex.name));
    }
    const json& parts = member(given, "parts", what);
    const json& grid = member(given, "sites", what);
    const json& strides = member(given, "strides", what);
    const std::vector<std::string> names = label_names(vertex);
    for (const json* numbers : {&parts, &grid, &strides}) {
      if (!numbers->is_object()) fail(fmt::format("{} has no numbers per label where they should be", what));
      for (const auto& [label, value] : numbers->items()) {
        if (std::find(names.begin(), names.end(), label) == names.end())
          fail(fmt::format("{} has no label {}", what, printable(label)));
      }
    }
    VertexPlan plan;
    for (const std::string& label : names) {
      plan.parts.push_back(optional_number(parts, label, what, 1));
      plan.grid.push_back(optional_number(grid, label, what, 1));
      plan.strides.push_back(optional_number(strides, label, what, 0));
    }
    plan.scatter = scatter(given, names, what);
    plan.all_reduced = all_reduced(given, what);
    plan.copies = copies(given, what);
    check(vertex, plan, sites);
    return plan;
  }

  std::optional<std::size_t> scatter(const json& given, const std::vector<std::string>& names,
                                     const std::string& what) const {
    if (!given.contains("scatter")) return std::nullopt;
    const json& label = given["scatter"];
    const auto at = std::find(names.begin(), names.end(), label.is_string() ? label.get<std::string>() : "");
    if (at == names.end())
      fail(fmt::format("`scatter` of {} is {}, which is no label of it", what, printable(label.dump())));
    return static_cast<std::size_t>(at - names.begin());
  }

  bool all_reduced(const json& given, const std::string& what) const {
    if (!given.contains("all_reduced")) return false;
    if (!given["all_reduced"].is_boolean()) fail(fmt::format("`all_reduced` of {} is neither true nor false", what));
    return given["all_reduced"].get<bool>();
  }

  std::vector<SiteCopies> copies(const json& given, const std::string& what) const {
    std::vector<SiteCopies> copies;
    if (!given.contains("copies")) return copies;
    const json& digits = given["copies"];
    if (!digits.is_array()) fail(fmt::format("`copies` of {} is no list", what));
    const std::string of = "the copies of " + what;
    for (const json& digit : digits) {
      copies.push_back({number(digit, "count", of), number(digit, "stride", of)});
      if (copies.back().count < 1 || copies.back().stride < 1)
        fail(fmt::format("{} have a count or a stride below 1", of));
    }
    return copies;
  }

  void check(const Vertex& vertex, const VertexPlan& plan, std::int64_t sites) const {
    const PartitionVector most = is_input(vertex) ? extents_of(vertex) : most_parts(vertex, graph_);
    const std::vector<std::string> names = label_names(vertex);
    for (std::size_t l = 0; l < names.size(); ++l) {
      if (plan.parts[l] < 1 || plan.parts[l] > most[l]) {
        fail(fmt::format("vertex {} has {} parts of {}, which can be cut into 1 to {}", vertex.name, plan.parts[l],
                         names[l], most[l]));
      }
      if (plan.grid[l] < 1 || plan.grid[l] > plan.parts[l]) {
        fail(fmt::format("vertex {} has {} sites along {} for {} parts", vertex.name, plan.grid[l], names[l],
                         plan.parts[l]));
      }
    }
    try {
      check_digits(site_grid(plan.parts, plan.grid, plan.strides, plan.copies), sites);
    } catch (const UserError& error) {
      fail(fmt::format("vertex {}: {}", vertex.name, error.what()));
    }
    if (const std::string fault = copies_fault(vertex, plan); !fault.empty())
      fail(fmt::format("vertex {} cannot be computed alike by several sites: {}", vertex.name, fault));
    if (const std::string fault = all_reduce_fault(vertex, plan); !fault.empty())
      fail(fmt::format("the result of vertex {} cannot be all-reduced: {}", vertex.name, fault));
    const std::string fault = scatter_fault(vertex, plan);
    if (!fault.empty()) fail(fmt::format("the result of vertex {} cannot be scattered: {}", vertex.name, fault));
    if (plan.scatter && !numbers_scatter(vertex, plan)) {
      fail(
          fmt::format("the strides of vertex {} do not let its result be scattered along {}: reduced labels have to be "
                      "neighbouring digits of a site's number, and {} the next one",
                      vertex.name, names[*plan.scatter], names[*plan.scatter]));
    }
  }

  static PartitionVector extents_of(const Vertex& vertex) {
    PartitionVector extents;
    for (const Extent extent : vertex.bound) extents.push_back(std::max<std::int64_t>(extent.value(), 1));
    return extents;
  }

  std::string source_;
  const EinGraph& graph_;
  bool has_names_;
};

}  // namespace

Plan parse_plan(std::string_view text, const std::string& source, const Compiled& compiled) {
  const std::string shown = printable(source);
  return Reader(shown, compiled).read(parsed(text, shown, compiled.graph));
}

Plan read_plan(const std::string& path, const Compiled& compiled) {
  const FileBytes file = map_file(path);
  return parse_plan({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()}, path, compiled);
}

}  // namespace einrel
