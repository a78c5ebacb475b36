#pragma once

#include <string>
#include <utility>

namespace einrel::api {

/// A text of the rooms below, which speak to users of the command, with its options as those of this interface:
/// "--memory 2 GB" becomes "memory=2 GB", "--feed X=FILE" becomes "feeds['X']". O(length).
std::string as_options(std::string text);

/// Throws the exception that is being handled as one of einrel/error.h.
[[noreturn]] void rethrow_as_public();

/// Calls a function whose exceptions become those of einrel/error.h: every public function that calls other rooms does
/// its work in here.
template <class Function>
decltype(auto) at_border(Function&& function) {
  try {
    return std::forward<Function>(function)();
  } catch (...) {
    rethrow_as_public();
  }
}

}  // namespace einrel::api
