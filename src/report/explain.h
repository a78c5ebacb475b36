#pragma once

#include <cstdint>
#include <string>

#include "base/source.h"
#include "report/explanation.h"

namespace einrel {

/// How much is said of each vertex.
enum class Detail : std::uint8_t {
  folded,  ///< its formula and figures, equal layers once
  full,    ///< every vertex by itself, with all that decides how it is computed
};

/// For people: a summary; per vertex what it takes, how it is cut and what moves, equal layers once; of several plans,
/// their costs and peaks side by side; the algebras, if they are known. In full every vertex stands by itself, with its
/// kernels, and why the second best way to cut it lost. Lines are those of `source`.
std::string explanation_text(const Explanation& explained, const SourceText& source, Detail detail);

}  // namespace einrel
