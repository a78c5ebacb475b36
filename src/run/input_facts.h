#pragma once

#include <string>
#include <vector>

#include "exec/executors/executor.h"
#include "exec/job/alike.h"
#include "tensor/stored_tensor.h"

namespace einrel {

/// What ranks have to have alike of a tensor that each of them reads: type, shape and elements (exec/memory/digests.h).
/// `what` is how messages call it: "input A".
void add_facts(const std::string& what, DType dtype, const Shape& bound, const InputSource& source,
               std::vector<Fact>& facts);
/// The same of one in a file, or as in a file.
void add_facts(const std::string& what, const StoredTensor& file, std::vector<Fact>& facts);

/// Of scalars, by name.
void add_facts(const ScalarBindings& scalars, std::vector<Fact>& facts);

}  // namespace einrel
