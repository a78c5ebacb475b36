#pragma once

#include <string>

#include "plan/formats/format_plan.h"
#include "sql/program_script.h"

namespace einrel {

/// The formats in which a program runs in a database.
struct ChosenFormats {
  Formats given;
  FormatWeights weights;
  FormatPlan plan;
};

/// Why a tensor has its format where that was not chosen: "as --formats says"; "" where it was.
std::string given_text(const ChosenFormats& chosen, const std::string& tensor);

/// As the user says; what that leaves open is what costs least. Throws UserError as plan_formats and cuts_for do.
ChosenFormats choose_formats(const EinGraph& graph, const Formats& given, const FormatWeights& weights = {});

/// What sql takes: the cuts, and for each tensor its format and what another one would cost.
sql::ChunkedGraph chunked_graph(const EinGraph& graph, const ChosenFormats& chosen);

}  // namespace einrel
