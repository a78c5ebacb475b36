#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "einsum/check.h"
#include "einsum/reference.h"
#include "engine/compile.h"
#include "tensor/stored_tensor.h"

namespace einrel::cli {

/// Whether a path names a program in the tensor relational algebra instead of the language: it ends with .tra.
bool is_tra(const std::string& path);
/// Throws UserError for such a path: only explain takes those.
void refuse_tra(const std::string& path);

/// The text of a program; "-" is standard input. Throws UserError when it cannot be read.
SourceText read_program(const std::string& path);

/// The files that inputs are bound to, opened but not read.
using OpenInputs = std::map<std::string, StoredTensor>;

/// --in NAME=FILE ...
OpenInputs open_inputs(const std::vector<std::string>& given);

/// What the checks need to know of a file.
BoundInput describe(const StoredTensor& file);

/// The graph of a checked program; throws UserError that lists the extents that are still open.
EinGraph require_graph(CheckedProgram& checked, const SourceText& program);

/// Throws UserError that lists the inputs that have neither a file nor, as there is no seed, random values.
void check_inputs_given(const Compiled& compiled, const OpenInputs& files, const std::optional<std::uint64_t>& seed);

/// A tensor for every input of `graph`: from its file, else random when there is a seed. Throws as
/// check_inputs_given does, RunError when the run would not fit in memory.
TensorBindings load_inputs(const Compiled& compiled, const OpenInputs& files, const std::optional<std::uint64_t>& seed);

}  // namespace einrel::cli
