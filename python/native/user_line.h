#pragma once

#include <string>

namespace einrel::python {

/// A line of Python's.
struct UserLine {
  const std::string* file = nullptr;  ///< of which there is one for each; none where the line is unknown
  int number = 0;
};

/// That of the user's code which called us, perhaps through another library (`einrel._lines`), or the one that was
/// pushed last. Under Python's lock.
UserLine line_of_user();

/// From now on what this thread makes belongs to that line, until it is popped.
void push_line(const UserLine& line);
void pop_line();

}  // namespace einrel::python
