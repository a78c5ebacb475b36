#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "kernel/workers.h"
#include "tra/kernel.h"
#include "tra/signature.h"

namespace einrel::sql {

/// The kernels that SQL calls by their text: the name of one in the registry ("matMul"), or a kernel statement of
/// docs/algebra.md ("kernel Z(A[i,j], B[j,k]) -> [i,k] = sum[j] A[i,j] * B[j,k]"). What was added is found as it is;
/// any other text is read, once for each combination of types.
class KernelTable {
 public:
  /// The text for a kernel that takes arrays of these ranks.
  std::string add(const Kernel& kernel, const std::vector<std::size_t>& ranks);
  /// Those that were added.
  void forget() { kernels_.clear(); }
  /// It stands until the next call. Throws UserError for a text that is no kernel, or none for arrays of these types
  /// and ranks.
  const Kernel& find(const std::string& text, const std::vector<Tensor>& arguments);

 private:
  /// The text, and the type and rank of each argument.
  using Key = std::tuple<std::string, std::vector<DType>, std::vector<std::size_t>>;
  std::map<Key, Kernel> kernels_;  ///< that were added
  std::map<Key, Kernel> read_;
};

/// A kernel without named scalars on arrays, step by step. Throws as evaluate of kernel/evaluate.h does, and UserError
/// when the arrays do not fit it, and when a step makes an array that no database holds.
Tensor call(const Kernel& kernel, const std::vector<Tensor>& arguments, Workers& workers);

}  // namespace einrel::sql
