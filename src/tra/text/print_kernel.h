#pragma once

#include <set>
#include <string>
#include <vector>

#include "tra/kernel.h"

namespace einrel {

/// Whether the registry makes exactly this kernel out of its name, for arguments of these ranks.
bool is_in_registry(const Kernel& kernel, const std::vector<std::size_t>& ranks);

/// The kernel statement that makes the kernel for arguments of these ranks, under the name `name`; of what no text of
/// the language says (to_text of print.h), one for people.
std::string kernel_statement(const Kernel& kernel, const std::string& name, const std::vector<std::size_t>& ranks);
/// The same, but always one that can be read: where the kernel itself has none, one that computes the same.
std::string readable_statement(const Kernel& kernel, const std::string& name, const std::vector<std::size_t>& ranks);

}  // namespace einrel
