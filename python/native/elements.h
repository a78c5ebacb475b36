#pragma once

#include <nanobind/nanobind.h>

#include "node.h"

namespace einrel::python {

/// The type and the memory of an object with a buffer, which is kept; throws BufferError unless its elements are of a
/// type that Einrel computes with, in row-major order and aligned. The protocol has no letter for bf16: such elements
/// come as 16-bit integers, if `are_bf16`.
std::pair<TypePtr, Value> elements_of(nanobind::handle object, bool are_bf16);

/// The elements of a node that has them. Those in a mapped file are read first, and stay read, up to 1 GiB: NumPy,
/// which cannot be told that the file was cut short, gets no mapped memory. Throws RunError where it was.
Value in_memory(Node& node);

/// The other way round, for a class that holds a Value; bf16 as 16-bit integers.
extern PyType_Slot buffer_slots[];

}  // namespace einrel::python
