#pragma once

#include <map>
#include <string>
#include <vector>

#include "ia/ia_program.h"

namespace einrel {

/// The nodes of plans with names, a node the same in all: inputs and the outputs of the last plan by theirs, the others
/// t1, t2, ... in order.
std::map<IaId, std::string> names_of(const IaStore& store, const std::vector<IaPlan>& plans);
/// One operation over named inputs: "local_join(<1>, <0>, matMul)(t1, B)"; an input: "input A[4,4] : f32 cut <2,2> on
/// <0>".
std::string to_text(const IaStore& store, IaId id, const std::map<IaId, std::string>& names);
/// The same with its inputs written out, down to the relations in `leaves` and what they need:
/// "local_join(<1>, <0>, matMul)(bcast(A), t1)".
std::string nested_text(const IaStore& store, IaId id, const std::vector<IaId>& leaves,
                        const std::map<IaId, std::string>& names);
/// "output C, D = t3"
std::string outputs_text(const IaPlan& plan, const std::map<IaId, std::string>& names);
/// The plan in the form that parse_ia reads, one operation per line: "t1 = bcast(A)".
std::string to_text(const IaStore& store, const IaPlan& plan);

}  // namespace einrel
