#pragma once

#include <string>

#include "run/algebra_facts.h"

namespace einrel {

/// Both algebras, with types, placements and floats moved per operation; with a search, its derivation rule by rule.
std::string algebra_text(const AlgebraFacts& facts);

}  // namespace einrel
