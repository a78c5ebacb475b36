#pragma once

#include <stdexcept>
#include <string>

namespace einrel {

/// The user's program or data are wrong; the message names what to change. Exit code 1.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The run failed for a reason outside the program: memory, disk, a rank. Exit code 2.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An invariant of Einrel itself is broken. No input may reach this. Exit code 3.
class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws Bug with `what` unless `condition` holds.
inline void invariant(bool condition, const char* what) {
  if (!condition) throw Bug(what);
}

}  // namespace einrel
