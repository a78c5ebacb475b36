#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

/// The words for complex numbers, which only programs have: no graph does (complex.h).
namespace einrel {

/// complex(a, b) makes complex numbers of two real ones.
enum class ComplexFunction : std::uint8_t { complex, conj, real, imag };

std::optional<ComplexFunction> complex_named(std::string_view name);
/// The type of the parts of a complex type: f32 of "c64", f64 of "c128".
std::optional<DType> parts_of_type_named(std::string_view name);

std::string_view name_of(ComplexFunction function);
/// "c64" of f32, "c128" of f64.
std::string_view name_of_complex(DType parts);

}  // namespace einrel
