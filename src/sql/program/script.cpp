#include "sql/program/script.h"

#include <fmt/format.h>

#include "sql/program/names.h"

namespace einrel::sql {

Script drop_script(const std::vector<std::string>& tables) {
  Script script;
  for (const std::string& table : tables) script.push_back({"", "DROP TABLE " + table});
  return script;
}

std::string to_text(const Script& script) {
  std::string text = "BEGIN;\n";
  for (const Statement& statement : script)
    text += fmt::format("\n{}{};\n", statement.about.empty() ? "" : comment(statement.about) + "\n", statement.text);
  return text + "\nCOMMIT;\n";
}

std::string kept_columns(std::size_t count) {
  std::string columns;
  for (std::size_t i = 0; i < count; ++i) columns += fmt::format("{}c{}", i == 0 ? "" : ", ", i);
  return columns;
}

std::string rows_of(const std::string& source, std::optional<std::int64_t> most) {
  return "SELECT * FROM " + source + (most ? fmt::format(" LIMIT {}", *most) : "");
}

std::string key_columns(std::size_t arity) {
  std::string columns;
  for (std::size_t i = 0; i < arity; ++i) columns += fmt::format("k{}, ", i);
  return columns;
}

}  // namespace einrel::sql
