#pragma once

#include <string>

#include "report/report_json.h"

namespace einrel {

/// What was predicted of a run beside what was measured: per vertex bytes and seconds, then in all, per site. Of a plan
/// of relations per operation; of its seconds and memory nothing is predicted.
std::string analysis_text(const RunOutcome& run);

}  // namespace einrel
