#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/source.h"
#include "einsum/front/build/program.h"
#include "tra/kernel.h"

namespace einrel {

/// One row of the registry: a kernel by name.
struct NamedKernel {
  std::string_view name;
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
/// its indices, it is read so for its extents.
struct KernelDefinition {
  struct Parameter {
    build::Name name;
    std::vector<std::optional<build::Index>> indices;  ///< nothing for a group of labels, as views have them
  };
  using Value = std::variant<build::Definition, build::ViewDefinition>;
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<Value> values;  ///< each may read the parameters and the values before it; the last is the result
  std::vector<build::Dim> dims{};
  std::vector<std::string> scalars{};  ///< named scalars that it may use
  Span where{};                        ///< of what is wrong with the whole
};

/// nullopt with `errors` added when the definition has some.
std::optional<Kernel> kernel_from(const KernelDefinition& definition, const std::vector<DType>& dtypes,
                                  std::vector<Diagnostic>& errors);

/// The same kernel with operands in the order in which bodies first use them (unused ones last, by what they read) and
/// labels in the order output, reduced: as kernel_from makes it.
Kernel in_reading_order(Kernel kernel);

}  // namespace einrel
