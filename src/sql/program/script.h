#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tra/formats.h"

namespace einrel::sql {

/// What statements of a program do; their times are compared with what was predicted of it.
enum class WorkKind { compute, transform, put_out, other };

/// Of a tensor: compute it, or gather an input; bring it to another format; make it a table of the user or a tensor.
struct Work {
  WorkKind kind = WorkKind::other;
  std::string tensor = {};
  TensorFormat to = {};  ///< of `transform`
  auto operator<=>(const Work&) const = default;
};

/// A table of chunks (quoted) and the query that gives its rows; "" where these cannot go into one that is there.
struct FilledTable {
  std::string table;
  std::size_t key_arity = 0;
  std::string query;
};

/// One statement of a script.
struct Statement {
  std::string about;  ///< what it computes and how, for people; "" for one that needs no word
  std::string text;   ///< without the semicolon
  Work work = {};     ///< that it is part of
  /// What it makes and fills at once.
  std::optional<FilledTable> fills = {};
};
using Script = std::vector<Statement>;

/// Drops the temporary tables (quoted) that a script has made, so that others of its session find the names free, and
/// no table of the user hidden.
Script drop_script(const std::vector<std::string>& tables);

/// The script as people read it and a shell runs it: in one transaction, each statement below its comment.
std::string to_text(const Script& script);

/// "c0, c1" of two columns that Database::keep_rows makes.
std::string kept_columns(std::size_t count);

/// A query of all rows of what stands in FROM, or of at most so many.
std::string rows_of(const std::string& source, std::optional<std::int64_t> most);

/// "k0, k1, " for keys of two positions.
std::string key_columns(std::size_t arity);

}  // namespace einrel::sql
