#pragma once

#include <string>
#include <vector>

#include "einsum/check/check.h"

namespace einrel {

/// A program checked without data; throws ProgramError.
inline CheckedProgram check_text(const std::string& text, const Environment& environment = {}) {
  return parse_and_check(SourceText("test.ein", text), environment);
}

/// Its graph; all extents must be known.
inline EinGraph graph_of(const std::string& text, const Environment& environment = {}) {
  return *check_text(text, environment).graph;
}

/// "line:column message" of every error of a program; empty when it is right.
inline std::vector<std::string> errors_of(const std::string& text, const Environment& environment = {}) {
  std::vector<std::string> errors;
  try {
    check_text(text, environment);
  } catch (const ProgramError& error) {
    const SourceText source("test.ein", text);
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      std::string place;
      if (!diagnostic.marks.empty()) {
        const LineColumn at = source.locate(diagnostic.marks.front().begin);
        place = std::to_string(at.line) + ":" + std::to_string(at.column) + " ";
      }
      errors.push_back(place + diagnostic.message);
    }
  }
  return errors;
}

}  // namespace einrel
