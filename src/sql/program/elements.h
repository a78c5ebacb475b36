#pragma once

#include <string>
#include <vector>

#include "sql/database.h"
#include "sql/program/user_tables.h"
#include "tensor/convert.h"

/// Tensors as tables of their elements, without functions of Einrel in the database.
namespace einrel::sql {

/// The statement that makes a temporary table (quoted): a column for each dimension, and `value`, a number that is at
/// least as wide as the elements.
std::string element_table(Dialect dialect, const std::string& table, const std::vector<std::string>& keys, DType dtype);

/// `visit(key, value)` for every element, as a double or an std::int64_t.
template <class Visit>
void for_each_element(const Tensor& tensor, Visit&& visit) {
  Key key(tensor.rank(), 0);
  with_stored_type(tensor.dtype(), [&]<class Stored>() {
    for_each_offset(tensor.shape(), tensor.strides(), [&](std::int64_t offset) {
      const auto value = widen(tensor.load<Stored>(offset));
      if constexpr (std::is_floating_point_v<decltype(value)>) {
        visit(key, static_cast<double>(value));
      } else {
        visit(key, static_cast<std::int64_t>(value));
      }
      for (std::size_t d = key.size(); d-- > 0;) {
        if (++key[d] < tensor.shape()[d].value()) break;
        key[d] = 0;
      }
    });
  });
}

template <class Visit>
void for_each_element(const FewElements& few, Visit&& visit) {
  for (const auto& element : few.elements)
    std::visit([&, &key = element.first](auto value) { visit(key, value); }, element.second);
}
template <class Visit>
void for_each_element(const Elements& elements, Visit&& visit) {
  std::visit([&](const auto& those) { for_each_element(those, visit); }, elements);
}

DType dtype_of(const Elements& elements);

/// The tensor that a user's table holds. Throws UserError for what is no element, as gather.h does.
Tensor read_elements(Database& database, const UserTable& table, DType dtype, const Shape& bound);
/// The elements that a table has, whose others are zeros. Throws as read_elements does.
FewElements read_few_elements(Database& database, const UserTable& table, DType dtype, const Shape& bound);

/// The tensor in a table that plain SQL has made. NULL is NaN there.
Tensor read_result(Database& database, const std::string& table, const std::vector<std::string>& keys,
                   const Vertex& vertex);

}  // namespace einrel::sql
