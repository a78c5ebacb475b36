#include "sql/program/elements.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "base/error.h"
#include "sql/functions/array_bytes.h"
#include "sql/functions/gather.h"

namespace einrel::sql {
namespace {

/// Gathers the whole tensor, as one chunk.
class WholeTensor {
 public:
  WholeTensor(DType dtype, const std::string& title, const Shape& bound, Absent absent)
      : gathered_{dtype, title, bound, std::vector<DimensionCut>(bound.size(), {1, 1}), absent}, gatherer_(gathered_) {}

  void add(const std::vector<Cell>& cells, const std::vector<std::string>& columns) {
    has_rows_ = true;
    gatherer_.add(cells, columns);
  }
  Tensor finish() const {
    if (has_rows_) return gatherer_.finish();
    const bool is_empty = element_count(gathered_.bound) == 0;
    if (!is_empty && gathered_.absent != Absent::zeros)
      throw UserError(fmt::format("{} has no rows{}", gathered_.table, refusal_of(gathered_.absent)));
    check_chunk_bytes(gathered_.dtype, gathered_.bound);
    Tensor zeros(gathered_.dtype, gathered_.bound);
    if (!is_empty) std::memset(zeros.mutable_data(), 0, static_cast<std::size_t>(zeros.byte_count()));
    return zeros;
  }

 private:
  Gathered gathered_;
  bool has_rows_ = false;
  ChunkGatherer gatherer_;
};

template <class Gatherer>
void gather(Database& database, const UserTable& table, std::size_t rank, Gatherer& gatherer) {
  std::vector<std::string> columns = key_names(table, rank);
  columns.emplace_back();
  std::vector<Cell> element;  // its keys and its value, without the column's name
  database.read_rows(elements_query(table, rank), [&](const std::vector<Cell>& cells) {
    std::size_t column = table.columns.size() - 1;
    if (table.layout == Layout::rows && rank == 2) column = static_cast<std::size_t>(std::get<std::int64_t>(cells[1]));
    columns.back() = table.columns[column].name;
    element.assign(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(columns.size()));
    gatherer.add(element, columns);
  });
}

}  // namespace

DType dtype_of(const Elements& elements) {
  const auto* const tensor = std::get_if<Tensor>(&elements);
  return tensor == nullptr ? std::get<FewElements>(elements).dtype : tensor->dtype();
}

std::string element_table(Dialect dialect, const std::string& table, const std::vector<std::string>& keys,
                          DType dtype) {
  std::string columns;
  for (const std::string& key : keys) columns += fmt::format("{} {}, ", quoted_name(key), key_type(dialect));
  return fmt::format("CREATE TABLE {} ({}{} {})", table, columns, quoted_name("value"),
                     element_type(dialect, is_float(dtype) ? DType::f64 : DType::i64));
}

Tensor read_elements(Database& database, const UserTable& table, DType dtype, const Shape& bound) {
  WholeTensor whole(dtype, table.title, bound, absent_in(table));
  gather(database, table, bound.size(), whole);
  return whole.finish();
}

FewElements read_few_elements(Database& database, const UserTable& table, DType dtype, const Shape& bound) {
  FewGatherer few({dtype, table.title, bound, {}, absent_in(table)});
  gather(database, table, bound.size(), few);
  return few.finish();
}

Tensor read_result(Database& database, const std::string& table, const std::vector<std::string>& keys,
                   const Vertex& vertex) {
  std::string names;
  for (const std::string& key : keys) names += quoted_name(key) + ", ";
  WholeTensor whole(vertex.dtype, fmt::format("the result {}", vertex.name), vertex.bound, Absent::refused);
  std::vector<std::string> columns = keys;
  columns.emplace_back("value");
  std::vector<Cell> row;
  database.read_rows(fmt::format("SELECT {}{} FROM {}", names, quoted_name("value"), table),
                     [&](const std::vector<Cell>& cells) {
                       row = cells;
                       if (std::holds_alternative<Null>(row.back()))
                         row.back() = std::numeric_limits<double>::quiet_NaN();
                       whole.add(row, columns);
                     });
  return whole.finish();
}

}  // namespace einrel::sql
