#pragma once

#include <set>
#include <string>

#include "plan/formats/format_plan.h"
#include "sql/program/program_script.h"

namespace einrel {

/// The formats in which a program runs in a database.
struct ChosenFormats {
  Formats given;
  FormatWeights weights;
  FormatPlan plan;
};

/// Why a tensor has its format where that was not chosen: "as --formats says"; "" where it was.
std::string given_text(const ChosenFormats& chosen, const std::string& tensor);
/// Whether it is a table of chunks, which stay as they are.
bool lies_so(const ChosenFormats& chosen, const std::string& tensor);

/// As the user says; what that leaves open is what costs least. A view that becomes a table of chunks (`kept` are the
/// names of such tensors) is not cut: chunks in units would be none that an input can have. Throws UserError as
/// plan_formats and cuts_for do, and for another format of such a view.
ChosenFormats choose_formats(const EinGraph& graph, const Formats& given, const FormatWeights& weights = {},
                             const std::set<std::string>& kept = {});

/// What sql takes: the cuts, and for each tensor its format and what another one would cost.
sql::ChunkedGraph chunked_graph(const EinGraph& graph, const ChosenFormats& chosen);

}  // namespace einrel
