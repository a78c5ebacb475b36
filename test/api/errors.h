#pragma once

#include <einrel/einrel.h>

#include <string>

namespace einrel::test {

/// What a function throws as this kind of error and no other; "" when it throws nothing.
template <class Kind = UserError, class Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const Kind& error) {
    return error.what();
  }
  return "";
}

}  // namespace einrel::test
