#include "sql/program/user_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "sql/program/key_sql.h"

namespace einrel::sql {
namespace {

constexpr const char* value_name = "value";
constexpr const char* chunk_name = "chunk";
constexpr std::string_view sparse_prefix = "sparse:";
constexpr std::string_view table_prefix = "table:";
constexpr std::string_view query_prefix = "query:";
constexpr std::string_view chunks_prefix = "chunks:";
/// SQLite puts no more queries together than these.
constexpr std::size_t most_row_columns = 500;
constexpr std::int64_t farthest_key = std::numeric_limits<std::int64_t>::max();

/// Whether a column of keys, as `expression`, has one.
std::string is_key(Dialect dialect, const Column& column, const std::string& expression) {
  return is_whole(dialect, column.type, expression, -farthest_key, farthest_key);
}

std::vector<std::string> all_printable(const std::vector<Column>& columns) {
  std::vector<std::string> shown;
  for (const Column& column : columns) shown.push_back(printable(column.name, 60));
  return shown;
}

/// The position of a column by its name, or by one that differs in the case of letters.
std::optional<std::size_t> find_column(const std::vector<Column>& columns, const std::string& name) {
  const auto find = [&](auto&& same) {
    return std::find_if(columns.begin(), columns.end(), [&](const Column& column) { return same(column.name); });
  };
  auto found = find([&](const std::string& column) { return column == name; });
  if (found == columns.end()) found = find([&](const std::string& column) { return folded(column) == folded(name); });
  return found == columns.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - columns.begin()));
}

std::string type_text(const Column& column) {
  return column.type_name.empty() ? "a number's" : printable(column.type_name);
}

/// A column that stands in one with others: all of them have one type where columns have types.
std::string one_type(const Column& column, bool has_real) {
  std::string name = quoted_name(column.name);
  if (column.type == ColumnType::any) return name;
  if (column.type == ColumnType::boolean) return fmt::format("CAST({} AS integer)", name);
  return has_real ? fmt::format("CAST({} AS double precision)", name) : name;
}

/// What einrel_gather and einrel_whole take first.
std::string gathered_text(const UserTable& table, DType dtype, const Shape& bound,
                          const std::vector<DimensionCut>& cuts) {
  std::string text = fmt::format("{}, {}, {}", literal(name_of(dtype)), literal(table.title), bound.size());
  for (std::size_t d = 0; d < bound.size(); ++d) text += fmt::format(", {}, {}", bound[d].value(), cuts[d].parts);
  return text;
}

/// What they take last.
std::string absent_argument(const UserTable& table) {
  const Absent absent = absent_in(table);
  return absent == Absent::refused ? "" : ", " + literal(name_of(absent));
}

/// "k0, k1"
std::string key_list(std::size_t rank, const std::string& before) {
  return fmt::format("{}", fmt::join(column_names(rank, before), ", "));
}

/// Adds the chunks that a table (quoted) has not, of zeros.
std::string zero_chunks(DType dtype, const Shape& bound, const std::vector<DimensionCut>& cuts, const std::string& made,
                        Dialect dialect) {
  std::string extents;
  std::vector<std::string> keys;
  std::vector<std::string> numbers;
  for (std::size_t d = 0; d < bound.size(); ++d) {
    extents += ", " + extent_of_chunk(bound[d], cuts[d], fmt::format("absent.k{}", d));
    keys.push_back(fmt::format("n{0}.i AS k{0}", d));
    numbers.push_back(fmt::format("({}) AS n{}", numbers_below(dialect, cuts[d].parts), d));
  }
  const std::string zeros =
      fmt::format("{}({}{})", own_function(dialect, "einrel_zeros"), literal(name_of(dtype)), extents);
  if (bound.empty()) return fmt::format("INSERT INTO {0} SELECT {1} WHERE NOT EXISTS (SELECT 1 FROM {0})", made, zeros);
  return fmt::format(
      "INSERT INTO {0} SELECT {1}, {2} FROM (\n  SELECT {3} FROM {4} EXCEPT SELECT {5} FROM {0}) AS absent", made,
      key_list(bound.size(), "absent."), zeros, fmt::join(keys, ", "), fmt::join(numbers, ", "),
      key_list(bound.size(), ""));
}

/// What rows with their numbers are called. A table of that name in the user's query is hidden by it: nobody has one.
constexpr const char* numbered = "\"rows with their numbers\"";

/// The columns of a table of chunks: k0, k1, ..., then `chunk`; nothing where these are others.
std::optional<std::vector<Column>> columns_of_chunks(const std::vector<Column>& columns) {
  std::vector<Column> found;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto column = find_column(columns, i + 1 < columns.size() ? fmt::format("k{}", i) : chunk_name);
    if (!column) return std::nullopt;
    found.push_back(columns[*column]);
  }
  return found;
}

/// Throws UserError where column d has the name of another label: by position it would be something else.
void check_place(const std::vector<Column>& columns, const std::vector<std::string>& labels, std::size_t d,
                 const std::string& title) {
  std::vector<std::string> named;
  for (std::size_t i = 0; i < labels.size(); ++i)
    named.push_back(fmt::format("{} AS {}", printable(columns[i].name), labels[i]));
  for (std::size_t other = 0; other < labels.size(); ++other) {
    if (other != d && labels[other] == columns[d].name && labels[d] != labels[other])
      throw UserError(fmt::format(
          "{} has the column '{}' where the key of the label {} is expected; say which is which: 'query:SELECT {}, "
          "value FROM ...'",
          title, printable(columns[d].name), labels[d], fmt::join(named, ", ")));
  }
}

/// Throws UserError for columns that are those of elements but for the name of the value: taken as rows of a matrix
/// they would be something else.
void check_value_name(const std::vector<Column>& columns, const std::vector<std::string>& labels,
                      const std::string& title) {
  if (labels.empty() || columns.size() != labels.size() + 1) return;
  const auto is_there = [&](const std::string& label) { return find_column(columns, label).has_value(); };
  if (!std::all_of(labels.begin(), labels.end(), is_there)) return;
  throw UserError(
      fmt::format("{} has the columns {}; a table of elements has its numbers in one called 'value' (a query with AS "
                  "names it so), and one of rows has no columns with the names of labels",
                  title, fmt::join(all_printable(columns), ", ")));
}

/// The columns of a table of elements: a key for each label, then `value`; nothing where these are others. Where all
/// have the labels' names, they may stand in any order; else `value` is the last.
std::optional<std::vector<Column>> columns_of_elements(const std::vector<Column>& columns,
                                                       const std::vector<std::string>& labels,
                                                       const std::string& title) {
  const auto value = find_column(columns, value_name);
  if (columns.size() != labels.size() + 1 || !value) return std::nullopt;
  std::set<std::size_t> different{*value};
  std::vector<Column> named;
  for (const std::string& label : labels) {
    const auto column = find_column(columns, label);
    if (!column || !different.insert(*column).second) break;
    named.push_back(columns[*column]);
  }
  named.push_back(columns[*value]);
  if (named.size() == columns.size()) return named;
  if (*value != labels.size()) return std::nullopt;
  for (std::size_t d = 0; d < labels.size(); ++d) check_place(columns, labels, d, title);
  return columns;
}

}  // namespace

std::optional<TypedSource> typed_source(const std::string& given) {
  if (given.starts_with(chunks_prefix))
    return TypedSource{.is_chunks = true, .text = given.substr(chunks_prefix.size())};
  TypedSource source{.is_sparse = given.starts_with(sparse_prefix), .text = {}};
  const std::string rest = source.is_sparse ? given.substr(sparse_prefix.size()) : given;
  source.is_query = rest.starts_with(query_prefix);
  if (!source.is_query && !rest.starts_with(table_prefix)) {
    if (!source.is_sparse) return std::nullopt;
    throw UserError(
        fmt::format("'{}': sparse: stands before a table or a query; write sparse:table:NAME or 'sparse:query:SELECT "
                    "...'",
                    printable(given, 60)));
  }
  source.text = rest.substr((source.is_query ? query_prefix : table_prefix).size());
  return source;
}

std::string layout_text(const UserTable& table, const std::vector<std::string>& labels) {
  switch (table.layout) {
    case Layout::chunks: return "a row for each chunk";
    case Layout::elements:
      return fmt::format("a row for {}", labels.empty()    ? "the number"
                                         : table.is_sparse ? "each element that is not zero"
                                                           : "each element");
    case Layout::rows: break;
  }
  const std::string columns = labels.size() == 2 ? fmt::format(", a column for each {}", labels[1]) : "";
  return fmt::format("a row for each {}{}, in {}", labels[0], columns,
                     table.is_query ? "its order" : "no certain order");
}

Absent absent_in(const UserTable& table) {
  if (table.is_sparse) return Absent::zeros;
  return table.layout == Layout::elements ? Absent::may_be_zeros : Absent::refused;
}

UserTable read_columns(std::string source, std::string title, const std::vector<Column>& columns,
                       const std::vector<std::string>& labels, Dialect dialect) {
  UserTable table{std::move(source), std::move(title), columns, Layout::rows};
  std::set<std::string> different;
  for (const Column& column : columns) different.insert(same_name(dialect, column.name));
  if (different.size() != columns.size())
    throw UserError(fmt::format("{} has two columns of one name: {}; give them names with AS", table.title,
                                fmt::join(all_printable(columns), ", ")));
  if (const auto elements = columns_of_elements(columns, labels, table.title)) {
    for (std::size_t d = 0; d < labels.size(); ++d) {
      if ((*elements)[d].type == ColumnType::boolean)
        throw UserError(fmt::format("{}: the key column '{}' is boolean; keys are whole numbers: CAST({} AS integer)",
                                    table.title, printable((*elements)[d].name), printable((*elements)[d].name)));
    }
    return {table.source, table.title, *elements, Layout::elements};
  }
  check_value_name(columns, labels, table.title);
  if (const auto chunks = columns.empty() ? std::nullopt : columns_of_chunks(columns)) {
    const Column& chunk = chunks->back();
    if (chunk.type != ColumnType::any && chunk.type != ColumnType::bytes)
      throw UserError(fmt::format("{}: column '{}' is one of chunks, but of no arrays: its type is {}{}", table.title,
                                  printable(chunk.name), type_text(chunk), chunk_column_remedy));
    return {table.source, table.title, *chunks, Layout::chunks};
  }
  const bool is_vector = labels.size() == 1 && columns.size() == 1;
  if (labels.size() != 2 && !is_vector)
    throw UserError(
        fmt::format("{} has the columns {}, but a tensor of {} takes a column for each of its labels ({}), and behind "
                    "them one called 'value'",
                    table.title, fmt::join(all_printable(columns), ", "), counted(labels.size(), "dimension"),
                    fmt::join(labels, ", ")));
  if (columns.size() > most_row_columns)
    throw UserError(
        fmt::format("{} has {} columns, more than the {} that a row for each sample may have; give it a "
                    "row for each element: {}, value",
                    table.title, columns.size(), most_row_columns, fmt::join(labels, ", ")));
  for (const Column& column : columns) {
    if (column.type == ColumnType::other || column.type == ColumnType::bytes)
      throw UserError(fmt::format("{}: column '{}' has the type {}, no numbers", table.title, printable(column.name),
                                  printable(column.type_name)));
  }
  return table;
}

std::string extents_query(const UserTable& table, Dialect dialect) {
  if (table.layout == Layout::rows)
    return fmt::format("SELECT count(*), {} FROM {}", table.columns.size(), table.source);
  std::vector<std::string> ends;
  for (std::size_t d = 0; d + 1 < table.columns.size(); ++d) {
    const std::string column = quoted_name(table.columns[d].name);
    const std::string key = fmt::format("CASE WHEN {} THEN {} END", is_key(dialect, table.columns[d], column),
                                        as_whole(table.columns[d].type, column));
    ends.push_back(fmt::format("coalesce(max({0}), -1), coalesce(min({0}), 0), count({0})", key));
  }
  ends.emplace_back("count(*)");
  return fmt::format("SELECT {} FROM {}", fmt::join(ends, ", "), table.source);
}

std::string elements_query(const UserTable& table, std::size_t rank) {
  if (table.layout == Layout::elements) {
    std::string columns;
    for (std::size_t d = 0; d + 1 < table.columns.size(); ++d)
      columns += fmt::format("{} AS i{}, ", quoted_name(table.columns[d].name), d);
    return fmt::format("SELECT {}{} AS v, {} AS c FROM {}", columns, quoted_name(table.columns.back().name),
                       literal(table.columns.back().name), table.source);
  }
  const bool has_real = std::any_of(table.columns.begin(), table.columns.end(),
                                    [](const Column& column) { return column.type == ColumnType::real; });
  std::vector<std::string> names;
  std::vector<std::string> columns;
  std::vector<std::string> parts;
  const bool is_vector = rank == 1;  // a matrix may have one column, too
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    names.push_back(fmt::format("c{}", c));
    columns.push_back(one_type(table.columns[c], has_real));
    const std::string name = literal(table.columns[c].name);
    parts.push_back(is_vector
                        ? fmt::format("SELECT i AS i0, c0 AS v, {} AS c FROM {}", name, numbered)
                        : fmt::format("SELECT i AS i0, {0} AS i1, c{0} AS v, {1} AS c FROM {2}", c, name, numbered));
  }
  return fmt::format("WITH {}(i, {}) AS MATERIALIZED (SELECT row_number() OVER () - 1, {} FROM {})\n  {}", numbered,
                     fmt::join(names, ", "), fmt::join(columns, ", "), table.source,
                     fmt::join(parts, "\n  UNION ALL "));
}

std::string bad_key_query(const UserTable& table, std::size_t rank, Dialect dialect) {
  std::vector<std::string> keys;
  for (std::size_t d = 0; d < rank; ++d)
    keys.push_back("(" + is_key(dialect, table.columns[d], fmt::format("i{}", d)) + ")");
  return fmt::format("SELECT * FROM (\n  {}) AS elements WHERE ({}) IS NOT TRUE LIMIT 1", elements_query(table, rank),
                     fmt::join(keys, " AND "));
}

std::vector<std::string> key_names(const UserTable& table, std::size_t rank) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < rank; ++d) {
    const bool is_rows = table.layout == Layout::rows;
    names.push_back(is_rows ? (d == 0 ? "row" : "column") : table.columns[d].name);
  }
  return names;
}

Script gather_script(const UserTable& table, const std::string& tensor, DType dtype, const Shape& bound,
                     const std::vector<DimensionCut>& cuts, const std::string& made, Dialect dialect) {
  const std::size_t rank = bound.size();
  const std::string about = fmt::format("{}: {} {}, from {}", tensor, name_of(dtype), to_string(bound), table.title);
  const std::string gathered = gathered_text(table, dtype, bound, cuts);
  std::string keys;  // of a key that is wrong NULL, the first group: it is said before the hole that it leaves
  std::string cells;
  std::vector<std::string> groups;
  for (std::size_t d = 0; d < rank; ++d) {
    const ColumnType type = table.layout == Layout::rows ? ColumnType::whole : table.columns[d].type;
    const std::string key = fmt::format("i{}", d);
    keys += fmt::format("CASE WHEN {} THEN {} END AS k{}, ", is_whole(dialect, type, key, 0, bound[d].value() - 1),
                        chunk_of(bound[d], cuts[d], as_whole(type, key)), d);
    cells += fmt::format(", i{}", d);
    groups.push_back(fmt::format("{}", d + 1));
  }
  std::string names;
  for (const std::string& name : key_names(table, rank)) names += ", " + literal(name);
  const std::string query =
      fmt::format("SELECT {}{}({}{}, v{}, c{}) AS chunk\nFROM (\n  {}) AS elements\n{}", keys,
                  own_function(dialect, "einrel_gather"), gathered, cells, names, absent_argument(table),
                  elements_query(table, rank),
                  groups.empty() ? "HAVING count(*) > 0" : fmt::format("GROUP BY {}", fmt::join(groups, ", ")));
  Script script = store_query(dialect, about, made, rank, query);
  if (table.is_sparse || element_count(bound) == 0) {  // without elements there is one chunk, which no row makes
    const std::vector<DimensionCut> one(rank, {1, 1});
    script.push_back({"", zero_chunks(dtype, bound, element_count(bound) == 0 ? one : cuts, made, dialect)});
    return script;
  }
  script.push_back(
      {"", fmt::format("SELECT {}({}, x.chunk IS NOT NULL{}{}{}) FROM (SELECT 1) AS one LEFT "
                       "JOIN {} AS x ON 1 = 1",
                       own_function(dialect, "einrel_whole"), gathered, rank == 0 ? "" : ", " + key_list(rank, "x."),
                       names, absent_argument(table), made)});
  return script;
}

std::vector<std::string> key_column_names(const std::vector<std::string>& labels, Dialect dialect) {
  std::set<std::string> different{value_name};
  for (const std::string& label : labels) {
    if (can_be_column(dialect, label)) different.insert(folded(label));
  }
  if (different.size() == labels.size() + 1) return labels;
  std::vector<std::string> names;
  for (std::size_t d = 0; d < labels.size(); ++d) names.push_back(fmt::format("d{}", d));
  return names;
}

Script scatter_script(const std::string& tensor, const std::string& chunks, const RelationType& type,
                      const std::vector<std::string>& labels, const std::string& table, Dialect dialect) {
  const std::vector<std::string> names = key_column_names(labels, dialect);
  const std::vector<std::string> begins = chunk_begins(type, column_names(type.key_arity, "x."), dialect);
  std::string columns;
  std::string keys;
  std::vector<std::string> key;
  for (std::size_t d = 0; d < names.size(); ++d) {
    columns += fmt::format("{} {}, ", quoted_name(names[d]), key_type(dialect));
    keys += fmt::format("{} + e.d{}, ", begins[d], d);
    key.push_back(quoted_name(names[d]));
  }
  const std::string primary = key.empty() ? "" : fmt::format(", PRIMARY KEY ({})", fmt::join(key, ", "));
  return {{fmt::format("{}, element by element", tensor),
           fmt::format("CREATE TABLE {} ({}{} {}{})", table, columns, quoted_name(value_name),
                       element_type(dialect, type.dtype), primary)},
          {"", fmt::format("INSERT INTO {}\nSELECT {}e.value FROM {} AS x, {}", table, keys, chunks,
                           elements_from(dialect, "x.chunk", type.dtype, type.rank))}};
}

}  // namespace einrel::sql
