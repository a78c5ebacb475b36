#pragma once

#include <string>

namespace einrel::python {

/// A line of Python's.
struct UserLine {
  const std::string* file = nullptr;  ///< of which there is one for each; none where the line is unknown
  int number = 0;
};

/// That of the user's code which called us, perhaps through another library (`einrel._lines`). Under Python's lock.
UserLine line_of_user();

}  // namespace einrel::python
