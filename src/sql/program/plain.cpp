#include "sql/program/plain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "sql/program/names.h"
#include "sql/program/program_script.h"
#include "sql/program/scalar_sql.h"
#include "sql/program/user_tables.h"
#include "sql/program/zero_factors.h"

namespace einrel::sql {
namespace {

constexpr const char* value_column = "\"value\"";

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

/// A tensor in a table. All is quoted.
struct Stored {
  std::string name;
  std::vector<std::string> columns;
  Shape bound;
  bool is_sparse = false;  ///< where it has no row, it is zero
  bool has_types = true;   ///< as ElementTable says
};

/// A query that gives a tensor.
struct Query {
  std::string text;
  bool is_sparse = false;
};

/// Every element of `bound` once, to stand in FROM: its key is n0.i, n1.i, ...
std::string every_key(const Shape& bound, Dialect dialect) {
  std::string text;
  for (std::size_t d = 0; d < bound.size(); ++d)
    text += fmt::format("{}({}) AS n{}{}", d == 0 ? "" : " JOIN ", numbers_below(dialect, bound[d].value()), d,
                        d == 0 ? "" : " ON 1 = 1");
  return text;
}

/// "k.i0 AS i, k.i1 AS j, ", the keys under the names of columns.
std::string named(const std::vector<std::string>& keys, const std::vector<std::string>& columns) {
  std::string text;
  for (std::size_t d = 0; d < keys.size(); ++d) text += fmt::format("{} AS {}, ", keys[d], columns[d]);
  return text;
}

/// So many texts with their numbers within: "n0.i", "n1.i", ...
std::vector<std::string> numbered(const char* before, std::size_t count, const char* after) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < count; ++d) names.push_back(fmt::format("{}{}{}", before, d, after));
  return names;
}

/// A row for each element: where a query gives none, it is zero.
std::string with_zeros(const std::string& query, const std::vector<std::string>& columns, const Shape& bound,
                       const std::string& zero, Dialect dialect) {
  const std::vector<std::string> keys = numbered("n", bound.size(), ".i");
  std::vector<std::string> same;
  for (std::size_t d = 0; d < keys.size(); ++d) same.push_back(fmt::format("few.{} = {}", columns[d], keys[d]));
  return fmt::format(
      "SELECT {}CASE WHEN few.{} IS NULL THEN {} ELSE few.{} END AS {}\nFROM {} LEFT JOIN (\n{}) AS few ON {}",
      named(keys, columns), columns[0], zero, value_column, value_column, every_key(bound, dialect), query,
      joined(same, " AND "));
}

/// A row with the same value for each element, and so none of a tensor without elements.
std::string filled_with(const std::string& value, const std::vector<std::string>& columns, const Shape& bound,
                        Dialect dialect) {
  if (element_count(bound) == 0) {
    const std::vector<std::string> keys(bound.size(), typed_key(dialect, 0));
    return fmt::format("SELECT {}{} AS {} WHERE 1 = 0", named(keys, columns), value, value_column);
  }
  return fmt::format("SELECT {}{} AS {}{}{}", named(numbered("n", bound.size(), ".i"), columns), value, value_column,
                     bound.empty() ? "" : "\nFROM ", every_key(bound, dialect));
}

/// The query of an EinSum: its operands joined where their labels agree, its values grouped by the labels that stay.
class EinSumQuery {
 public:
  EinSumQuery(const EinSum& einsum, const std::vector<const Stored*>& operands, const ScalarBindings& scalars,
              Dialect dialect)
      : einsum_(einsum), operands_(operands), scalars_(scalars), dialect_(dialect) {}

  Query run(const std::vector<std::string>& columns, const Shape& bound) {
    const bool has_nothing = std::any_of(einsum_.labels.begin(), einsum_.labels.end(),
                                         [](const Label& label) { return label.extent == Extent(0); });
    if (has_nothing) return {of_nothing(columns, bound)};
    find_factors();
    name_labels();
    add_operands();
    const std::string body = to_sql(einsum_.body, {values_, labels_, scalars_}, dialect_);
    std::vector<std::string> keys;
    for (const std::size_t label : einsum_.output) keys.push_back(labels_[label]);
    return {reduced(body, keys, columns), drops_rows_ && !keys.empty()};
  }

 private:
  std::string of_nothing(const std::vector<std::string>& columns, const Shape& bound) const {
    const double value = element_count(bound) == 0 ? 0 : value_of_nothing(einsum_.reducer.value());
    return filled_with(number_sql(type(), value, dialect_), columns, bound, dialect_);
  }

  /// Of the result.
  DType type() const {
    const DType body = einsum_.body.type();
    return einsum_.reducer ? reduced_type(*einsum_.reducer, body) : body;
  }

  /// Rows that an operand has not are left out where terms without them would be zero, which a sum does not need.
  void find_factors() {
    factors_ = zero_factors(einsum_.body, operands_.size());
    const bool adds = einsum_.reducer ? has(*einsum_.reducer, ReducerTrait::skips_zeros) : !einsum_.output.empty();
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const bool is_zero_outside = einsum_.operands[i].pad.value_or(0) == 0;
      factors_[i] = factors_[i] && adds && is_zero_outside && operands_[i]->is_sparse;
      drops_rows_ = drops_rows_ || factors_[i];
    }
  }

  /// Whether an operand has a value also where its table has no row.
  bool is_outer(std::size_t i) const {
    return !factors_[i] && (einsum_.operands[i].pad.has_value() || operands_[i]->is_sparse);
  }

  /// Where the value of each label stands: in an operand that has it as an index and no more elements along it, else in
  /// a table of numbers.
  void name_labels() {
    labels_.resize(einsum_.labels.size());
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (is_outer(i)) continue;
      for (std::size_t d = 0; d < operands_[i]->columns.size(); ++d) {
        const std::optional<std::size_t> label = plain_label(einsum_.operands[i].indices[d]);
        const bool is_whole = label && einsum_.labels[*label].extent.value() >= operands_[i]->bound[d].value();
        if (is_whole && labels_[*label].empty()) labels_[*label] = column(i, d);
      }
    }
    for (std::size_t l = 0; l < labels_.size(); ++l) {
      if (!labels_[l].empty()) continue;
      labels_[l] = fmt::format("l{}.i", l);
      add_table(fmt::format("({}) AS l{}", numbers_below(dialect_, einsum_.labels[l].extent.value()), l));
    }
  }

  std::string column(std::size_t operand, std::size_t d) const {
    return fmt::format("x{}.{}", operand, operands_[operand]->columns[d]);
  }

  void add_table(const std::string& table) { from_ += from_.empty() ? table : fmt::format(" JOIN {} ON 1 = 1", table); }

  std::string index(const Index& index) const {
    std::string text;
    for (const IndexTerm& term : index.terms) {
      text += text.empty() ? "" : " + ";
      text +=
          term.coefficient == 1 ? labels_[term.label] : fmt::format("{} * {}", term.coefficient, labels_[term.label]);
    }
    if (text.empty()) return fmt::format("{}", index.offset);
    return index.offset == 0 ? text : fmt::format("{} + {}", text, index.offset);
  }

  std::vector<std::string> conditions(std::size_t i) const {
    std::vector<std::string> equal;
    for (std::size_t d = 0; d < operands_[i]->columns.size(); ++d) {
      const std::string at = index(einsum_.operands[i].indices[d]);
      if (at != column(i, d)) equal.push_back(fmt::format("{} = {}", column(i, d), at));
    }
    return equal;
  }

  /// The type that the body reads an operand as.
  DType type_of(std::size_t operand) const {
    for (const ScalarStep& step : einsum_.body.steps) {
      const auto* const value = std::get_if<OperandValue>(&step.op);
      if (value != nullptr && value->operand == operand) return step.type;
    }
    return DType::f64;
  }

  void add_operands() {
    std::vector<std::string> where;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      values_.push_back({fmt::format("x{}.{}", i, value_column), operands_[i]->has_types});
      if (is_outer(i)) continue;
      add_table(fmt::format("{} AS x{}", operands_[i]->name, i));
      for (std::string& condition : conditions(i)) where.push_back(std::move(condition));
    }
    if (from_.empty()) from_ = "(SELECT 1) AS one";
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (is_outer(i)) add_outer(i);
    }
    if (!where.empty()) from_ += "\nWHERE " + joined(where, " AND ");
  }

  void add_outer(std::size_t i) {
    const std::vector<std::string> on = conditions(i);
    from_ +=
        fmt::format(" LEFT JOIN {} AS x{} ON {}", operands_[i]->name, i, on.empty() ? "1 = 1" : joined(on, " AND "));
    if (on.empty()) return;  // of a number there is always a row
    const std::string outside = number_sql(type_of(i), einsum_.operands[i].pad.value_or(0), dialect_);
    const std::string absent = operands_[i]->is_sparse && einsum_.operands[i].pad.value_or(0) != 0
                                   ? fmt::format("CASE WHEN {} THEN {} ELSE {} END", joined(inside(i), " AND "),
                                                 number_sql(type_of(i), 0, dialect_), outside)
                                   : outside;
    std::string& value = values_[i].text;
    if (!std::exchange(values_[i].has_type, true)) value = typed_sql(type_of(i), value, dialect_);
    value = fmt::format("CASE WHEN {} IS NULL THEN {} ELSE {} END", column(i, 0), absent, value);
  }

  /// Where a padded operand has elements.
  std::vector<std::string> inside(std::size_t i) const {
    std::vector<std::string> between;
    for (std::size_t d = 0; d < operands_[i]->bound.size(); ++d)
      between.push_back(fmt::format("{} BETWEEN 0 AND {}", index(einsum_.operands[i].indices[d]),
                                    operands_[i]->bound[d].value() - 1));
    return between;
  }

  /// What rows of one result have in common. SQLite sorts rows by it, in two thirds of the time if it is one number.
  std::string grouping(const std::vector<std::string>& keys) const {
    if (dialect_ != Dialect::sqlite) return joined(keys, ", ");
    std::string number = keys[0];
    for (std::size_t d = 1; d < keys.size(); ++d) {
      const std::int64_t extent = einsum_.labels[einsum_.output[d]].extent.value();
      number = fmt::format("{} * {} + {}", d == 1 ? number : fmt::format("({})", number), extent, keys[d]);
    }
    return number;
  }

  std::string reduced(const std::string& body, const std::vector<std::string>& keys,
                      const std::vector<std::string>& columns) const {
    const std::string group = keys.empty() ? "" : "\nGROUP BY " + grouping(keys);
    const auto grouped = [&](std::string value) {
      // A number is there also where it is the sum of no rows.
      if (keys.empty() && drops_rows_)
        value = fmt::format("CASE WHEN count(*) = 0 THEN {} ELSE {} END", number_sql(type(), 0, dialect_), value);
      return fmt::format("SELECT {}{} AS {}\nFROM {}{}", named(keys, columns), value, value_column, from_, group);
    };
    if (!einsum_.reducer)
      return fmt::format("SELECT {}{} AS {}\nFROM {}", named(keys, columns), body, value_column, from_);
    switch (*einsum_.reducer) {
#define EINREL_REDUCER(id, name, usage, meaning, result, traits, kept, start, each, fold, continues, slope, sql, ...) \
  case Reducer::id: {                                                                                                 \
    return sql;                                                                                                       \
  }
#include "einsum/expr/functions.def"
    }
    throw Bug("a reducer outside its enumeration");
  }

  std::string average(const std::string& body) const {
    return drops_rows_ ? fmt::format("sum({}) / {}", body, number_sql(DType::f64, terms(), dialect_))
                       : fmt::format("avg({})", body);
  }

  /// Among the values, in this database. It is the greatest number there, and so wins in max alone.
  bool has_nan() const { return is_float(einsum_.body.type()) && dialect_ != Dialect::sqlite; }

  std::string truth(const std::string& body) const {
    return einsum_.body.type() == DType::boolean ? body : truth_sql(body, dialect_);
  }

  /// How many terms each sum has.
  double terms() const {
    double count = 1;
    for (const std::size_t label : einsum_.reduced) count *= static_cast<double>(einsum_.labels[label].extent.value());
    return count;
  }

  /// A sum or a product of the type that it has in the language.
  std::string whole(const std::string& value) const {
    if (is_float(type())) return value;
    const std::string number = dialect_ == Dialect::sqlite ? value : fmt::format("CAST({} AS BIGINT)", value);
    return type() == DType::i32 ? wrapped_to_i32(number) : number;
  }

  static std::string partition(const std::vector<std::string>& keys) {
    return keys.empty() ? "" : "PARTITION BY " + joined(keys, ", ");
  }

  /// Keys in a query within the query: k0, k1, ..., which no label hides.
  static std::vector<std::string> inner(const std::vector<std::string>& keys, const char* before = "k") {
    return numbered(before, keys.size(), "");
  }

  std::string first_extreme(const std::string& body, const std::vector<std::string>& keys,
                            const std::vector<std::string>& columns, const char* order) const {
    std::string position = "0";
    for (const std::size_t label : einsum_.reduced)
      position = fmt::format("({}) * {} + {}", position, einsum_.labels[label].extent.value(), labels_[label]);
    return fmt::format(
        "SELECT {0}position AS {1} FROM (\nSELECT {2}{3} AS position, row_number() OVER ({4} ORDER BY {5} {6}, {3}) AS "
        "place\nFROM {7}) AS ordered\nWHERE place = 1",
        named(inner(keys), columns), value_column, named(keys, inner(keys)), position, partition(keys), body, order,
        from_);
  }

  /// The largest value is taken out first: no exponential is above 1. It is all there is if it is infinite, or NaN,
  /// which is above.
  std::string log_of_sum(const std::string& body, const std::vector<std::string>& keys,
                         const std::vector<std::string>& columns) const {
    std::string group;
    for (const std::string& key : inner(keys)) group += key + ", ";
    return fmt::format(
        "SELECT {0}CASE WHEN abs(largest) >= {7} THEN largest ELSE largest + ln(sum({8})) END AS {1} FROM (\nSELECT "
        "{2}{3} AS term, max({3}) OVER ({4}) AS largest\nFROM {5}) AS terms\nGROUP BY {6}largest",
        named(inner(keys), columns), value_column, named(keys, inner(keys)), body, partition(keys), from_, group,
        number_sql(DType::f64, std::numeric_limits<double>::infinity(), dialect_), exp_sql("term - largest", dialect_));
  }

  /// A name for a query within the query, where it hides none of the tables that are read.
  std::string part(std::string name) const {
    while (std::any_of(operands_.begin(), operands_.end(),
                       [&](const Stored* operand) { return folded(operand->name) == quoted_name(name); }))
      name += "_";
    return name;
  }

  /// SQL has no product of a column: terms are numbered, and each is multiplied to the product of those before it.
  std::string product(const std::string& body, const std::vector<std::string>& keys,
                      const std::vector<std::string>& columns) const {
    const std::string terms = part("terms");
    const std::string so_far = part("so_far");
    std::string names;
    std::string next;
    std::string same;
    for (const std::string& key : inner(keys)) {
      names += key + ", ";
      next += fmt::format("{}.{}, ", terms, key);
      same += fmt::format(" AND {0}.{2} = {1}.{2}", terms, so_far, key);
    }
    return fmt::format(
        "WITH RECURSIVE {0} AS MATERIALIZED (SELECT {2}{3} AS term, row_number() OVER ({4}) AS place, count(*) OVER "
        "({4}) AS places\nFROM {5}),\n{1}({6}product, place, places) AS (SELECT {6}term, place, places FROM {0} "
        "WHERE place = 1\nUNION ALL SELECT {7}{8}, {0}.place, {0}.places FROM {1} JOIN {0} ON {0}.place = "
        "{1}.place + 1{9})\nSELECT {10}product AS {11} FROM {1} WHERE place = places",
        terms, so_far, named(keys, inner(keys)), whole(body), partition(keys), from_, names, next,
        whole("product * term"), same, named(inner(keys), columns), value_column);
  }

  const EinSum& einsum_;
  const std::vector<const Stored*>& operands_;
  const ScalarBindings& scalars_;
  Dialect dialect_;
  std::vector<bool> factors_;
  bool drops_rows_ = false;
  std::string from_;
  std::vector<std::string> labels_;
  std::vector<OperandSql> values_;
};

/// The query of a view: keys are taken apart into labels and put together again.
std::string view_query(const View& view, DType dtype, const Stored& operand, const std::vector<std::string>& columns,
                       Dialect dialect) {
  const char* const divided = dialect == Dialect::duckdb ? "//" : "/";  // of whole numbers
  std::vector<std::string> labels(view.labels.size());
  for (std::size_t d = 0; d < view.from.size(); ++d) {
    std::int64_t stride = 1;
    for (std::size_t i = view.from[d].size(); i-- > 0;) {
      const std::int64_t extent = std::max<std::int64_t>(view.labels[view.from[d][i]].extent.value(), 1);
      labels[view.from[d][i]] = fmt::format("x.{} {} {} % {}", operand.columns[d], divided, stride, extent);
      stride *= extent;
    }
  }
  std::string keys;
  for (std::size_t d = 0; d < view.to.size(); ++d) {
    std::string key = "0";
    for (const std::size_t label : view.to[d])
      key = key == "0" ? labels[label]
                       : fmt::format("({}) * {} + {}", key, view.labels[label].extent.value(), labels[label]);
    keys += fmt::format("{} AS {}, ", key, columns[d]);
  }
  const std::string value = fmt::format("x.{}", value_column);
  return fmt::format("SELECT {}{} AS {}\nFROM {} AS x", keys,
                     operand.has_types ? value : typed_sql(dtype, value, dialect), value_column, operand.name);
}

std::vector<std::string> all_quoted(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) out.push_back(quoted_name(name));
  return out;
}

Query query_of(const Vertex& vertex, const std::vector<const Stored*>& operands,
               const std::vector<std::string>& columns, const ScalarBindings& scalars, Dialect dialect) {
  if (const EinSum* const einsum = einsum_of(vertex))
    return EinSumQuery(*einsum, operands, scalars, dialect).run(columns, vertex.bound);
  if (const View* const view = view_of(vertex)) {
    const Stored& operand = *operands.at(0);
    if (operand.is_sparse && columns.empty())  // of a number there is always a row
      return {fmt::format("SELECT coalesce((SELECT {0} FROM {1}), {2}) AS {0}", value_column, operand.name,
                          number_sql(vertex.dtype, 0, dialect))};
    return {view_query(*view, vertex.dtype, operand, columns, dialect), operand.is_sparse};
  }
  throw NotInSql{"SQL has no linear algebra"};
}

}  // namespace

Script plain_script(const EinGraph& graph, const std::map<std::string, std::vector<std::string>>& labels,
                    const ScalarBindings& scalars, const ScriptTarget& target) {
  const Dialect dialect = target.dialect;
  ElementTables tables;
  std::vector<std::string> taken;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) continue;
    taken.push_back(vertex.name);
    tables.inputs[vertex.name] = {.name = user_table(target, vertex.name),
                                  .columns = key_column_names(labels.at(vertex.name), dialect),
                                  .has_types = false};
  }
  for (const VertexId id : graph.outputs) {
    if (!is_input(graph[id]) && tables.outputs.emplace(graph[id].name, user_table(target, graph[id].name)).second)
      taken.push_back(graph[id].name);
  }
  check_table_names(taken, dialect);
  TableNames names(taken, most_name_bytes(dialect));
  Script script = plain_script(graph, tables, scalars, names, dialect);
  std::vector<std::string> made;
  for (const std::string& name : names.given()) made.push_back(temporary_table(dialect, name));
  for (Statement& statement : drop_script(made)) script.push_back(std::move(statement));
  return script;
}

Script plain_script(const EinGraph& graph, const ElementTables& given, const ScalarBindings& scalars, TableNames& names,
                    Dialect dialect) {
  std::vector<Stored> tables;
  Script script;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) {
      const ElementTable& table = given.inputs.at(vertex.name);
      tables.push_back({table.name, all_quoted(table.columns), vertex.bound, table.is_sparse, table.has_types});
      continue;
    }
    const auto output = given.outputs.find(vertex.name);
    const bool is_output = output != given.outputs.end();
    const std::string name = is_output ? output->second : temporary_table(dialect, names.fresh(vertex.name));
    const std::vector<std::string> columns = all_quoted(key_column_names(dimension_names(vertex), dialect));
    std::vector<const Stored*> operands;
    for (const VertexId input : vertex.inputs) operands.push_back(&tables[input.index]);
    try {
      Query query = query_of(vertex, operands, columns, scalars, dialect);
      if (is_output && query.is_sparse && element_count(vertex.bound) != 0)
        query = {with_zeros(query.text, columns, vertex.bound, number_sql(vertex.dtype, 0, dialect), dialect)};
      script.push_back({formula(vertex, graph) + "; element",
                        fmt::format("CREATE {}TABLE {} AS\n{}", is_output ? "" : "TEMPORARY ", name, query.text)});
      tables.push_back({name, columns, vertex.bound, query.is_sparse});
    } catch (const NotInSql& not_in_sql) {
      throw UserError(fmt::format("plain SQL cannot compute {}: {}", formula(vertex, graph), not_in_sql.reason));
    }
  }
  return script;
}

}  // namespace einrel::sql
