#pragma once

#include <cstddef>

#include "einsum/check/check_state.h"

/// Complex numbers leave a program while it is checked (complex.h): what is made of it is real.
namespace einrel::checking {

/// Whether a program says anything of complex numbers; all others are checked as if there were none.
bool has_complex_numbers(const build::Program& program);

/// From now on a label of parts has its extent.
void declare_parts(CheckState& state, std::size_t number);

/// The tensor of a definition that may read complex tensors, in real numbers; with is_complex where it is complex
/// itself.
TensorInfo checked_complex(CheckState& state, const build::Definition& definition, Span where);

}  // namespace einrel::checking
