#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "einsum/front/build/program.h"

/// Complex numbers are a pass in front: a complex tensor is a real one with a last dimension of extent 2, real and
/// imaginary part, and a statement over complex tensors becomes one over those. Nobody behind it knows of them.
namespace einrel {

/// What the pass asks of a tensor that a definition reads.
struct ReadTensor {
  bool is_complex = false;
  std::size_t rank = 0;  ///< as the program sees it: without the dimension of the parts
  DType dtype = DType::f32;
};
using ReadTensors = std::function<std::optional<ReadTensor>(const std::string& name)>;

/// The labels of parts, which no text can name: that of a result, and those that products of complex numbers reduce.
std::string parts_label(std::size_t number);
bool is_parts_label(const std::string& label);

/// Definitions in real numbers.
struct RealDefinitions {
  std::vector<build::Definition> before;  ///< parts that several places need, which nobody names
  build::Definition definition;           ///< of a complex value with parts_label(0) behind its labels
  bool is_complex = false;
  std::size_t labels = 1;  ///< labels of parts that they have
};

/// Whether an expression says something of complex numbers by itself: complex(a, b), c64(x), conj(Z[i]).
bool has_complex(const build::Expr& expr);

/// Tensors that sums of products of complex tensors read, by name.
struct ComplexConstants {
  std::string product;  ///< P[a,b,c]: the part c of the product of the units that a and b stand for, 1 and i
  std::string signs;    ///< S[a]: 1 and -1, of the parts of a conjugate
};

/// A definition whose macros have been expanded, without complex numbers. A sum of products of complex tensors reads
/// the constants; so it stays one contraction, whose order is chosen later. Nothing, with errors added, where a
/// function of real numbers is taken of complex ones.
std::optional<RealDefinitions> without_complex(const build::Definition& definition, const ReadTensors& tensors,
                                               const ComplexConstants& constants, std::vector<Diagnostic>& errors);

/// What defines the constants.
std::vector<build::Definition> definitions_of(const ComplexConstants& constants);

}  // namespace einrel
