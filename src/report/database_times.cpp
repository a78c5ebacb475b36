#include "report/database_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "einsum/graph/vertex_facts.h"
#include "tra/repartition.h"

namespace einrel {

DatabaseTimes::DatabaseTimes(const EinGraph& graph, const sql::DatabaseResults& results)
    : graph_(graph), results_(results) {}

std::optional<double> DatabaseTimes::take(const sql::Work& work, double times) {
  const auto found = results_.seconds.find(work);
  if (found == results_.seconds.end() || !taken_.insert(work).second) return std::nullopt;
  return found->second / times;
}

std::optional<double> DatabaseTimes::of_tensor(const Vertex& vertex) {
  return take({sql::WorkKind::compute, vertex.name, {}}, is_input(vertex) ? 1 : static_cast<double>(results_.steps));
}

std::optional<double> DatabaseTimes::of_transformation(const Vertex& tensor, const TensorFormat& to) {
  for (const auto& [work, seconds] : results_.seconds) {
    if (work.kind != sql::WorkKind::transform || work.tensor != tensor.name) continue;
    bool is_same = true;
    for (std::size_t d = 0; d < to.size(); ++d) is_same = is_same && same_chunks(tensor.bound[d], work.to[d], to[d]);
    if (is_same) return take(work, static_cast<double>(results_.steps));
  }
  return std::nullopt;
}

std::vector<DatabaseTimes::Rest> DatabaseTimes::rest() const {
  std::vector<Rest> found;
  double other = 0;
  for (const auto& [work, seconds] : results_.seconds) {
    if (taken_.count(work) != 0) continue;
    const auto tensor = std::find_if(graph_.vertices.begin(), graph_.vertices.end(),
                                     [&, &name = work.tensor](const Vertex& vertex) { return vertex.name == name; });
    if (work.kind == sql::WorkKind::other || tensor == graph_.vertices.end()) {
      other += seconds;
    } else if (work.kind == sql::WorkKind::transform) {
      found.push_back({fmt::format("{} to {}", work.tensor, format_text(work.to, tensor->bound)), seconds});
    } else {
      found.push_back(
          {fmt::format("{} {}", work.tensor, work.kind == sql::WorkKind::put_out ? "put out" : "computed"), seconds});
    }
  }
  found.push_back({"all else", other});
  return found;
}

double DatabaseTimes::in_all() const {
  double all = 0;
  for (const auto& [work, seconds] : results_.seconds) all += seconds;
  return all;
}

}  // namespace einrel
