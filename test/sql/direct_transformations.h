#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "sql/database.h"
#include "sql/lower_tra.h"
#include "tra/formats.h"
#include "tra/interpret.h"
#include "tra/repartition.h"

/// The transformations that `einrel list formats` shows as direct, each as the one query that it is said to be.
namespace einrel::test {

/// The same format of a matrix of 16 x 16, with 2, 4 and 8 in place of 10, 100 and 1000: each divides the next.
inline Format small_format(const Format& format) {
  const auto smaller = [](const std::optional<std::int64_t>& size) -> std::optional<std::int64_t> {
    if (!size || *size == 1) return size;
    return *size == 10 ? 2 : *size == 100 ? 4 : 8;
  };
  return {format.name, smaller(format.rows), smaller(format.columns)};
}

/// Brings a tensor, in a transaction that is undone, from one format to the other.
inline void expect_one_query(sql::Database& database, const TensorFormat& from, const TensorFormat& to) {
  const Shape bound = make_shape({16, 16});
  std::vector<double> values(256);
  std::iota(values.begin(), values.end(), 0.0);
  const Tensor x = tensor_of(DType::f64, bound, values);
  TraExpr program;
  const TraId stored = program.add(StoredRelation{"X", DType::f64, bound, cut_of_all(from)});
  program.output("Z", program.add(Repartition{from, to}, {stored}));

  sql::Transaction transaction(database);
  database.use_functions();
  const std::string table = sql::temporary_table(database.dialect(), "X");
  database.store_chunks(table, cut_tensor(x, cut_of_all(from)), 2);
  sql::TableNames names({"X"}, sql::most_name_bytes(database.dialect()));
  const sql::ChunkScript script =
      sql::chunk_script(program, {{"X", table}}, {}, {}, names, database.kernels(), database.dialect());
  ASSERT_EQ(script.statements.size(), 1U);
  const std::string& text = script.statements.front().text;
  EXPECT_EQ(text.find("CREATE "), 0U) << text;
  EXPECT_EQ(text.find("CREATE ", 1), std::string::npos) << text;
  EXPECT_EQ(text.find("MATERIALIZED"), std::string::npos) << text;
  database.execute(text);
  const Relation found = database.load_chunks(script.tables.at("Z"), 2);
  const Relation wanted = cut_tensor(x, cut_of_all(to));
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [key, chunk] : wanted) EXPECT_EQ(values_of(found.at(key)), values_of(chunk)) << to_string(key);
}

/// All of them. There are at least those 20 that the paper counts.
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
        expect_one_query(database, before, after);
        ++pairs;
      }
    }
  }
  EXPECT_GE(pairs, 20U);
}

}  // namespace einrel::test
