#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tra/text/parse.h"

namespace einrel::test {

/// "line:column message | help" of every error; empty when the program is right.
inline std::vector<std::string> mistakes(const std::string& text) {
  std::vector<std::string> found;
  try {
    parse_tra(SourceText("test.tra", text));
  } catch (const ProgramError& error) {
    const SourceText source("test.tra", text);
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      std::string place;
      if (!diagnostic.marks.empty()) {
        const LineColumn at = source.locate(diagnostic.marks.front().begin);
        place = fmt::format("{}:{} ", at.line, at.column);
      }
      found.push_back(place + diagnostic.message + (diagnostic.help.empty() ? "" : " | " + diagnostic.help));
    }
  }
  return found;
}

}  // namespace einrel::test
