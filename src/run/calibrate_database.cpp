#include "run/calibrate_database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/text.h"
#include "einsum/check/check.h"
#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/formats/format_plan.h"
#include "run/compile.h"
#include "run/database_weights.h"
#include "run/random_input.h"
#include "sql/program/run.h"

namespace einrel {
namespace {

/// A statement for Z over X, Y (matrices) and r (a vector), and how its labels are cut: into chunks of at most so many,
/// in the order of label_extents: those of the result, then reduced ones. `all` leaves a label whole.
struct Query {
  const char* dims;
  const char* text;
  std::vector<std::int64_t> chunks;
  const char* x = "";  ///< the format that X has before; else the one in which it is read
};

constexpr std::int64_t all = INT64_MAX;

constexpr const char* product = "input X[i,j], Y[j,k] : f64\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n";
constexpr const char* product32 = "input X[i,j], Y[j,k] : f32\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n";
constexpr const char* sum_of_two = "input X[i,j], Y[i,j] : f64\nZ[i,j] = X[i,j] + Y[i,j]\n";
constexpr const char* scaled = "input X[i,j], r[j] : f64\nZ[i,j] = X[i,j] * r[j]\n";
constexpr const char* exponentials = "input X[i,j] : f64\nZ[i,j] = exp(X[i,j])\n";
constexpr const char* sum_of_rows = "input X[i,j] : f64\nZ[j] = sum[i] X[i,j]\n";
constexpr const char* largest_of_rows = "input X[i,j] : f64\nZ[i] = max[j] X[i,j]\n";
constexpr const char* turned = "input X[i,j] : f64\nZ[j,i] = X[i,j]\n";
constexpr const char* doubled = "input X[i,j] : f64\nZ[i,j] = X[i,j] * 2\n";

const std::vector<Query>& queries() {
  static const std::vector<Query> found{
      {"i=300 j=300 k=300", product, {all, all, all}},
      {"i=1000 j=1000 k=1000", product, {all, all, all}},
      {"i=1000 j=1000 k=1000", product32, {all, 100, all}},
      {"i=1000 j=1000 k=1000", product, {100, all, all}},
      {"i=1000 j=1000 k=1000", product, {100, 100, all}},
      {"i=1000 j=1000 k=1000", product, {100, 100, 100}},
      {"i=1000 j=1000 k=1000", product, {all, all, 100}},
      {"i=2000 j=200 k=100", product32, {10, all, all}},
      {"i=200 j=200 k=200", product, {10, 10, 10}},
      {"i=500 j=500 k=500", product, {10, 10, all}},
      {"i=2000 j=50 k=50", product, {1, all, all}},
      {"i=60 j=1000 k=60", product, {1, 1, all}},
      {"i=100 j=100 k=20000", product, {all, 1000, all}},
      {"i=100 j=100 k=20000", product, {all, 10, all}},
      {"i=20 j=20 k=20", product, {1, 1, 1}},
      {"i=100 j=2000 k=100", product, {all, all, 1}},
      {"i=1000 j=1000", sum_of_two, {all, all}},
      {"i=1000 j=1000", sum_of_two, {100, all}},
      {"i=1000 j=1000", sum_of_two, {100, 100}},
      {"i=1000 j=1000", sum_of_two, {1, all}},
      {"i=100 j=100", sum_of_two, {1, 1}},
      {"i=1000 j=1000", scaled, {10, all}},
      {"i=1000 j=1000", exponentials, {all, all}},
      {"i=1000 j=1000", exponentials, {100, 100}},
      {"i=1000 j=1000", sum_of_rows, {all, 100}},
      {"i=1000 j=1000", sum_of_rows, {100, 1}},
      {"i=1000 j=1000", largest_of_rows, {100, all}},
      {"i=1000 j=1000", turned, {all, all}},
      {"i=1000 j=1000", turned, {100, 100}},
      {"i=1000 j=1000", doubled, {all, all}, "row"},
      {"i=400 j=400", doubled, {1, all}, "single"},
      {"i=1000 j=1000", doubled, {all, 100}, "row-strip-100"},
      {"i=1000 j=1000", doubled, {100, 100}, "single"},
      {"i=1000 j=1000", doubled, {100, all}, "tile-100-100"},
      {"i=500 j=500", doubled, {100, 100}, "tile-10-10"},
      {"i=500 j=500", doubled, {10, 10}, "row-strip-100"},
      {"i=300 j=300", doubled, {all, 10}, "row"},
      {"i=150 j=150", doubled, {all, 1}, "row"},
      {"i=100 j=100", doubled, {1, all}, "element"},
      {"i=100 j=100", doubled, {1, 1}, "single"},
  };
  return found;
}

GraphCuts cuts_of(const EinGraph& graph, const Query& query) {
  GraphCuts cuts;
  for (const Vertex& vertex : graph.vertices) cuts.parts.emplace_back(label_extents(vertex).size(), 1);
  const std::size_t last = graph.vertices.size() - 1;
  const Shape extents = label_extents(graph.vertices[last]);
  invariant(extents.size() == query.chunks.size(), "each label has chunks");
  for (std::size_t l = 0; l < extents.size(); ++l) cuts.parts[last][l] = parts_of(extents[l], query.chunks[l]);
  for (const NeededFormat& need : implementation_of(graph, last, cuts.parts[last]).reads) {
    for (std::size_t d = 0; d < need.format.size(); ++d) cuts.parts[need.tensor][d] = need.format[d].parts;
  }
  if (*query.x == '\0') return cuts;
  const TensorFormat before = cuts_in(format_named(query.x), graph.vertices[0].bound);
  for (std::size_t d = 0; d < before.size(); ++d) cuts.parts[0][d] = before[d].parts;
  return cuts;
}

/// The least time of each part over a few runs, in transactions that are undone.
std::map<sql::Work, double> least_times(sql::Database& database, const sql::DatabaseRun& run) {
  constexpr int least_rounds = 2;
  constexpr int most_rounds = 5;
  constexpr std::chrono::duration<double> enough{0.4};
  const auto start = std::chrono::steady_clock::now();
  std::map<sql::Work, double> least;
  for (int round = 0; round < most_rounds; ++round) {
    if (round >= least_rounds && std::chrono::steady_clock::now() - start > enough) break;
    for (const auto& [work, seconds] : sql::run(database, run).seconds) {
      const auto [known, is_new] = least.try_emplace(work, seconds);
      if (!is_new) known->second = std::min(known->second, seconds);
    }
  }
  return least;
}

std::string formats_text_of(const EinGraph& graph, const FormatPlan& plan) {
  std::string text;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v)
    text +=
        fmt::format(", {} {}", graph.vertices[v].name, format_text(plan.vertices[v].format, graph.vertices[v].bound));
  return text;
}

void measure(sql::Database& database, const Query& query, const FormatWeights& before, const std::stop_token& stop,
             std::vector<MeasuredQuery>& measured) {
  const std::string text = fmt::format("dims {}\n{}", query.dims, query.text);
  const EinGraph graph = compile("calibrate", *parse_and_check(SourceText("calibrate", text), {}).graph).graph;
  const FormatPlan plan = costs_of_formats(graph, cuts_of(graph, query), before);
  const ScalarBindings none;
  sql::DatabaseRun run{.graph = graph,
                       .scalars = none,
                       .inputs = {},
                       .outputs = {},
                       .chunked = {plan.cuts, {}},
                       .stop = stop,
                       .is_kept = false};
  for (const Vertex& vertex : graph.vertices) {
    run.chunked.reasons[vertex.name] = "calibration";
    if (is_input(vertex)) run.inputs.emplace(vertex.name, random_tensor(1, vertex.name, vertex.dtype, vertex.bound));
  }
  const std::map<sql::Work, double> seconds = least_times(database, run);
  const Vertex& last = graph.vertices.back();
  const VertexFormat& own = plan.vertices.back();
  const std::string about = formula(last, graph) + formats_text_of(graph, plan);
  measured.push_back({about, {own.cost, seconds.at({sql::WorkKind::compute, last.name, {}})}});
  for (const auto& [work, spent] : seconds) {
    if (work.kind != sql::WorkKind::transform) continue;
    invariant(own.transformations.size() == 1, "X alone is brought to another format");
    const Transformation& change = own.transformations.front();
    const Shape& bound = graph.vertices[change.tensor].bound;
    measured.push_back({fmt::format("X {} from {} to {}", to_string(bound), format_text(change.from, bound),
                                    format_text(change.to, bound)),
                        {change.cost, spent}});
  }
}

}  // namespace

std::vector<MeasuredQuery> measure_queries(sql::Database& database, const FormatWeights& before,
                                           const std::stop_token& stop) {
  std::vector<MeasuredQuery> measured;
  for (const Query& query : queries()) measure(database, query, before, stop, measured);
  return measured;
}

namespace {

/// Those that were measured.
std::vector<std::pair<const char*, double>> named_weights(const FormatWeights& weights) {
  std::vector<std::pair<const char*, double>> named{
      {"an operation", weights.operation},        {"a tuple", weights.tuple},
      {"a byte that is read", weights.read_byte}, {"a byte of arrays", weights.intermediate_byte},
      {"a statement", weights.statement},         {"a piece", weights.piece},
      {"a stored byte", weights.stored_byte}};
  if (weights.workers > 1) named.emplace_back("a byte that is sent", weights.network_byte);
  return named;
}

/// What keeps weights from being believed; "" where nothing does.
std::string doubt_of(const FittedWeights& fitted) {
  constexpr double least_r_squared = 0.7;
  if (fitted.r_squared < least_r_squared)
    return fmt::format("R^2 is {:.2f}, below {}: their times do not follow from what they do", fitted.r_squared,
                       least_r_squared);
  std::vector<std::string> free;
  for (const auto& [what, weight] : named_weights(fitted.weights)) {
    if (weight <= 0) free.emplace_back(what);
  }
  return free.empty() ? "" : fmt::format("these seem to take no time: {}", fmt::join(free, ", "));
}

/// Each query once, with the less of its times.
std::vector<MeasuredQuery> least_of(std::vector<MeasuredQuery> measured, const std::vector<MeasuredQuery>& again) {
  invariant(measured.size() == again.size(), "queries are the same each time");
  for (std::size_t q = 0; q < measured.size(); ++q)
    measured[q].measured.seconds = std::min(measured[q].measured.seconds, again[q].measured.seconds);
  return measured;
}

FittedWeights fit(const std::vector<MeasuredQuery>& measured, const FormatWeights& before) {
  std::vector<MeasuredCost> costs;
  for (const MeasuredQuery& query : measured) costs.push_back(query.measured);
  return fit_weights(costs, before);
}

}  // namespace

BelievedWeights believed_weights(const std::function<std::vector<MeasuredQuery>()>& measure,
                                 const FormatWeights& before) {
  constexpr int most_rounds = 2;
  BelievedWeights found{measure(), {}};
  for (int round = 1;; ++round) {
    found.fitted = fit(found.measured, before);
    const std::string doubt = doubt_of(found.fitted);
    if (doubt.empty()) return found;
    if (round == most_rounds)
      throw RunError(
          fmt::format("{} queries were measured {} times, and still {}. The weights stay as they were; try again when "
                      "less runs on the machine",
                      found.measured.size(), most_rounds, doubt));
    found.measured = least_of(std::move(found.measured), measure());
  }
}

std::string keep_weights(const std::string& server, const BelievedWeights& found, double seconds) {
  const auto& [measured, fitted] = found;
  const MeasuredQuery& worst = measured[fitted.worst];
  const FormatWeights& weights = fitted.weights;
  const std::string about = fmt::format("{} queries, R^2 {:.2f}", measured.size(), fitted.r_squared);
  const std::string path = prepare_settings(database_weights_file);
  write_text(path, to_json(with_weights(calibrated_databases(), {server, about, weights})));
  return fmt::format(
      "measured {} queries in {}\n  an operation      {:.3g} ns\n{}  a tuple           {:.3g} us\n"
      "  a byte read       {:.3g} ns\n  a byte of arrays  {:.3g} ns\n  a statement       {:.3g} ms\n"
      "  a piece           {:.3g} us\n  a stored byte     {:.3g} ns\n"
      "  R^2 {:.3f} (of the logarithms of seconds)\n  worst: {}\n    predicted {}, measured {}\n"
      "wrote {}: formats for {} are chosen by these weights",
      measured.size(), seconds_text(seconds), weights.operation * 1e9,
      weights.workers > 1 ? fmt::format("  a byte sent       {:.3g} ns\n", weights.network_byte * 1e9) : "",
      weights.tuple * 1e6, weights.read_byte * 1e9, weights.intermediate_byte * 1e9, weights.statement * 1e3,
      weights.piece * 1e6, weights.stored_byte * 1e9, fitted.r_squared, printable(worst.about, 200),
      seconds_text(seconds_of(worst.measured.cost, weights)), seconds_text(worst.measured.seconds), printable(path),
      printable(server));
}

std::string keep_calibrated_database(const std::string& url, const std::stop_token& stop) {
  prepare_settings(database_weights_file);
  calibrated_databases();  // throws while nothing is measured
  const std::unique_ptr<sql::Database> database = sql::open_database(url);
  const std::stop_callback interrupt(stop, [&database] { database->interrupt(); });
  FormatWeights before = assumed_weights(database->dialect());
  before.workers = static_cast<double>(database->workers());
  const auto start = std::chrono::steady_clock::now();
  const BelievedWeights found = believed_weights([&] { return measure_queries(*database, before, stop); }, before);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return keep_weights(database->server(), found, seconds);
}

}  // namespace einrel
