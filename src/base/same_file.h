#pragma once

#include <string>
#include <vector>

namespace einrel {

/// Whether two paths lead to one file, through links or not, also where none is there yet.
bool is_same_file(const std::string& first, const std::string& second);

/// Throws UserError, with the remedy, where a file to be written is one of those that are read, also by another path or
/// through a link.
void refuse_same_file(const std::vector<std::string>& written, const std::vector<std::string>& read,
                      const char* remedy);

}  // namespace einrel
