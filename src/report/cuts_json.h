#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/plan_facts.h"

namespace einrel {

/// A way to cut a vertex: sites by label, and where there are any, `scatter`, `all_reduced` and `copies`.
nlohmann::ordered_json cut_json(const CutFacts& cut);

/// The second best way to compute a vertex, and where it loses.
nlohmann::ordered_json runner_up_json(const RunnerUpFacts& other);

/// The best other ways to cut vertices, those together that are alike: what each makes the whole plan cost more.
nlohmann::ordered_json other_cuts_json(const EinGraph& graph, const std::vector<OtherCutFacts>& cuts);

/// By label, why no plan cuts it.
nlohmann::ordered_json whole_labels_json(const std::vector<WholeLabel>& whole);

/// Who sends how many bytes to whom; null where nobody has counted.
nlohmann::ordered_json sent_json(const std::optional<SentFacts>& sent);

/// What the site with the peak ever holds: while the vertices at places `from` to `to` of the plan are computed.
nlohmann::ordered_json held_json(const EinGraph& graph, const std::vector<HeldForSome>& held);

}  // namespace einrel
