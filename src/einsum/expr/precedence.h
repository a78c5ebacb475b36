#pragma once

#include <cstdint>
#include <string>

#include "einsum/expr/functions.h"

namespace einrel {

/// How tightly an operation binds, loosest first (docs/language.md, "Expressions"), so that parentheses stand only
/// where they are needed.
enum class Precedence : std::uint8_t { comparison, sum, reduction, product, sign, power, primary };

Precedence precedence_of(BinaryFunction function);

/// As the language writes it: "0.1", "1e-05", "inf", "-inf".
std::string number_text(double value);

}  // namespace einrel
