#pragma once

#include <string>

#include "base/error.h"
#include "ia/parse.h"

namespace einrel::test {

/// What is said of a plan that cannot be read; empty where it can.
inline std::string error_of(const std::string& text, std::int64_t sites = 4) {
  try {
    parse_ia(SourceText("test.ia", text), sites);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace einrel::test
