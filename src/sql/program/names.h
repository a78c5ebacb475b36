#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace einrel::sql {

/// A name as SQL takes any name: "a ""b""". Throws UserError for one with a NUL byte, which no database holds.
std::string quoted_name(std::string_view name);
/// A text as SQL writes it: 'it''s'. Throws as quoted does.
std::string literal(std::string_view text);
/// Text for the rest of a line that begins with `--`.
std::string comment(std::string_view text);
/// ASCII letters in lower case: SQLite takes names that differ in these only for the same.
std::string folded(std::string_view name);

/// Gives every table of a script a name of its own.
class TableNames {
 public:
  /// `most_bytes`: of a name (most_name_bytes).
  TableNames(const std::vector<std::string>& taken, std::size_t most_bytes);
  /// The name itself if no other table has it and it is short enough, else its beginning with a number. One that SQLite
  /// keeps for itself gets a letter in front. Not quoted.
  std::string fresh(const std::string& name);
  /// What fresh has given, in that order.
  const std::vector<std::string>& given() const { return given_; }

 private:
  std::set<std::string> taken_;
  std::size_t most_bytes_;
  std::vector<std::string> given_;
};

}  // namespace einrel::sql
