#include "report/cuts_json.h"

#include <nlohmann/json.hpp>

namespace einrel {

using nlohmann::ordered_json;

ordered_json cut_json(const CutFacts& cut) {
  ordered_json sites = ordered_json::object();
  for (const LabelSites& label : cut.labels) {
    if (label.sites > 1) sites[label.label] = label.sites;
  }
  ordered_json json{{"sites", std::move(sites)}};
  if (cut.scatter) json["scatter"] = cut.scatter->label;
  if (cut.all_reduced) json["all_reduced"] = true;
  if (cut.copies > 1) json["copies"] = cut.copies;
  return json;
}

ordered_json runner_up_json(const RunnerUpFacts& other) {
  const auto name_or_null = [](const std::optional<std::string>& name) {
    return name ? ordered_json(*name) : ordered_json();
  };
  ordered_json json = cut_json(other.cut);
  json["more"] = other.more;
  json["more_there"] = other.more_there;
  json["moving"] = name_or_null(other.moving);
  json["to"] = name_or_null(other.to);
  return json;
}

ordered_json other_cuts_json(const EinGraph& graph, const std::vector<OtherCutFacts>& cuts) {
  ordered_json all = ordered_json::array();
  for (const OtherCutFacts& of : cuts) {
    ordered_json vertices = ordered_json::array();
    for (const std::size_t v : of.vertices) vertices.push_back(graph.vertices[v].name);
    ordered_json ways = ordered_json::array();
    for (const RunnerUpFacts& other : of.best) {
      ways.push_back(cut_json(other.cut));
      ways.back()["more"] = other.more;
    }
    all.push_back({{"vertices", std::move(vertices)}, {"cuts", std::move(ways)}});
  }
  return all;
}

ordered_json whole_labels_json(const std::vector<WholeLabel>& whole) {
  ordered_json json = ordered_json::object();
  for (const WholeLabel& label : whole) json[label.label] = label.reason;
  return json;
}

ordered_json sent_json(const std::optional<SentFacts>& sent) {
  if (!sent) return nullptr;
  return {{"sites_together", sent->group}, {"bytes", sent->bytes}};
}

ordered_json held_json(const EinGraph& graph, const std::vector<HeldForSome>& held) {
  ordered_json all = ordered_json::array();
  for (const HeldForSome& each : held) {
    all.push_back({{"name", graph.vertices[each.tensor.vertex].name},
                   {"as", std::string(name_of(each.tensor.as))},
                   {"bytes", each.tensor.bytes},
                   {"from", each.from},
                   {"to", each.to}});
  }
  return all;
}

}  // namespace einrel
