#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "sql/database.h"
#include "sql/program/lower_tra.h"
#include "tra/formats.h"
#include "tra/interpret.h"
#include "tra/repartition.h"

/// Every transformation as the one query that it is said to be; those that `einrel list formats` shows as direct
/// without pieces in between.
namespace einrel::test {

/// The same format of a small matrix, with 2, 4 and 8 in place of 10, 100 and 1000: each divides the next.
inline Format small_format(const Format& format) {
  const auto smaller = [](const std::optional<std::int64_t>& size) -> std::optional<std::int64_t> {
    if (!size || *size == 1) return size;
    return *size == 10 ? 2 : *size == 100 ? 4 : 8;
  };
  return {format.name, smaller(format.rows), smaller(format.columns)};
}

/// Brings a tensor, in a transaction that is undone, from one format to the other. What it did.
inline std::string expect_one_query(sql::Database& database, const Shape& bound, const TensorFormat& from,
                                    const TensorFormat& to) {
  std::vector<double> values(static_cast<std::size_t>(element_count(bound)));
  std::iota(values.begin(), values.end(), 0.0);
  const Tensor x = tensor_of(DType::f64, bound, values);
  TraExpr program;
  const TraId stored = program.add(StoredRelation{"X", DType::f64, bound, cut_of_all(from)});
  program.output("Z", program.add(Repartition{from, to}, {stored}));

  sql::Transaction transaction(database, sql::Access::reads);
  database.use_functions();
  const std::string table = sql::temporary_table(database.dialect(), "X");
  database.store_chunks(table, cut_tensor(x, cut_of_all(from)), 2);
  sql::TableNames names({"X"}, sql::most_name_bytes(database.dialect()));
  const sql::ChunkScript script =
      sql::chunk_script(program, {{"X", table}}, {}, {}, names, database.kernels(), database.dialect());
  EXPECT_EQ(script.statements.size(), 1U);
  const sql::Statement& statement = script.statements.front();
  EXPECT_EQ(statement.text.find("CREATE "), 0U) << statement.text;
  EXPECT_EQ(statement.text.find("CREATE ", 1), std::string::npos) << statement.text;
  EXPECT_EQ(statement.fills ? statement.fills->table : "none", script.tables.at("Z"));
  database.execute(statement.text);
  const Relation found = database.load_chunks(script.tables.at("Z"), 2);
  const Relation wanted = cut_tensor(x, cut_of_all(to));
  EXPECT_EQ(found.size(), wanted.size());
  for (const auto& [key, chunk] : wanted) {
    const auto same = found.find(key);
    if (same == found.end()) {
      ADD_FAILURE() << "no chunk " << to_string(key);
      continue;
    }
    EXPECT_EQ(same->second.shape(), chunk.shape()) << to_string(key);
    EXPECT_EQ(values_of(same->second), values_of(chunk)) << to_string(key);
  }
  return statement.text;
}

/// All of them, among those 20 that the paper counts. A format (rows, columns), each one of 1, 10, 100, 1000 and all,
/// can be cut into those that are larger in neither: single into 18, row and column into element, row-strip-H and
/// column-strip-W into 5, 9 and 13, tile-H-W into 1, 2, 3, 2, 4, 6, 3, 6 and 9. All others are put together the other
/// way.
inline void expect_direct_transformations_to_be_one_query(sql::Database& database) {
  const Shape bound = make_shape({16, 16});
  std::size_t pairs = 0;
  for (const Format& from : all_formats()) {
    const DirectTransformations direct = direct_transformations(from);
    const TensorFormat before = cuts_in(small_format(from), bound);
    for (const auto* const others : {&direct.cut, &direct.put_together}) {
      for (const std::string& to : *others) {
        const TensorFormat after = cuts_in(small_format(format_named(to)), bound);
        SCOPED_TRACE(fmt::format("{} to {}", from.name, to));
        EXPECT_EQ(change_of_cuts(bound, before, after).is_cut, others == &direct.cut);
        const std::string text = expect_one_query(database, bound, before, after);
        EXPECT_EQ(text.find("MATERIALIZED"), std::string::npos) << text;
        ++pairs;
      }
    }
  }
  EXPECT_EQ(pairs, 2U * (18 + 2 + 2 * (5 + 9 + 13) + 36));
}

/// Between any two of the 19, of a matrix whose extents the sizes of chunks do not divide: all but those of a format
/// with itself.
inline void expect_every_transformation_to_be_one_query(sql::Database& database) {
  const Shape bound = make_shape({12, 30});
  std::set<TensorFormat> formats;
  for (const Format& format : all_formats()) formats.insert(cuts_in(small_format(format), bound));
  ASSERT_EQ(formats.size(), 19U);
  for (const TensorFormat& from : formats) {
    for (const TensorFormat& to : formats) {
      if (from == to) continue;
      SCOPED_TRACE(fmt::format("{} to {}", format_text(from, bound), format_text(to, bound)));
      expect_one_query(database, bound, from, to);
    }
  }
}

}  // namespace einrel::test
