#pragma once

#include <map>
#include <string>

#include "base/source.h"
#include "engine/choose_plan.h"
#include "engine/report/summary.h"

namespace einrel {

/// A run that is over; of a job, what all ranks did together.
struct RunOutcome {
  const AnyProgram& program;  ///< as it ran: Chosen::recomputed
  std::string name;           ///< of its text
  const Chosen& chosen;
  const PlanRunReport& report;
  std::map<std::string, Summary> summaries;  ///< of outputs
  LayoutBindings layouts;                    ///< of inputs
  std::map<std::string, std::string> files;  ///< where inputs came from
};

/// How a program is going to run, for people. Lines are those of `source`.
std::string explained_text(const AnyProgram& program, const Chosen& chosen, const SourceText& source);

/// What was predicted of a run by a plan beside what was measured.
std::string analysis_text(const RunOutcome& outcome);

/// What `run --json` prints (docs/language.md, "JSON"), as text.
std::string run_json(const RunOutcome& outcome);

}  // namespace einrel
