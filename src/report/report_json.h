#pragma once

#include <map>
#include <string>

#include "report/explanation.h"
#include "run/session.h"
#include "run/summary.h"

namespace einrel {

/// A run that is over; of a job, what all ranks did together.
struct RunOutcome {
  const Explanation& explained;  ///< of the program as it ran
  const Chosen& chosen;
  const PlanRunReport& report;
  std::map<std::string, Summary> summaries;  ///< of outputs
  std::map<std::string, std::string> files;  ///< where inputs came from
};

/// What `explain --json` prints (docs/explain-json.md), as text; the page reads it.
std::string explanation_json(const Explanation& explained);

/// What `run --json` prints: the same, with what was measured.
std::string run_json(const RunOutcome& run);

}  // namespace einrel
