#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"
#include "tra/kernel.h"

namespace einrel {

/// One row of the registry: a kernel by name.
struct NamedKernel {
  std::string_view name;
  std::string_view usage;  ///< for people: "Z[i,k] = sum[j] A[i,j] * B[j,k]"
  std::size_t arguments;
};
const std::vector<NamedKernel>& all_named_kernels();
bool is_named_kernel(std::string_view name);

/// The kernel for arguments of these types and ranks. Throws UserError for an unknown name (with the nearest one), and
/// when the number of arguments, a rank or a type does not fit. "id" is the identity.
Kernel named_kernel(std::string_view name, const std::vector<DType>& dtypes, const std::vector<std::size_t>& ranks);

/// A kernel from its definition in the language:
///   kernel l2(A[i,j], B[j,k]) -> [i,k] = sum[j] sq(A[i,j] - B[j,k])
/// Arrays give the extents of the labels that index them plainly; `dims` gives the others, and may fix some of those.
/// A parameter's own indices say how many dimensions it has; where no body reads the parameter but knows the labels in
/// its indices, it is read so for its extents. Definitions in `given` come before the body and may be read in it.
struct KernelDefinition {
  /// Text in the language, and where it stands in the program that it is from.
  struct Piece {
    std::string text;
    Span where{};
  };
  struct Parameter {
    std::string name;
    Piece indices;  ///< as written between the brackets: "i,j", "b,(h d)"
  };
  struct Given {
    std::string name;
    Piece indices;
    Piece body;
  };
  std::string name;
  std::vector<Parameter> parameters;
  Piece result;  ///< "i,k"
  Piece body;    ///< "sum[j] sq(A[i,j] - B[j,k])", or "view" of the one parameter
  std::map<std::string, std::int64_t> dims{};
  std::vector<Given> given{};
  std::vector<std::string> scalars{};  ///< named scalars that it may use
  Span where{};
};

/// The number of indices in "i,j" or "b,(h d)".
std::size_t index_count(std::string_view indices);

/// Throws ProgramError, whose positions are those of a text made from the definition.
Kernel kernel_from(const KernelDefinition& definition, const std::vector<DType>& dtypes);
/// The same with errors at the pieces' own places; nullopt when there are some.
std::optional<Kernel> kernel_from(const KernelDefinition& definition, const std::vector<DType>& dtypes,
                                  std::vector<Diagnostic>& errors);

/// The same kernel with operands in the order in which bodies first use them (unused ones last, by what they read) and
/// labels in the order output, reduced: as kernel_from makes it.
Kernel in_reading_order(Kernel kernel);

}  // namespace einrel
