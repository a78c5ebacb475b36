#pragma once

#include <string>
#include <vector>

namespace einrel::sql {

/// One statement of a script.
struct Statement {
  std::string about;  ///< what it computes and how, for people; "" for one that needs no word
  std::string text;   ///< without the semicolon
};
using Script = std::vector<Statement>;

/// The script as people read it and a shell runs it: in one transaction, each statement below its comment.
std::string to_text(const Script& script);

/// "k0, k1, " for keys of two positions, each with `before` in front.
std::string key_columns(std::size_t arity, const std::string& before = "");

}  // namespace einrel::sql
