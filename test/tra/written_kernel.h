#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tra/named_kernels.h"
#include "tra/text/call_tree.h"

namespace einrel::test {

/// The kernel of a statement; throws ProgramError.
inline Kernel define(const std::string& statement, const std::vector<DType>& dtypes) {
  const SourceText source("test.tra", "kernel " + statement);
  std::vector<Diagnostic> errors;
  const calls::Program program = calls::parse(source, errors);
  if (!errors.empty()) throw ProgramError(std::move(errors), source);
  const auto& definition = std::get<calls::KernelStatement>(program.statements.front().what).definition;
  std::optional<Kernel> kernel = kernel_from(definition, dtypes, errors);
  if (!kernel) throw ProgramError(std::move(errors), source);
  return *kernel;
}

}  // namespace einrel::test
