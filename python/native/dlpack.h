#pragma once

#include <nanobind/nanobind.h>

namespace einrel::python {

/// A tensor that goes from one library to another by DLPack, as a capsule that nobody has taken over yet: NumPy has no
/// bfloat16, and hands on 16-bit integers in its place. Changes bfloat16 to those, or back, and says whether it was.
/// Throws as Python does where it is no such capsule.
bool exchange_bf16(nanobind::handle capsule, bool to_bits);

}  // namespace einrel::python
