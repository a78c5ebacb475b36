#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "einsum/reference.h"
#include "run/choose_formats.h"
#include "run/compile.h"
#include "run/sql_script.h"
#include "sql/program/elements.h"
#include "sql/program/names.h"
#include "sql/program/program_script.h"
#include "sql/program/run.h"
#include "support/compare.h"
#include "support/program.h"

/// Programs in plain SQL against the reference, in whatever database: special numbers, users' types, names.
namespace einrel::test {

using NamedTensors = std::map<std::string, Tensor>;

inline constexpr double nan_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinite = std::numeric_limits<double>::infinity();

inline Tensor doubles(const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
  return tensor_of(DType::f64, make_shape(shape), values);
}

inline NamedTensors by_reference(const std::string& text, const NamedTensors& inputs) {
  const EinGraph graph = einrel::graph_of(text);
  const std::vector<Tensor> values = evaluate_reference(graph, inputs, {});
  NamedTensors outputs;
  for (std::size_t o = 0; o < values.size(); ++o) outputs.emplace(graph[graph.outputs[o]].name, values[o]);
  return outputs;
}

/// A run element by element of inputs that are brought to the database.
inline NamedTensors in_elements(sql::Database& database, const std::string& text, const NamedTensors& inputs) {
  const EinGraph graph = compile("plain", einrel::graph_of(text)).graph;
  const ScalarBindings none;
  sql::DatabaseRun run{.graph = graph, .scalars = none, .inputs = {}, .outputs = {}, .chunked = {}, .is_element = true};
  run.inputs.insert(inputs.begin(), inputs.end());
  return sql::run(database, run).tensors;
}

/// Relative to each value, but for those below `least`.
inline void expect_agreement(const NamedTensors& found, const NamedTensors& wanted, double least) {
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, want] : wanted) {
    std::vector<double> allowed = values_of(want);
    for (double& value : allowed) value = std::isfinite(value) ? 1e-12 * std::max(std::abs(value), least) : 0;
    EXPECT_TRUE(agree(found.at(name), want, allowed)) << name;
  }
}

/// Every row of three of these.
inline constexpr std::array special_numbers{nan_number, infinite, -infinite, 0.0, 1.5, -1000.0, 1000.0};

inline std::vector<std::array<double, 3>> special_rows() {
  std::vector<std::array<double, 3>> rows;
  for (const double a : special_numbers) {
    for (const double b : special_numbers) {
      for (const double c : special_numbers) rows.push_back({a, b, c});
    }
  }
  return rows;
}

inline std::string reductions(std::size_t rows, std::size_t columns) {
  std::string text = fmt::format("dims i={} j={}\ninput X[i,j] : f64\n", rows, columns);
  for (const char* const reducer :
       {"sum", "sumsq", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin", "logsumexp"})
    text += fmt::format("of_{0}[i] = {0}[j] X[i,j]\n", reducer);
  return text;
}

inline Tensor rows_tensor(const std::vector<std::array<double, 3>>& rows) {
  std::vector<double> values;
  for (const std::array<double, 3>& row : rows) values.insert(values.end(), row.begin(), row.end());
  return doubles({static_cast<std::int64_t>(rows.size()), 3}, values);
}

/// Functions of numbers whose exponentials leave the range of doubles, and shares of such.
inline void expect_exponentials(sql::Database& database) {
  const std::vector<double> numbers{nan_number, infinite, -infinite, 1e300,  -1e300, 1e9,  -1e9,   800, -800,
                                    746,        -746,     745.2,     -745.2, 710,    -710, 709.78, 700, -700,
                                    40,         -40,      1,         -1,     0.25,   0,    1e-9};
  const std::vector<double> finite{-1e9, -800, -745.2, -700, -1, 0, 1, 700, 745.2, 800, 1e9};
  std::vector<double> pairs;
  for (const double a : finite) {
    for (const double b : finite) pairs.insert(pairs.end(), {a, b});
  }
  const auto n = static_cast<std::int64_t>(numbers.size());
  const auto m = static_cast<std::int64_t>(pairs.size() / 2);
  const std::string text = fmt::format(
      "dims i={} m={} k=2\ninput X[i] : f64\ninput Y[m,k] : f64\ninput on[m,k] : bool\n"
      "E[i] = exp(X[i])\nS[i] = sigmoid(X[i])\nL[i] = silu(X[i])\nM[i] = expm1(X[i])\nT[i] = tanh(X[i])\n"
      "Soft[m,k] = softmax[k](Y[m,k])\nLogSoft[m,k] = logsoftmax[k](Y[m,k])\nLse[m] = logsumexp[k] Y[m,k]\n"
      "Masked[m,k] = softmax[k](where(on[m,k], Y[m,k] / 1e9, -1e9))\n"
      "Gone[m,k] = softmax[k](where(on[m,k], Y[m,k] / 1e9, -inf))\n",
      n, m);
  std::vector<double> on;
  for (std::int64_t at = 0; at < 2 * m; ++at) on.push_back(at % 3 == 0 || at % 8 == 1 ? 1 : 0);
  const NamedTensors inputs{{"X", doubles({n}, numbers)},
                            {"Y", doubles({m, 2}, pairs)},
                            {"on", tensor_of(DType::boolean, make_shape({m, 2}), on)}};
  expect_agreement(in_elements(database, text, inputs), by_reference(text, inputs), 1e-290);
}

/// A table as a user has it: a column for each label, and `value` of that type.
inline void make_table(sql::Database& database, const DeclaredInput& input, const Tensor& tensor,
                       const std::string& type) {
  std::string columns;
  for (const std::string& label : input.labels) columns += sql::quoted_name(label) + " integer, ";
  database.execute(fmt::format("CREATE TABLE {} ({}\"value\" {})", sql::quoted_name(input.name), columns, type));
  std::string rows;
  sql::for_each_element(tensor, [&](const Key& key, auto value) {
    rows += rows.empty() ? "(" : ", (";
    for (const std::int64_t at : key) rows += fmt::format("{}, ", at);
    rows += type == "boolean" ? (value != 0 ? "true)" : "false)") : fmt::format("{})", value);
  });
  database.execute(fmt::format("INSERT INTO {} VALUES {}", sql::quoted_name(input.name), rows));
}

inline std::vector<std::string> columns_of_result(const sql::Database& database, const Vertex& vertex) {
  return sql::key_column_names(sql::dimension_names(vertex), database.dialect());
}

/// What a script, as it is printed, makes of tables that are there.
inline NamedTensors by_printed_script(sql::Database& database, const std::string& text, const Formats& formats) {
  const CheckedProgram program = check_text(text);
  const Compiled compiled = compile("plain", *program.graph);
  std::string script = sql_script(compiled, program.inputs, {}, formats, {database.dialect()});
  constexpr std::string_view end = ";\n\n";
  for (std::size_t at = script.find(end); at != std::string::npos; at = script.find(end)) {
    const std::string statement = script.substr(0, at);
    if (statement != "BEGIN") database.execute(statement);
    script.erase(0, at + end.size());
  }
  EXPECT_EQ(script, "COMMIT;\n");
  NamedTensors outputs;
  for (const VertexId id : compiled.graph.outputs) {
    const Vertex& vertex = compiled.graph[id];
    outputs.emplace(vertex.name, sql::read_result(database, sql::user_table({database.dialect()}, vertex.name),
                                                  columns_of_result(database, vertex), vertex));
  }
  return outputs;
}

/// A printed script computes with the types of the language, whatever numbers users' tables hold.
inline void expect_types_of_the_language(sql::Database& database, const std::string& float_type,
                                         const std::string& whole_type, const std::string& bool_type) {
  SCOPED_TRACE(fmt::format("{}, {}, {}", float_type, whole_type, bool_type));
  const std::string text =
      "dims i=3 j=2\ninput X[i,j], Y[i,j] : f64\ninput N[i,j] : i64\ninput on[i] : bool\ninput off[i] : bool\n"
      "Ratio[i,j] = X[i,j] / Y[i,j]\nHalf[i] = X[i,0] / 2\nInverse[i] = 1 / Y[i,1]\nCopy[i,j] = X[i,j]\n"
      "Sums[i] = sum[j] X[i,j]\nShares[i,j] = X[i,j] / Sums[i]\nOfSums[i] = Sums[i] / Half[i]\n"
      "Most[i] = max[j] X[i,j]\nLeast[i] = min[j] Y[i,j]\nOfExtremes[i] = Most[i] / Least[i]\nMean[i] = mean[j] "
      "X[i,j]\n"
      "Flat[(j i)] = view X[i,j]\nTurned[j,i] = view Flat[(j i)]\nOfViews[i,j] = Turned[j,i] / Y[i,j]\n"
      "Padded[i] = pad(X[i+1,0], 1) / pad(Y[i+1,1], 2)\nLarger[i,j] = max(X[i,j], Y[i,j])\nOfLarger[i,j] = Larger[i,j] "
      "/ 4\n"
      "Prod[i] = prod[j] (X[i,j] * Y[i,j])\nRoot[i,j] = sqrt(X[i,j]) ** Y[i,j]\nPower[i,j] = X[i,j] ** Y[i,j] / 7\n"
      "Where[i,j] = where(X[i,j] > Y[i,j], X[i,j], Y[i,j])\nOfWhere[i,j] = Where[i,j] / 3\n"
      "Lse[i] = logsumexp[j] X[i,j]\nArg[i] = argmin[j] X[i,j]\n"
      "Whole[i,j] = N[i,j] * N[i,j] * 100000\nWholes[i] = prod[j] N[i,j]\nMixed[i,j] = N[i,j] / Y[i,j]\n"
      "Chosen[i] = where(on[i], X[i,0], 0) / Y[i,1]\nSame[i] = on[i] == off[i]\nCount[] = sum[i] on[i]\nAny[] = any[i] "
      "on[i]\n"
      "output Ratio, Half, Inverse, Copy, Sums, Shares, OfSums, Most, Least, OfExtremes, Mean, Flat, OfViews, Padded, "
      "Larger, "
      "OfLarger, Prod, Root, Power, Where, OfWhere, Lse, Arg, Whole, Wholes, Mixed, Chosen, Same, Count, Any\n";
  const bool is_whole = float_type == "integer" || float_type.ends_with("int");
  std::vector<double> x{1, 2, 5, 3, 7, 2};
  std::vector<double> y{2, 3, 2, 4, 1, 3};
  for (double* const number : {&x[1], &x[3], &y[1], &y[4]}) {
    if (!is_whole) *number = static_cast<double>(static_cast<float>(*number / 3));  // as `real` has it
  }
  const Shape shape = make_shape({3, 2});
  const NamedTensors inputs{{"X", tensor_of(DType::f64, shape, x)},
                            {"Y", tensor_of(DType::f64, shape, y)},
                            {"N", tensor_of(DType::i64, shape, {30000, 2, -5, 20000, 1, 7})},
                            {"on", tensor_of(DType::boolean, make_shape({3}), {1, 0, 1})},
                            {"off", tensor_of(DType::boolean, make_shape({3}), {0, 0, 1})}};
  for (const DeclaredInput& input : check_text(text).inputs) {
    const std::string& type = is_float(input.dtype) ? float_type : input.dtype == DType::i64 ? whole_type : bool_type;
    make_table(database, input, inputs.at(input.name), type);
  }
  Formats element;
  element.is_element = true;
  expect_agreement(by_printed_script(database, text, element), by_reference(text, inputs), 1e-3);
}

/// What scripts call their parts and columns.
inline const std::vector<std::string>& words_of_scripts() {
  static const std::vector<std::string> words{
      "terms",  "so_far", "so_far_", "numbered", "numbers",  "elements",  "absent", "given", "one",   "few", "ordered",
      "placed", "boxes",  "pieces",  "part",     "step0",    "step1",     "step2",  "step9", "x",     "y",   "p",
      "t",      "e",      "x0",      "x1",       "n0",       "l0",        "k0",     "i0",    "v",     "c",   "place",
      "places", "term",   "largest", "product",  "position", "positions", "chunk",  "value", "terms_"};
  return words;
}

enum class Role { input, between, output };

/// Tensors that have these names, each read in every way for which scripts name parts.
inline std::string program_of_names(const std::vector<std::string>& words, Role role) {
  std::string definitions = role == Role::input ? "" : "input Given1[i,j] : f64\n";
  std::string statements;
  std::string outputs = role == Role::output ? fmt::format("{}", fmt::join(words, ", ")) : "";
  for (std::size_t w = 0; w < words.size(); ++w) {
    if (role == Role::input) {
      definitions += fmt::format("input {}[i,j] : f64\n", words[w]);
    } else {
      definitions += fmt::format("{}[i,j] = Given1[i,j] + {}\n", words[w], w % 5);
    }
    statements += fmt::format(
        "prod_{0}[i] = prod[j] {0}[i,j]\nlse_{0}[i] = logsumexp[j] {0}[i,j]\narg_{0}[i] = argmin[j] {0}[i,j]\n"
        "pad_{0}[i,j] = {0}[i,j] * pad({0}[i,j+1], 2)\nview_{0}[(j i)] = view {0}[i,j]\n"
        "two_{0}[i] = prod[j] ({0}[i,j] + {1}[i,j])\n",
        words[w], words[(w + 1) % words.size()]);
    for (const char* const reader : {"prod", "lse", "arg", "pad", "view", "two"})
      outputs += fmt::format("{}{}_{}", outputs.empty() ? "" : ", ", reader, words[w]);
  }
  return fmt::format("dims i=2 j=3\n{}{}output {}\n", definitions, statements, outputs);
}

/// A run whose inputs and outputs are tables with the names of the tensors; the database stays as it was.
inline NamedTensors by_run_of_tables(sql::Database& database, const std::string& text, const Formats& formats) {
  const EinGraph graph = compile("plain", einrel::graph_of(text)).graph;
  const ScalarBindings none;
  sql::DatabaseRun run{.graph = graph, .scalars = none, .inputs = {}, .outputs = {}, .chunked = {}};
  run.is_element = formats.is_element;
  run.is_kept = false;
  if (!formats.is_element) run.chunked = chunked_graph(graph, choose_formats(graph, formats));
  sql::Transaction transaction(database, sql::Access::writes);
  for (const DeclaredInput& input : check_text(text).inputs)
    run.inputs.emplace(input.name, sql::open_table(database, "table:" + input.name, input.labels));
  for (const VertexId id : graph.outputs) run.outputs.push_back({graph[id].name, graph[id].name});
  NamedTensors outputs;
  run.before_commit = [&](const sql::DatabaseResults&) {
    for (const VertexId id : graph.outputs) {
      const Vertex& vertex = graph[id];
      const std::string table = database.new_table(vertex.name);
      outputs.emplace(vertex.name, sql::read_result(database, table, columns_of_result(database, vertex), vertex));
    }
  };
  sql::run(transaction, run);
  return outputs;
}

/// In chunks and element by element, run and as a printed script.
inline void expect_names_to_be_free(sql::Database& database, const std::vector<std::string>& words, Role role) {
  const std::string text = program_of_names(words, role);
  const std::vector<DeclaredInput> declared = check_text(text).inputs;
  NamedTensors inputs;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    std::vector<double> values;
    for (std::size_t at = 0; at < 6; ++at) values.push_back(1 + static_cast<double>((7 * i + 3 * at) % 11) / 4);
    inputs.emplace(declared[i].name, doubles({2, 3}, values));
    make_table(database, declared[i], inputs.at(declared[i].name), "double precision");
  }
  const NamedTensors wanted = by_reference(text, inputs);
  for (const bool is_element : {true, false}) {
    SCOPED_TRACE(is_element ? "element" : "in chunks");
    Formats formats;
    formats.is_element = is_element;
    if (!is_element) formats.most_extent = 2;
    expect_agreement(by_run_of_tables(database, text, formats), wanted, 1e-3);
    const sql::Transaction undone(database, sql::Access::writes);
    if (!is_element) database.use_functions();
    expect_agreement(by_printed_script(database, text, formats), wanted, 1e-3);
  }
  for (const DeclaredInput& input : declared) database.execute("DROP TABLE " + sql::quoted_name(input.name));
}

}  // namespace einrel::test
