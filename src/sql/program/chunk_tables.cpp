#include "sql/program/chunk_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "sql/functions/array_bytes.h"
#include "sql/functions/functions.h"
#include "sql/functions/gather.h"
#include "sql/program/key_sql.h"

namespace einrel::sql {
namespace {

/// Of any array that a database can hold.
constexpr std::size_t head_bytes = array_head_bytes(most_dimensions);

std::string columns_text(const UserTable& table) {
  std::string text;
  for (std::size_t d = 0; d + 1 < table.columns.size(); ++d) text += quoted_name(table.columns[d].name) + ", ";
  return text;
}

/// Collects the heads of all chunks, and says what tensor they are of.
class ChunkHeads {
 public:
  explicit ChunkHeads(const UserTable& table) : table_(table), rank_(table.columns.size() - 1) {
    for (const Column& column : table.columns) names_.push_back(column.name);
  }

  /// A row of keys, the first bytes of the array, and how many it has.
  void add(const std::vector<Cell>& cells) {
    Key key = key_of({cells.begin(), cells.end() - 1});
    const ArrayHead head = head_of(key, cells[rank_], cells[rank_ + 1]);
    if (head.shape.size() != rank_)
      throw UserError(fmt::format("{} is an array of {}, but the table has {}", at(key),
                                  counted(head.shape.size(), "dimension"), counted(rank_, "column") + " of keys"));
    if (shapes_.empty()) {
      dtype_ = head.dtype;
      first_ = key;
    } else if (head.dtype != dtype_) {
      throw UserError(fmt::format("{} is {}, but that at {} is {}; all chunks of a tensor have one type", at(key),
                                  name_of(head.dtype), key_text(names_, first_), name_of(dtype_)));
    }
    if (!shapes_.emplace(key, head.shape).second)
      throw UserError(
          fmt::format("{} has two rows for {}; every chunk may be there once", table_.title, key_text(names_, key)));
    if (shapes_.size() > most_chunks)
      throw UserError(fmt::format("{} has more than {} chunks", table_.title, most_chunks));
  }

  StoredChunks finish() const {
    if (shapes_.empty()) throw UserError(fmt::format("{} has no rows, and so no chunks of a tensor", table_.title));
    StoredChunks found{dtype_, {}, {}};
    const std::vector<std::int64_t> parts = parts_of_all();
    refuse_holes(parts);
    for (std::size_t d = 0; d < rank_; ++d) {
      std::int64_t extent = 0;
      for (std::int64_t part = 0; part < parts[d]; ++part) extent = checked_add(extent, on_edge(d, part).value());
      found.bound.emplace_back(extent);
      found.format.push_back({parts[d], 1});
    }
    for (const auto& [key, shape] : shapes_) check_shape(key, shape, found);
    return found;
  }

 private:
  std::string at(const Key& key) const {
    return fmt::format("{}: column '{}' at {}", table_.title, printable(names_.back()), key_text(names_, key));
  }

  Key key_of(const std::vector<Cell>& cells) const {
    Key key;
    for (std::size_t d = 0; d < rank_; ++d) {
      const auto* const number = std::get_if<std::int64_t>(&cells[d]);
      if (number == nullptr || *number < 0 || *number > most_key_value)
        throw UserError(fmt::format("{}: column '{}' is {} in the row of {}, but chunks are numbered 0, 1, ...",
                                    table_.title, printable(names_[d]), shown(cells[d]), raw_key(cells, names_)));
      key.push_back(*number);
    }
    return key;
  }

  ArrayHead head_of(const Key& key, const Cell& begin, const Cell& size) const {
    const auto* const blob = std::get_if<Blob>(&begin);
    const auto* const bytes = std::get_if<std::int64_t>(&size);
    if (blob == nullptr || bytes == nullptr)
      throw UserError(
          fmt::format("{} is {}, no array{}", at(key), shown(begin), shapes_.empty() ? chunk_column_remedy : ""));
    try {
      return head_in(blob->bytes, static_cast<std::uint64_t>(*bytes));
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: {}", at(key), error.what()));
    }
  }

  std::vector<std::int64_t> parts_of_all() const {
    std::vector<std::int64_t> parts(rank_, 1);
    for (const auto& [key, shape] : shapes_) {
      for (std::size_t d = 0; d < rank_; ++d) parts[d] = std::max(parts[d], key[d] + 1);
    }
    return parts;
  }

  /// Keys in order are those of a box if they count on as its do.
  void refuse_holes(const std::vector<std::int64_t>& parts) const {
    Key wanted(rank_, 0);
    for (auto next = shapes_.begin();; ++next) {
      if (next == shapes_.end() || next->first != wanted)
        throw UserError(fmt::format("{} has no row for {}: a hole; the tensor has {} chunks", table_.title,
                                    key_text(names_, wanted), fmt::join(parts, " x ")));
      std::size_t d = rank_;
      while (d > 0 && ++wanted[d - 1] == parts[d - 1]) wanted[--d] = 0;
      if (d == 0) return;
    }
  }

  Extent on_edge(std::size_t d, std::int64_t part) const {
    Key key(rank_, 0);
    key[d] = part;
    return shapes_.at(key)[d];
  }

  void check_shape(const Key& key, const Shape& shape, const StoredChunks& whole) const {
    for (std::size_t d = 0; d < rank_; ++d) {
      const std::int64_t parts = whole.format[d].parts;
      const bool can_be_cut = parts == 1 || parts <= whole.bound[d].value();
      if (can_be_cut && chunk_extent(whole.bound[d], whole.format[d], key[d]) == shape[d]) continue;
      const auto extent = [&](std::int64_t part) {
        return chunk_extent(whole.bound[d], whole.format[d], part).value();
      };
      throw UserError(fmt::format(
          "{} has {} along dimension {}, of {} in {}: chunks are of equal size up to one, the larger first: {}",
          at(key), shape[d].value(), d, whole.bound[d].value(), counted(static_cast<std::size_t>(parts), "chunk"),
          can_be_cut ? fmt::format("{} to {}", extent(0), extent(parts - 1)) : "none is empty"));
    }
  }

  const UserTable& table_;
  std::size_t rank_;
  std::vector<std::string> names_;
  DType dtype_ = DType::f32;
  Key first_;
  std::map<Key, Shape> shapes_;
};

}  // namespace

StoredChunks chunks_in(Database& database, const UserTable& table) {
  ChunkHeads heads(table);
  const std::string chunk = quoted_name(table.columns.back().name);
  std::string begin = fmt::format("substr({}, 1, {})", chunk, head_bytes);
  if (database.dialect() == Dialect::sqlite)  // where any value may stand in any column
    begin = fmt::format("CASE typeof({0}) WHEN 'blob' THEN {1} ELSE {0} END", chunk, begin);
  database.read_rows(fmt::format("SELECT {}{}, length({}) FROM {}", columns_text(table), begin, chunk, table.source),
                     [&](const std::vector<Cell>& cells) { heads.add(cells); });
  return heads.finish();
}

Script copy_chunks_script(const UserTable& table, const std::string& tensor, const StoredChunks& chunks,
                          const std::string& made, Dialect dialect) {
  std::string keys;
  for (std::size_t d = 0; d + 1 < table.columns.size(); ++d)
    keys += fmt::format("{} AS k{}, ", as_whole(table.columns[d].type, quoted_name(table.columns[d].name)), d);
  return store_query(
      dialect,
      fmt::format("{}: {} {} in chunks, from {}", tensor, name_of(chunks.dtype), to_string(chunks.bound), table.title),
      made, chunks.bound.size(),
      fmt::format("SELECT {}{} AS chunk FROM {}", keys, quoted_name(table.columns.back().name), table.source));
}

Script keep_chunks_script(const std::string& tensor, const std::string& chunks, const RelationType& type,
                          const std::string& table, Dialect dialect) {
  std::string columns;
  for (const std::string& key : column_names(type.key_arity)) columns += fmt::format("{} {}, ", key, key_type(dialect));
  const std::string primary =
      type.key_arity == 0 ? "" : fmt::format(", PRIMARY KEY ({})", fmt::join(column_names(type.key_arity), ", "));
  Script script{{fmt::format("{}, chunk by chunk", tensor),
                 fmt::format("CREATE TABLE {} ({}chunk {} NOT NULL{})", table, columns, array_type(dialect), primary)}};
  for (Statement& statement : uncompressed_chunks(dialect, table)) script.push_back(std::move(statement));
  script.push_back(
      {"", fmt::format("INSERT INTO {} SELECT {}chunk FROM {}", table, key_columns(type.key_arity), chunks)});
  return script;
}

}  // namespace einrel::sql
