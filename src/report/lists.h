#pragma once

#include <string>

namespace einrel {

/// `einrel list kernels`.
std::string kernels_text();

/// `einrel list rules`: every rule with what it says, when it applies, and its example before and after.
std::string rules_text();

}  // namespace einrel
