#include "sql/plain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "einsum/text/print.h"
#include "einsum/vertex_facts.h"
#include "sql/names.h"
#include "sql/program_script.h"
#include "sql/scalar_sql.h"
#include "sql/user_tables.h"

namespace einrel::sql {
namespace {

constexpr const char* value_column = "\"value\"";

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

/// 0, 1, ..., n - 1 as column i.
std::string numbers_below(std::int64_t n) {
  return fmt::format(
      "(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {}) SELECT i FROM n)", n);
}

/// The query of an EinSum: its operands joined where their labels agree, its values grouped by the labels that stay.
class EinSumQuery {
 public:
  EinSumQuery(const EinSum& einsum, const std::vector<const ElementTable*>& operands, const ScalarBindings& scalars,
              Dialect dialect)
      : einsum_(einsum), operands_(operands), scalars_(scalars), dialect_(dialect) {}

  std::string run(const std::vector<std::string>& columns) {
    for (const Label& label : einsum_.labels) {
      if (label.extent == Extent(0)) throw NotInSql{"a table without rows cannot say what is computed of nothing"};
    }
    name_labels();
    add_operands();
    const std::string body = to_sql(einsum_.body, {values_, labels_, scalars_}, dialect_);
    std::vector<std::string> keys;
    for (const std::size_t label : einsum_.output) keys.push_back(labels_[label]);
    return reduced(body, keys, columns);
  }

 private:
  /// Where the value of each label stands: in an operand that has it as an index, else in a table of numbers.
  void name_labels() {
    labels_.resize(einsum_.labels.size());
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (einsum_.operands[i].pad) continue;
      for (std::size_t d = 0; d < operands_[i]->columns.size(); ++d) {
        const std::optional<std::size_t> label = plain_label(einsum_.operands[i].indices[d]);
        if (label && labels_[*label].empty()) labels_[*label] = column(i, d);
      }
    }
    for (std::size_t l = 0; l < labels_.size(); ++l) {
      if (!labels_[l].empty()) continue;
      labels_[l] = fmt::format("l{}.i", l);
      add_table(fmt::format("{} AS l{}", numbers_below(einsum_.labels[l].extent.value()), l));
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
      values_.push_back(fmt::format("x{}.{}", i, value_column));
      if (einsum_.operands[i].pad) continue;
      add_table(fmt::format("{} AS x{}", operands_[i]->name, i));
      for (std::string& condition : conditions(i)) where.push_back(std::move(condition));
    }
    if (from_.empty()) from_ = "(SELECT 1) AS one";
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (!einsum_.operands[i].pad) continue;
      const std::vector<std::string> on = conditions(i);
      from_ +=
          fmt::format(" LEFT JOIN {} AS x{} ON {}", operands_[i]->name, i, on.empty() ? "1 = 1" : joined(on, " AND "));
      values_[i] =
          fmt::format("coalesce({}, {})", values_[i], number_sql(type_of(i), *einsum_.operands[i].pad, dialect_));
    }
    if (!where.empty()) from_ += "\nWHERE " + joined(where, " AND ");
  }

  static std::string named(const std::vector<std::string>& keys, const std::vector<std::string>& columns) {
    std::string text;
    for (std::size_t d = 0; d < keys.size(); ++d) text += fmt::format("{} AS {}, ", keys[d], columns[d]);
    return text;
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
    const auto grouped = [&](const char* function) {
      return fmt::format("SELECT {}{}({}) AS {}\nFROM {}{}", named(keys, columns), function, body, value_column, from_,
                         group);
    };
    if (!einsum_.reducer)
      return fmt::format("SELECT {}{} AS {}\nFROM {}", named(keys, columns), body, value_column, from_);
    switch (*einsum_.reducer) {
      case Reducer::sum: return grouped("sum");
      case Reducer::mean: return grouped("avg");
      case Reducer::max:
      case Reducer::any: return grouped("max");
      case Reducer::min:
      case Reducer::all: return grouped("min");
      case Reducer::prod:
        if (dialect_ == Dialect::duckdb) return grouped("product");
        throw NotInSql{"SQL has no product of a column"};
      case Reducer::argmax: return first_extreme(body, keys, columns, "DESC");
      case Reducer::argmin: return first_extreme(body, keys, columns, "ASC");
      case Reducer::logsumexp: return log_of_sum(body, keys, columns);
    }
    throw Bug("a reducer outside its enumeration");
  }

  static std::string partition(const std::vector<std::string>& keys) {
    return keys.empty() ? "" : "PARTITION BY " + joined(keys, ", ");
  }

  std::string first_extreme(const std::string& body, const std::vector<std::string>& keys,
                            const std::vector<std::string>& columns, const char* order) const {
    std::string position = "0";
    for (const std::size_t label : einsum_.reduced)
      position = fmt::format("({}) * {} + {}", position, einsum_.labels[label].extent.value(), labels_[label]);
    std::string outer;
    for (const std::string& column : columns) outer += column + ", ";
    return fmt::format(
        "SELECT {0}position AS {1} FROM (\nSELECT {2}{3} AS position, row_number() OVER ({4} ORDER BY {5} {6}, {3}) AS "
        "place\nFROM {7}) AS ordered\nWHERE place = 1",
        outer, value_column, named(keys, columns), position, partition(keys), body, order, from_);
  }

  /// The largest value is taken out first: no exponential is above 1.
  std::string log_of_sum(const std::string& body, const std::vector<std::string>& keys,
                         const std::vector<std::string>& columns) const {
    std::string outer;
    for (const std::string& column : columns) outer += column + ", ";
    return fmt::format(
        "SELECT {0}largest + ln(sum(exp(term - largest))) AS {1} FROM (\nSELECT {2}{3} AS term, max({3}) OVER ({4}) AS "
        "largest\nFROM {5}) AS terms\nGROUP BY {0}largest",
        outer, value_column, named(keys, columns), body, partition(keys), from_);
  }

  const EinSum& einsum_;
  const std::vector<const ElementTable*>& operands_;
  const ScalarBindings& scalars_;
  Dialect dialect_;
  std::string from_;
  std::vector<std::string> labels_;
  std::vector<std::string> values_;
};

/// The query of a view: keys are taken apart into labels and put together again.
std::string view_query(const View& view, const ElementTable& operand, const std::vector<std::string>& columns,
                       Dialect dialect) {
  const char* const divided = dialect == Dialect::duckdb ? "//" : "/";  // of whole numbers
  std::vector<std::string> labels(view.labels.size());
  for (std::size_t d = 0; d < view.from.size(); ++d) {
    std::int64_t stride = 1;
    for (std::size_t i = view.from[d].size(); i-- > 0;) {
      const std::int64_t extent = view.labels[view.from[d][i]].extent.value();
      if (extent == 0) throw NotInSql{"a table without rows cannot say what is computed of nothing"};
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
  return fmt::format("SELECT {}x.{} AS {}\nFROM {} AS x", keys, value_column, value_column, operand.name);
}

std::vector<std::string> all_quoted(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) out.push_back(quoted(name));
  return out;
}

std::string query_of(const Vertex& vertex, const std::vector<const ElementTable*>& operands,
                     const std::vector<std::string>& columns, const ScalarBindings& scalars, Dialect dialect) {
  if (const EinSum* const einsum = einsum_of(vertex))
    return EinSumQuery(*einsum, operands, scalars, dialect).run(columns);
  if (const View* const view = view_of(vertex)) return view_query(*view, *operands.at(0), columns, dialect);
  throw NotInSql{"SQL has no linear algebra"};
}

/// Databases take names that differ in the case of letters only for the same.
void check_names(const std::vector<std::string>& names) {
  std::map<std::string, std::string> known;
  for (const std::string& name : names) {
    const auto [other, is_new] = known.emplace(folded(name), name);
    if (!is_new)
      throw UserError(fmt::format("plain SQL cannot have both tables {} and {}: to databases they have the same name",
                                  other->second, name));
  }
}

}  // namespace

Script plain_script(const EinGraph& graph, const std::map<std::string, std::vector<std::string>>& labels,
                    const ScalarBindings& scalars, Dialect dialect) {
  ElementTables tables;
  std::vector<std::string> taken;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) continue;
    taken.push_back(vertex.name);
    tables.inputs[vertex.name] = {quoted(vertex.name), key_column_names(labels.at(vertex.name), dialect)};
  }
  for (const VertexId id : graph.outputs) {
    if (!is_input(graph[id]) && tables.outputs.emplace(graph[id].name, quoted(graph[id].name)).second)
      taken.push_back(graph[id].name);
  }
  check_names(taken);
  TableNames names(taken, most_name_bytes(dialect));
  return plain_script(graph, tables, scalars, names, dialect);
}

Script plain_script(const EinGraph& graph, const ElementTables& given, const ScalarBindings& scalars, TableNames& names,
                    Dialect dialect) {
  std::vector<ElementTable> tables;
  Script script;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) {
      const ElementTable& table = given.inputs.at(vertex.name);
      tables.push_back({table.name, all_quoted(table.columns)});
      continue;
    }
    const auto output = given.outputs.find(vertex.name);
    const bool is_output = output != given.outputs.end();
    tables.push_back({is_output ? output->second : quoted(names.fresh(vertex.name)),
                      all_quoted(key_column_names(dimension_names(vertex), dialect))});
    std::vector<const ElementTable*> operands;
    for (const VertexId input : vertex.inputs) operands.push_back(&tables[input.index]);
    try {
      const std::string query = query_of(vertex, operands, tables.back().columns, scalars, dialect);
      script.push_back(
          {formula(vertex, graph) + "; element",
           fmt::format("CREATE {}TABLE {} AS\n{}", is_output ? "" : "TEMPORARY ", tables.back().name, query)});
    } catch (const NotInSql& not_in_sql) {
      throw UserError(fmt::format("plain SQL cannot compute {}: {}", formula(vertex, graph), not_in_sql.reason));
    }
  }
  return script;
}

}  // namespace einrel::sql
