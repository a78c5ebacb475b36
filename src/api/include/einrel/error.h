/// @file
/// What the functions of this interface throw: UserError, RunError or Bug, and nothing else.
#pragma once

#include <stdexcept>

namespace einrel::api {

/// What all errors of this interface have in common. `what()` is written for people: it names the tensor, label, file
/// or statement and what to do about it. It may have several lines: all mistakes of a program are reported at once,
/// each with the line of the program that it is in.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The program or its data are wrong: a syntax error, labels of different extents, an input that is missing, a damaged
/// file, a memory limit that nothing fits in. The command `einrel` ends with exit code 1 for it.
class UserError : public Error {
 public:
  using Error::Error;
};

/// All that is wrong is that a gradient was asked for which is 0 everywhere: nothing flows back to the variable.
class NoGradient : public UserError {
 public:
  using UserError::UserError;
};

/// The program is right, but running it failed: no memory, a full disk. The command ends with exit code 2 for it.
class RunError : public Error {
 public:
  using Error::Error;
};

/// Einrel itself is wrong; no program and no data may lead here. Please report it. The command ends with exit code 3.
class Bug : public Error {
 public:
  using Error::Error;
};

}  // namespace einrel::api
