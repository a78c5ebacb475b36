#pragma once

#include <optional>

#include "einsum/front/build/formula.h"

/// Arithmetic on formulas of float values that leaves out what changes nothing: numbers are computed, factors of 1 and
/// terms of 0 vanish.
namespace einrel::gradient {

std::optional<double> number_of(const build::Formula& formula);

build::Formula sum(const build::Formula& a, const build::Formula& b);
build::Formula difference(const build::Formula& a, const build::Formula& b);
/// a * (1 / b) and (1 / b) * a are a / b.
build::Formula product(const build::Formula& a, const build::Formula& b);
build::Formula quotient(const build::Formula& a, const build::Formula& b);
build::Formula negative(const build::Formula& a);
/// What is negated, if anything is.
std::optional<build::Formula> negated(const build::Formula& formula);

/// 0 where a condition does not hold; the value is not looked at there.
build::Formula only_where(const build::Formula& condition, const build::Formula& value);

}  // namespace einrel::gradient
