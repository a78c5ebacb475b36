#include "einsum/expr/precedence.h"

#include <fmt/format.h>

#include <cmath>

namespace einrel {

Precedence precedence_of(BinaryFunction function) {
  switch (function) {
    case BinaryFunction::add:
    case BinaryFunction::subtract: return Precedence::sum;
    case BinaryFunction::multiply:
    case BinaryFunction::divide: return Precedence::product;
    case BinaryFunction::power: return Precedence::power;
    case BinaryFunction::maximum:
    case BinaryFunction::minimum: return Precedence::primary;
    default: return Precedence::comparison;
  }
}

std::string number_text(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{}", value);
}

}  // namespace einrel
