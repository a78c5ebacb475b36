#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "engine/kernels.h"

namespace einrel {

/// How much is said of each vertex.
enum class Detail : std::uint8_t {
  folded,  ///< its formula and figures, equal layers once
  full,    ///< every vertex by itself, with all that decides how it is computed
};

/// The compiled program for people, as it runs vertex by vertex in one process: a summary, then each vertex with its
/// formula, operations, bytes and kernel. Lines are those of `source`.
std::string explain_text(const Compiled& compiled, const SourceText& source, Detail detail);

/// Each input and vertex with its formula, labels and extents, flops, share, bytes and kernel, then the contraction
/// orders with what they saved.
std::string vertices_text(const Compiled& compiled, const std::vector<std::optional<VertexKernel>>& kernels);

}  // namespace einrel
