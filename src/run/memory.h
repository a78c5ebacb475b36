#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace einrel {

/// What this process can still get: the least of what the machine has free, what its control group and what its own
/// address space allow. Unset where the system does not say.
std::optional<std::int64_t> available_memory();

/// Throws RunError when the machine has less than `needed` bytes left for `what`, as in "computing 'Z'", also without
/// what idle threads keep.
void check_available(std::int64_t needed, const std::string& what, std::string_view limit);

/// The largest memory this process has had so far, mapped files included, if the system says so.
std::optional<std::int64_t> peak_resident_bytes();

/// How much of this process's memory now is pages of files: mapped inputs and the program itself, not what it
/// allocated. The system takes them back when memory is short. If the system says so.
std::optional<std::int64_t> resident_file_bytes();

}  // namespace einrel
