#pragma once

#include <string>

namespace einrel {

/// The plans of a program as one HTML page that needs nothing else: the graph, how each vertex is cut, where its chunks
/// lie, what moves and from whom to whom, what sites hold, and the costs of all plans side by side; of a run, what was
/// measured, too. `json` is from explanation_json or run_json (src/report).
std::string plans_html(const std::string& json);
/// Plans for several numbers of sites or machines as such a page: seconds and bytes as curves. `json` is from
/// sweep_json (src/report).
std::string sweep_html(const std::string& json);

}  // namespace einrel
