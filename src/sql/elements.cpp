#include "sql/elements.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "sql/gather.h"

namespace einrel::sql {
namespace {

/// Gathers the whole tensor, as one chunk.
class WholeTensor {
 public:
  WholeTensor(DType dtype, std::string title, const Shape& bound)
      : title_(title),
        empty_(element_count(bound) == 0 ? Tensor(dtype, bound) : Tensor()),
        is_empty_(element_count(bound) == 0),
        gatherer_({dtype, std::move(title), bound, std::vector<DimensionCut>(bound.size(), {1, 1})}) {}

  void add(const std::vector<Cell>& cells, const std::vector<std::string>& columns) {
    has_rows_ = true;
    gatherer_.add(cells, columns);
  }
  Tensor finish() const {
    if (is_empty_) return empty_;
    if (!has_rows_) throw UserError(fmt::format("{} has no rows; every element needs one", title_));
    return gatherer_.finish();
  }

 private:
  std::string title_;
  Tensor empty_;
  bool is_empty_;
  bool has_rows_ = false;
  ChunkGatherer gatherer_;
};

}  // namespace

std::string element_table(Dialect dialect, const std::string& table, const std::vector<std::string>& keys,
                          DType dtype) {
  std::string columns;
  for (const std::string& key : keys) columns += fmt::format("{} {}, ", quoted(key), key_type(dialect));
  return fmt::format("CREATE TABLE {} ({}{} {})", table, columns, quoted("value"),
                     element_type(dialect, is_float(dtype) ? DType::f64 : DType::i64));
}

Tensor read_elements(Database& database, const UserTable& table, DType dtype, const Shape& bound) {
  const std::size_t rank = bound.size();
  WholeTensor whole(dtype, table.title, bound);
  std::vector<std::string> columns = key_names(table, rank);
  columns.emplace_back();
  database.read_rows(elements_query(table, rank), [&](const std::vector<Cell>& cells) {
    std::size_t column = table.columns.size() - 1;
    if (table.layout == Layout::rows && rank == 2) column = static_cast<std::size_t>(std::get<std::int64_t>(cells[1]));
    columns.back() = table.columns[column].name;
    whole.add(cells, columns);
  });
  return whole.finish();
}

Tensor read_result(Database& database, const std::string& table, const std::vector<std::string>& keys,
                   const Vertex& vertex) {
  std::string names;
  for (const std::string& key : keys) names += quoted(key) + ", ";
  WholeTensor whole(vertex.dtype, fmt::format("the result {}", vertex.name), vertex.bound);
  std::vector<std::string> columns = keys;
  columns.emplace_back("value");
  std::vector<Cell> row;
  database.read_rows(fmt::format("SELECT {}{} FROM {}", names, quoted("value"), table),
                     [&](const std::vector<Cell>& cells) {
                       row = cells;
                       if (std::holds_alternative<Null>(row.back()))
                         row.back() = std::numeric_limits<double>::quiet_NaN();
                       whole.add(row, columns);
                     });
  return whole.finish();
}

}  // namespace einrel::sql
